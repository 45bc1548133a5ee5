"""What one frame says was dropped counts once; what names no frame is summed."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranklog.layout.drops import (
    Drops,
    agents_in,
    agents_named,
    drops_from_columns,
    drops_to_columns,
)
from ranklog.layout.frame_refs import frames_from_list, frames_to_list
from ranklog.model.frame import Drop
from ranklog.model.index import FrameRef, StreamEntry
from tests.ingest.frames import STREAM

_FRAME = st.none() | st.tuples(st.sampled_from(["0a", "ABBA", "import-1"]), st.integers(0, 2**40))
_DROP = st.builds(Drop, st.integers(1, 2**40), st.sampled_from(["quota", "progress"]), _FRAME)
_DROPS = st.lists(_DROP, max_size=12).map(tuple)


def entries_of(drops: list[tuple[Drop, ...]]) -> list[StreamEntry]:
    bare = StreamEntry(STREAM, STREAM.stream_id, 0, 0, None, None, ())
    return [replace(bare, drops=one) for one in drops]


@given(st.lists(_DROPS))
def test_drops_come_back_as_they_were(drops: list[tuple[Drop, ...]]) -> None:
    data = drops_to_columns(entries_of(drops))
    assert drops_from_columns(data) == {i: one for i, one in enumerate(drops) if one}
    assert agents_in(data) == agents_named(entries_of(drops))


def test_an_agent_that_the_head_names_is_not_named_beside_frames() -> None:
    frames = (FrameRef("0b", 1, "ab" * 16), FrameRef("0a", 2, "cd" * 16))
    data = frames_to_list(frames, (), ["0a"])
    assert (data[1], data[2]) == ([b"\x0b"], [1, [1, 0]])
    assert frames_from_list(data, (), ["0a"]) == frames


def test_a_frame_counts_once_and_what_names_none_is_summed() -> None:
    first, second = Drop(7, "quota", ("0a", 1)), Drop(7, "quota", ("0a", 2))
    drops = Drops([first, Drop(3, "quota"), second])
    drops.add([first, Drop(2, "quota"), Drop(1, "progress", ("0a", 1))])
    assert drops.by_reason() == {"progress": 1, "quota": 19}
    assert list(drops) == [Drop(5, "quota"), Drop(1, "progress", ("0a", 1)), first, second]


def test_of_what_was_refused_once_more_and_again_the_least_is_not_there() -> None:
    """Retention refuses more of a frame the later it comes; the rest was stored the first time."""
    drops = Drops([Drop(5, "retention", ("0a", 1)), Drop(3, "retention", ("0a", 1))])
    assert drops.by_reason() == {"retention": 3}


@given(st.lists(_DROPS), st.randoms(use_true_random=False))
def test_neither_order_nor_a_merge_between_changes_the_sum(
    said: list[tuple[Drop, ...]], chance: random.Random
) -> None:
    whole = Drops(drop for drops in said for drop in drops)
    shuffled = said.copy()
    chance.shuffle(shuffled)
    cut = chance.randint(0, len(shuffled))
    merged = Drops(Drops(drop for drops in shuffled[:cut] for drop in drops))
    for drops in shuffled[cut:]:
        merged.add(drops)
    assert list(merged) == list(whole)
    assert merged.by_reason() == whole.by_reason()


def test_damage_is_an_error() -> None:
    data = drops_to_columns(entries_of([(Drop(1, "quota", ("0a", 1)), Drop(2, "disk", ("0c", 1)))]))
    for damaged in (data[:5], [*data[:4], [], *data[5:]], [*data[:6], [1, [1]]]):
        with pytest.raises((ValueError, TypeError, IndexError)):
            drops_from_columns(damaged)
