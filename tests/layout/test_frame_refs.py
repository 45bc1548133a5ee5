"""What an index keeps of headers comes back; indexes of before know less and say so."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranklog.layout.frame_refs import frame_parts_to_map, frames_with_parts
from ranklog.model.index import FrameRef

_HASH = st.binary(min_size=16, max_size=16).map(bytes.hex).filter(lambda text: text != "0" * 32)
_PART = st.tuples(_HASH, st.integers(0, 2**40), st.integers(1, 2**20)).map(
    lambda part: (part[0], part[1], part[1] + part[2])
)
_FRAME = st.builds(
    FrameRef,
    agent=st.just("0a"),
    number=st.integers(0, 99),
    header_hash=_HASH,
    previous=_HASH | st.just(""),
    payload_hash=_HASH,
    parts=st.lists(_PART, max_size=4).map(tuple),
    dropped=st.integers(0, 2**40),
)


@given(st.lists(_FRAME | st.builds(FrameRef, st.just("0b"), st.integers(0, 9), _HASH)).map(tuple))
def test_frames_come_back_as_they_were(frames: tuple[FrameRef, ...]) -> None:
    bare = tuple(FrameRef(one.agent, one.number, one.header_hash) for one in frames)
    data = frame_parts_to_map(frames)
    assert frames_with_parts(bare, data.get("frame_parts")) == frames


def test_frames_of_before_take_no_bytes_and_have_no_parts() -> None:
    frames = (FrameRef("0a", 1, "ab" * 16),)
    assert frame_parts_to_map(frames) == {}
    assert frames_with_parts(frames, None)[0].parts is None


def test_damage_is_an_error() -> None:
    frames = (FrameRef("0a", 1, "ab" * 16, "", "cd" * 16, (("ef" * 16, 0, 5),)),)
    data = frame_parts_to_map(frames)["frame_parts"]
    with pytest.raises((ValueError, TypeError)):
        frames_with_parts(frames, [*data[:7], [1, []]])
