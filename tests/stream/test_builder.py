from __future__ import annotations

import struct

import pytest

from ranklog.model.frame import NO_GROUP, NO_RANK, STREAM_RANK, CallSite
from ranklog.stream.builder import FrameBuilder
from ranklog.stream.frames import encode_frame
from tests.stream.test_frames import small_frame, stream


def test_columns_are_what_the_model_says() -> None:
    frame = small_frame()

    assert struct.unpack("<4H", frame.stream) == (0, 1, 0, 1)
    assert struct.unpack("<4h", frame.level) == (20, 0, 40, 0)
    assert struct.unpack("<4I", frame.site) == (1, 0, 1, 0)
    assert struct.unpack("<4I", frame.group) == (NO_GROUP, NO_GROUP, 1, NO_GROUP)
    assert struct.unpack("<4i", frame.rank) == (STREAM_RANK, STREAM_RANK, NO_RANK, 3)
    assert frame.text == b"loss 2.31[rank1]: x\xffTr\xc3\xa4ceback"
    assert [(s.first_seq, s.rows) for s in frame.streams] == [(5, 2), (0, 2), (0, 0)]
    assert [(c.key, c.type, c.values) for c in frame.metadata] == [
        ("big", "str", b"1180591620717411303424"),
        ("data", "str", b"c4/en"),
        ("lr", "float", struct.pack("<d", 0.5)),
        ("tokens", "int", struct.pack("<q", 12)),
    ]


def test_a_hole_in_seq_is_refused() -> None:
    builder = FrameBuilder("t", "a", 0, "")
    builder.add(stream(), 0, 1, None, None, "a")

    with pytest.raises(ValueError, match="no holes"):
        builder.add(stream(), 2, 1, None, None, "b")


def test_a_row_that_does_not_fit_leaves_the_frame_as_it_was() -> None:
    builder = FrameBuilder("t", "a", 0, "")
    builder.add(stream(), 0, 1, None, None, "a")

    with pytest.raises(OverflowError):
        builder.add(stream(), 1, 1, 2**20, None, "b")

    builder.add(stream(), 1, 1, 20, None, "c")
    assert builder.build().text == b"ac"


def test_equal_streams_and_call_sites_are_one() -> None:
    builder = FrameBuilder("t", "a", 0, "")
    for seq in range(3):
        builder.add(stream(), seq, seq, 20, CallSite("a.py:1"), "x")
    frame = builder.build()

    assert (len(frame.streams), len(frame.sites), frame.rows) == (1, 1, 3)


def test_bytes_bounds_the_encoded_frame() -> None:
    builder = FrameBuilder("t", "a", 0, "")
    for seq in range(300):
        text = bytes((seq * 7 + at * 13) % 251 for at in range(50))
        builder.add(stream(seq % 5), seq // 5, seq, 20, CallSite(f"a.py:{seq}"), text)

    assert len(encode_frame(builder.build())) <= builder.bytes
