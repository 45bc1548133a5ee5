from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import pytest

from ranklog.model import frame
from ranklog.produce import context as produce_context
from ranklog.produce import ring
from ranklog.produce.context import (
    EMPTY,
    INHERITED,
    NO_ITERATION,
    REMEMBERED_MAX,
    STREAM_RANK,
    context,
    current,
    current_iteration,
    iteration,
    own_iteration,
    reset,
)


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    reset()
    yield
    reset()


def seen() -> tuple[object, ...]:
    state = current()
    rank = "stream's" if state.rank == STREAM_RANK else state.rank
    return rank, current_iteration(), state.metadata


def test_context_stays_until_the_handle_is_closed() -> None:
    handle = context(dataset="c4", shard=3)
    assert seen() == ("stream's", None, {"dataset": "c4", "shard": 3})

    handle.close()
    assert seen() == ("stream's", None, {})


def test_a_with_undoes_its_own_change_only() -> None:
    context(a=1, b=1)
    with context(b=2, c=2):
        context(d=4)
        assert current().metadata == {"a": 1, "b": 2, "c": 2, "d": 4}

    assert current().metadata == {"a": 1, "b": 1, "d": 4}


def test_none_takes_a_key_away_and_rank_none_means_no_rank() -> None:
    context(a=1, rank=3)
    context(a=None, rank=None)

    assert seen() == (None, None, {})


def test_step_is_iteration() -> None:
    context(step=4)

    assert current_iteration() == 4


def test_iteration_is_process_wide() -> None:
    iteration(7)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(current_iteration).result() == 7


def test_iteration_in_a_with_ends_there_in_other_threads_too() -> None:
    iteration(1)
    with ThreadPoolExecutor(1) as pool, iteration(2):
        assert current_iteration() == 2
        assert pool.submit(current_iteration).result() == 2
    assert current_iteration() == 1


def test_what_is_no_iteration_is_left_out() -> None:
    iteration("many")  # type: ignore[arg-type]

    assert current_iteration() is None


def test_eight_threads_are_eight_ranks_with_iterations_of_their_own() -> None:
    barrier = threading.Barrier(8)
    found: dict[int, set[tuple[object, ...]]] = {rank: set() for rank in range(8)}

    def train(rank: int) -> None:
        context(rank=rank)
        for number in range(20):
            iteration(1000 * rank + number)
            barrier.wait()
            state = current()
            found[rank].add((state.rank, current_iteration()))

    threads = [threading.Thread(target=train, args=(rank,)) for rank in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert found == {rank: {(rank, 1000 * rank + n) for n in range(20)} for rank in range(8)}
    assert current_iteration() is None


def test_a_pool_thread_has_the_context_only_if_it_is_passed() -> None:
    context(rank=3)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: current().rank).result() == STREAM_RANK
        assert pool.submit(copy_context().run, lambda: current().rank).result() == 3


def test_tasks_of_asyncio_do_not_see_each_other() -> None:
    async def task(name: str) -> tuple[object, ...]:
        with context(task=name), iteration(len(name)):
            await asyncio.sleep(0)
            return seen()

    async def both() -> list[tuple[object, ...]]:
        return list(await asyncio.gather(task("a"), task("bb")))

    assert asyncio.run(both()) == [
        ("stream's", 1, {"task": "a"}),
        ("stream's", 2, {"task": "bb"}),
    ]


def test_a_handle_closed_in_another_thread_does_not_raise() -> None:
    handle = context(a=1)
    thread = threading.Thread(target=handle.close)
    thread.start()
    thread.join()

    assert current().metadata == {"a": 1}
    assert own_iteration() == INHERITED


def test_the_same_words_are_the_same_stamp() -> None:
    with context(a=1, b="x"):
        first = current()
    with context(b="x"), context(a=1):
        assert current() is not first  # their order is theirs
    with context(a=1), context(b="x"):
        assert current() is first
    with context(a=True):
        assert current().metadata == {"a": 1}
    assert current() is EMPTY


def test_values_that_are_equal_but_of_other_types_are_other_words() -> None:
    stamps = []
    for value in (1, 1.0, True, "1"):
        with context(a=value):
            stamps.append(current().metadata["a"])

    assert list(map(repr, stamps)) == ["1", "1.0", "1", "'1'"]


def test_contexts_that_are_never_closed_are_not_all_remembered() -> None:
    for number in range(2 * REMEMBERED_MAX + 10):
        context(batch=number)

    assert current().metadata == {"batch": 2 * REMEMBERED_MAX + 9}
    assert len(produce_context._ways) <= REMEMBERED_MAX
    assert len(produce_context._by_words) <= REMEMBERED_MAX


def test_a_value_that_can_not_be_a_key_is_metadata_all_the_same() -> None:
    context(shape=[2, 3], n=1)

    assert current().metadata == {"shape": "[2, 3]", "n": 1}


def test_an_iteration_of_a_context_ends_with_it_and_none_means_none() -> None:
    iteration(3)
    with context(iteration=5, a=1):
        assert seen() == ("stream's", 5, {"a": 1})
        with context(step=None):
            assert current_iteration() is None
    assert seen() == ("stream's", 3, {})


def test_the_models_words_for_absent_are_ours() -> None:
    assert (STREAM_RANK, NO_ITERATION) == (frame.STREAM_RANK, frame.NO_ITERATION)
    assert ring.NO_ITERATION == frame.NO_ITERATION
