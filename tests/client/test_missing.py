"""Who did not say it: certain only where nothing that is missing could be it."""

from __future__ import annotations

import random
from typing import Any

import pytest

from ranklog.client import Client
from ranklog.client.deletion import delete, find_deletion
from ranklog.client.reader import local_reader
from ranklog.client.words import read_query
from ranklog.errors import BadInput
from ranklog.model.frame import NO_RANK, Drop, FrameStream, StreamEnd
from ranklog.store.memory import MemoryStore
from tests.client.test_search import put
from tests.ingest.frames import T0, Row, stream

SECOND = 1_000_000_000
WORLD = 4


def of(rank: int | None, **changes: Any) -> Any:
    return stream(rank, world_size=WORLD, **changes)


def run_of(
    said: set[int], *, ended: set[int] | None = None, drops: dict[int, str] | None = None
) -> MemoryStore:
    """Three lines of each rank; those in `said` say `ready` in the second."""
    store = MemoryStore()
    rows = [
        Row("ready" if i == 1 and rank in said else f"step {i}", ts=T0 + i, stream=of(rank))
        for rank in range(WORLD)
        for i in range(3)
    ]
    ends = [
        FrameStream(
            of(rank),
            0,
            0,
            end=StreamEnd(3, 0) if ended is None or rank in ended else None,
            drops=(Drop(5, drops[rank]),) if drops and rank in drops else (),
        )
        for rank in range(WORLD)
    ]
    put(store, "1", rows, streams=ends)
    return store


def missing(store: MemoryStore, query: str = "ready", **given: Any) -> dict[Any, tuple[str, Any]]:
    by = given.setdefault("by", "rank")
    found = Client(store=store, tenant="acme").missing(query, run="llama", **given)
    return {row[by]: (row["said"], row["why"]) for row in found.rows}


def test_ranks_without_a_match_did_not_say_it_where_all_arrived() -> None:
    store = run_of({0, 2})
    assert missing(store) == {1: ("no", []), 3: ("no", [])}
    everyone = missing(store, everyone=True)
    assert {rank: said for rank, (said, _) in everyone.items()} == {
        0: "yes",
        1: "no",
        2: "yes",
        3: "no",
    }
    assert missing(run_of({0, 1, 2, 3})) == {}


def test_a_rank_that_may_still_speak_is_unknown() -> None:
    assert missing(run_of({0}, ended={0, 1, 2})) == {
        1: ("no", []),
        2: ("no", []),
        3: ("unknown", ["behind"]),
    }


def test_a_rank_whose_lines_were_dropped_is_unknown_but_not_for_progress_bars() -> None:
    store = run_of({0}, drops={1: "quota", 2: "progress"})
    assert missing(store) == {1: ("unknown", ["dropped"]), 2: ("no", []), 3: ("no", [])}


def test_a_rank_with_a_gap_is_unknown() -> None:
    store = run_of({0, 1, 2})
    holed = MemoryStore()
    ends = [FrameStream(of(rank), 0, 0, end=StreamEnd(3, 0)) for rank in range(WORLD)]
    put(
        holed,
        "1",
        [Row("x", stream=of(rank)) for rank in range(WORLD) for _ in range(2)],
        streams=ends,
    )
    assert missing(holed) == dict.fromkeys(range(WORLD), ("unknown", ["gaps"]))
    assert missing(store) == {3: ("no", [])}


def test_a_rank_that_never_said_anything_is_unknown() -> None:
    store = MemoryStore()
    put(
        store,
        "1",
        [Row("ready", stream=of(0))],
        streams=[FrameStream(of(0), 0, 0, end=StreamEnd(1, 0))],
    )
    assert missing(store) == dict.fromkeys((1, 2, 3), ("unknown", ["absent"]))
    assert missing(store, rank="0-1") == {1: ("unknown", ["absent"])}


def test_a_rank_whose_lines_were_deleted_is_unknown() -> None:
    store = run_of({0, 1, 2, 3})
    reader = local_reader(store, "acme")
    query = read_query("ready rank:2", {"run": "llama"}, now_ns=T0)
    delete(reader, find_deletion(reader, query, who="t"))
    assert missing(store) == {2: ("unknown", ["deleted"])}


def test_a_segment_that_cant_be_read_makes_it_unknown() -> None:
    store = run_of({0})
    [segment] = [item.key for item in store.list("acme/data/")]
    store.delete(segment)
    assert missing(store, "/rea.y/") == dict.fromkeys(range(WORLD), ("unknown", ["partial"]))


def test_a_stream_whose_lines_name_ranks_is_in_doubt_for_all() -> None:
    store = run_of({0})
    console = of(None, channel="console", host=None)
    put(store, "2", [Row("[1]: step", stream=console, rank=1)])
    assert missing(store) == dict.fromkeys((1, 2, 3), ("unknown", ["behind"]))


def test_a_hosts_log_that_names_no_rank_is_no_doubt_of_ranks() -> None:
    store = run_of({0})
    put(store, "2", [Row("mlx5 up", stream=of(None, channel="kernel"), rank=NO_RANK)])
    assert missing(store) == dict.fromkeys((1, 2, 3), ("no", []))
    labelled = Client(store=store, tenant="acme").missing("ready", run="llama", by="host")
    assert labelled.rows == []


def test_by_host_and_by_stream() -> None:
    store = MemoryStore()
    a, b = stream(0, host="gpu-1"), stream(1, host="gpu-2")
    ends = [FrameStream(one, 0, 0, end=StreamEnd(1, 0)) for one in (a, b)]
    put(store, "1", [Row("ready", stream=a), Row("no", stream=b)], streams=ends)
    assert missing(store, by="host") == {"gpu-2": ("no", [])}
    [row] = Client(store=store, tenant="acme").missing("ready", run="llama", by="stream").rows
    assert (row["stream"], row["rank"], row["channel"]) == (b.stream_id, 1, "stdout")
    with pytest.raises(BadInput, match="by level"):
        Client(store=store, tenant="acme").missing("x", run="llama", by="level")


@pytest.mark.parametrize("seed", range(10))
def test_no_is_never_said_of_a_rank_whose_missing_lines_hold_a_match(seed: int) -> None:
    """Frames that arrive or not, in any order: `no` agrees with what all frames together say."""
    rng = random.Random(seed)
    rows = {
        rank: [
            Row(rng.choice(["ready", "a", "b", "c"]), ts=T0 + i, stream=of(rank)) for i in range(6)
        ]
        for rank in range(WORLD)
    }
    truth = {rank for rank, lines in rows.items() if any(row.text == "ready" for row in lines)}
    frames = [(rank, at) for rank in rows for at in (0, 2, 4)]
    rng.shuffle(frames)
    store = MemoryStore()
    for number, (rank, at) in enumerate(frames):
        ends = [FrameStream(of(rank), 0, 0, end=StreamEnd(6, 0))] if at == 4 else []
        put(
            store,
            str(number),
            rows[rank][at : at + 2],
            first_seq={of(rank): at},
            streams=ends,
            number=number,
        )
        told = missing(store, everyone=True)
        for who, (said, _) in told.items():
            assert said != "no" or who not in truth
            assert said != "yes" or who in truth
    assert {who for who, (said, _) in told.items() if said == "no"} == set(range(WORLD)) - truth
