"""Frames that go straight into a store which goes away: refused soon, lost never, stored once."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from ranklog import limits
from ranklog.api.local import make_handler
from ranklog.api.sinks import StoreFrames
from ranklog.client import Client
from ranklog.errors import Unavailable
from ranklog.store.memory import MemoryStore
from tests.api.job import NOW_NS, call, frame_of

OCTETS = {"content-type": "application/octet-stream"}
ENDED_S = 60.0


class Leaving(MemoryStore):
    """Goes away at the `at`-th PUT from now, which hangs until it is back; `fails`: then it was not made."""

    def __init__(self) -> None:
        super().__init__()
        self.at, self.fails = -1, False
        self.back = threading.Event()

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> str:
        if "/usage/" not in key and "/measures/" not in key:
            self.at -= 1
            if self.at == -1:
                assert self.back.wait(ENDED_S)
                if self.fails:
                    raise Unavailable("it was away")
        return super().put(key, data, if_absent=if_absent)


def frames_of(count: int) -> list[bytes]:
    return [frame_of(number=number, run=f"run-{number}") for number in range(count)]


def lines_of(store: MemoryStore) -> list[str]:
    answer = Client(store=store).search("", since="2000-01-01", limit=None)
    return sorted(f"{line.stream_id}:{line.seq}" for line in answer.lines)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Leaving]:
    StoreFrames(MemoryStore(), lambda: NOW_NS).accept("default", frame_of())  # imports take a while
    monkeypatch.setattr(limits, "FRAME_COMMIT_S_MAX", 0.2)
    made = Leaving()
    yield made
    made.back.set()


def whole(frames: list[bytes]) -> list[str]:
    store = MemoryStore()
    for data in frames:
        StoreFrames(store, lambda: NOW_NS).accept("default", data)
    return lines_of(store)


@pytest.mark.parametrize("at", range(3))  # segment, marker, then pointer or index
@pytest.mark.parametrize("fails", [False, True])
def test_wherever_in_the_commit_the_store_goes_nothing_is_lost_or_doubled(
    store: Leaving, at: int, fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink, frames = StoreFrames(store, lambda: NOW_NS), frames_of(3)
    store.at, store.fails = at, fails
    told = []
    for data in frames:
        try:
            sink.accept("default", data)
        except Unavailable as error:
            told.append(error.message)
    before = "frames before this one still wait for the store"
    assert told == ["the store does not answer within 0.2 s", before, before]
    store.back.set()
    assert sink._lock.acquire(timeout=ENDED_S)  # what was given up has ended
    sink._lock.release()
    monkeypatch.setattr(limits, "FRAME_COMMIT_S_MAX", ENDED_S)
    random.Random(at).shuffle(frames)
    for data in frames:  # an agent sends again what it has no answer for; twice does no harm
        sink.accept("default", data)
    assert lines_of(store) == whole(frames)


def test_over_http_it_is_503_with_a_time_to_come_again(store: Leaving) -> None:
    handler = make_handler(store, clock_ns=lambda: NOW_NS)
    store.at = 1
    for _ in range(2):
        status, found, headers = call(handler, "POST", "/v1/frames", frame_of(), headers=OCTETS)
        assert (status, found["kind"]) == (503, "unavailable")
        assert int(headers["Retry-After"]) > 0


def test_a_frame_waits_its_turn_no_longer_than_for_its_own_commit(store: Leaving) -> None:
    sink, [first, second] = StoreFrames(store, lambda: NOW_NS), frames_of(2)
    store.at = 0

    def send() -> None:
        with suppress(Unavailable):
            sink.accept("default", first)

    before = threading.Thread(target=send)
    before.start()
    while not sink._lock.locked():
        pass
    with pytest.raises(Unavailable):
        sink.accept("default", second)
    before.join(ENDED_S)


def test_what_is_measured_of_a_request_does_not_hold_up_its_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Deaf(MemoryStore):
        back = threading.Event()

        def put(self, key: str, data: bytes, *, if_absent: bool = False) -> str:
            if "/measures/" in key:
                assert self.back.wait(ENDED_S)
            return super().put(key, data, if_absent=if_absent)

    monkeypatch.setattr(limits, "STORE_PROMPT_S_MAX", 0.1)
    store = Deaf()
    handler = make_handler(store, clock_ns=lambda: NOW_NS)
    status, _, _ = call(handler, "POST", "/v1/frames", frame_of(), headers=OCTETS)
    assert status == 202
    store.back.set()
