"""What an index keeps of headers comes back; indexes of before know less and say so."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranklog.layout.frame_refs import (
    FrameRefs,
    frames_from_head,
    frames_from_list,
    frames_to_list,
)
from ranklog.layout.packed import pack_column
from ranklog.model.index import FrameRef

_HASH = st.binary(min_size=16, max_size=16).map(bytes.hex).filter(lambda text: text != "0" * 32)
_PART = st.tuples(_HASH, st.integers(0, 2**40), st.integers(1, 2**20)).map(
    lambda part: (part[0], part[1], part[1] + part[2])
)
_FRAME = st.builds(
    FrameRef,
    agent=st.sampled_from(["0a", "import-1", "ABBA"]),
    number=st.integers(0, 99),
    header_hash=_HASH,
    previous=_HASH | st.just("") | st.just("ab" * 16),
    payload_hash=_HASH,
    parts=st.lists(_PART, max_size=4).map(tuple),
    dropped=st.integers(0, 2**40),
)


_BARE = st.builds(FrameRef, st.just("0b"), st.integers(0, 9), _HASH | st.just("ab" * 16))
KNOWN = ("ef" * 16, "0d" * 16)


@given(st.lists(_FRAME | _BARE).map(tuple))
def test_frames_come_back_as_they_were(frames: tuple[FrameRef, ...]) -> None:
    assert frames_from_list(frames_to_list(frames, KNOWN), KNOWN) == frames


def test_a_header_before_that_is_there_and_a_known_stream_are_named_by_their_places() -> None:
    first = FrameRef("0a", 1, "ab" * 16, "77" * 16, "cd" * 16, ((KNOWN[1], 0, 5),))
    second = FrameRef("0a", 2, "12" * 16, "ab" * 16, "34" * 16, (("99" * 16, 7, 8),))
    data = frames_to_list((first, second), KNOWN)
    assert data[1] == [b"\x0a"]
    assert (data[5], data[6]) == ([1, [-2, 0]], b"\x77" * 16)
    assert (data[10], data[11]) == (b"\x99" * 16, [1, [1, 2]])


def test_frames_are_unpacked_when_they_are_looked_at() -> None:
    asked = []
    frames = (FrameRef("0a", 1, "ab" * 16),)

    def unpack() -> tuple[FrameRef, ...]:
        asked.append(1)
        return frames

    found = FrameRefs(unpack)
    assert asked == []
    assert (found == frames, found != (), list(found), found[0], len(found)) == (
        True,
        True,
        list(frames),
        frames[0],
        1,
    )
    assert (asked, repr(found)) == ([1], repr(frames))


def test_damage_is_an_error() -> None:
    frames = (FrameRef("0a", 1, "ab" * 16, "", "cd" * 16, (("ef" * 16, 0, 5),)),)
    data = frames_to_list(frames, KNOWN)
    for damaged in ([*data[:13], [1, []]], [*data[:4], b"", *data[5:]], data[:9]):
        with pytest.raises((ValueError, TypeError)):
            frames_from_list(damaged, KNOWN)


def test_heads_of_before_have_their_frames_themselves() -> None:
    bare = {"frames": [[0, "0a"], [1, [1, 2]], b"\xab" * 16 + b"\xcd" * 16, 2]}
    one, two = (FrameRef("0a", 1, "ab" * 16), FrameRef("0a", 2, "cd" * 16))
    assert frames_from_head(bare) == (one, two)
    parts = [
        b"\0" * 16 + b"\xab" * 16,
        b"\x11" * 32,
        pack_column([0, 3]),
        pack_column([-1, 1]),
        b"\xef" * 16,
        pack_column([0]),
        pack_column([4]),
        pack_column([2]),
    ]
    assert frames_from_head({**bare, "frame_parts": parts}) == (
        FrameRef("0a", 1, "ab" * 16, "", "11" * 16, None, 0),
        FrameRef("0a", 2, "cd" * 16, "ab" * 16, "11" * 16, (("ef" * 16, 4, 6),), 3),
    )
