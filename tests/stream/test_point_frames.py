"""Frames of points: their bytes, what they refuse, and who is too old to read them."""

from __future__ import annotations

import dataclasses
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranklog.errors import Corrupt, NewerVersion
from ranklog.model.frame import Frame
from ranklog.stream import frames
from ranklog.stream.frames import decode_frame, encode_frame, peek_header, seal_frame
from ranklog.stream.header import hash_header
from tests.point_frames import STREAM, T0, Record, point_frame, points_of

SUMMARY = {
    "count": 3,
    "nan": 1,
    "inf": 0,
    "min": -0.5,
    "max": 2.0,
    "mean": 0.75,
    "norm": 2.5,
    "quantiles": {"0.5": 0.25},
    "histogram": {"edges": [-0.5, 0.0, 2.0], "counts": [1, 2]},
}
RECORDS = [
    Record({"loss": 2.31, "lr": 1e-4}, {}, T0, 7),
    Record({"loss": 2.25, "lr": None}, {}, T0 + 5, 8, context={"dataset": "c4/en"}),
    Record({"g": SUMMARY, "ü": float("nan")}, {"layer": "h.3", "shard": 2}, T0 + 9, None, rank=-1),
]
GOLDEN = bytes.fromhex(
    "524c46520300000081000000df000000280edf7d1186b54e57603dafa0185ba39ea461636d65a2306101a0a5"
    "706f696e740300000091dc0013a461636d65a56c6c616d61a2313700a56770752d310303a974656c656d6574"
    "7279a130a564656e7365a870726f6475636572c2c0c0050390909208009090c4104fed72f79fa730d1613417"
    "b3db7b5efddc00150c0c30041009081b0808100413040218280410042828b52ffd608700ad0600228c2a3070"
    "4bd318446b6eb84e45b80ceb5cf5da8aaf6a54e2236c210a2535155f7d66c3ee014c424bf29dfe0366fcf949"
    "933b0511c62987bcb642c8a1c561a4307fac2d5bfc0cb514cf7390586727cf941319d9e92758d429c5e06c44"
    "9292b909dbb0205967a5e742463b51d306aab1312145735644ab53e65faaaa8a306edba607faff80f1efd1f1"
    "0f12f18f90f10f51f0af3039f7964040c5b22adf344d9665d77561180641d07bef1f00f81100806b21203818"
    "20109ce730608d2982dc158606b83471b6e01668e2264c00415357ab9b718136"
)


def small_frame() -> Frame:
    return point_frame(RECORDS, first_seq={STREAM: 5}, ends=[STREAM])


def test_version_3_is_this() -> None:
    assert decode_frame(GOLDEN) == small_frame()
    assert encode_frame(small_frame())[:8] == GOLDEN[:8]
    seen = [
        (p.seq, p.series, p.dims, p.value, p.rank, p.context)
        for p in points_of(decode_frame(GOLDEN))
    ]
    assert seen[:4] == [
        (5, "loss", "{}", 2.31, 3, None),
        (5, "lr", "{}", 1e-4, 3, None),
        (6, "loss", "{}", 2.25, 3, '{"dataset":"c4/en"}'),
        (6, "lr", "{}", None, 3, '{"dataset":"c4/en"}'),
    ]
    assert (seen[4][2], seen[4][4]) == ('{"layer":"h.3","shard":2}', None)


def test_a_reader_of_older_rules_says_that_the_frame_is_newer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = encode_frame(small_frame())
    monkeypatch.setattr(frames, "VERSION", 2)
    with pytest.raises(NewerVersion, match="version 3, this ranklog reads up to 2"):
        decode_frame(data)


def test_every_truncation_is_corrupt() -> None:
    data = encode_frame(small_frame())
    for length in range(len(data)):
        with pytest.raises(Corrupt):
            decode_frame(data[:length])


def test_every_flipped_bit_is_corrupt_or_newer() -> None:
    data = encode_frame(small_frame())
    for at in range(len(data)):
        for bit in range(8):
            broken = bytearray(data)
            broken[at] ^= 1 << bit
            if _decodes_otherwise(bytes(broken)):
                pytest.fail(f"bit {bit} of byte {at} went unnoticed")


def _decodes_otherwise(data: bytes) -> bool:
    try:
        return decode_frame(data) != small_frame()
    except (Corrupt, NewerVersion):
        return False


@settings(max_examples=200)
@given(st.data())
def test_a_forged_header_with_a_right_hash_never_raises_anything_else(data: st.DataObject) -> None:
    whole = encode_frame(small_frame())
    peeked = peek_header(whole)
    head = bytearray(whole[frames.PRELUDE.size : peeked.payload_at])
    for _ in range(data.draw(st.integers(1, 3))):
        head[data.draw(st.integers(0, len(head) - 1))] = data.draw(st.integers(0, 255))
    packed, digest = whole[peeked.payload_at :], hash_header(bytes(head))
    prelude = frames.PRELUDE.pack(frames.MAGIC, 3, 0, 0, len(head), len(packed), digest)
    _decodes_otherwise(prelude + bytes(head) + packed)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("set", struct.pack("<3I", 0, 0, 9)),
        ("set", bytes(8)),
        ("context", struct.pack("<3I", 0, 2, 0)),
        ("values", bytes(40)),
        ("missing", struct.pack("<2I", 3, 3)),
        ("missing", struct.pack("<I", 6)),
        ("name_length", struct.pack("<I", 1)),
        ("set_dims", struct.pack("<2I", 0, 2)),
        ("set_size", struct.pack("<2I", 2, 3)),
        ("set_name", struct.pack("<4I", 0, 1, 2, 4)),
        ("summary", struct.pack("<I", 6)),
        ("summary_flags", struct.pack("<H", 1 << 7)),
        ("summary_counts", bytes(16)),
        ("summary_numbers", bytes(32)),
        ("quantile_size", struct.pack("<I", 2)),
        ("bin_size", struct.pack("<I", 1)),
    ],
)
def test_numbers_that_point_nowhere_are_corrupt(column: str, value: bytes) -> None:
    frame = small_frame()
    assert frame.points is not None
    points = dataclasses.replace(frame.points, **{column: value})
    with pytest.raises(Corrupt):
        encode_frame(dataclasses.replace(frame, points=points))


def test_a_sealed_frame_of_points_is_the_same_frame() -> None:
    data = encode_frame(small_frame())
    sealed = seal_frame(data, b"key")
    assert decode_frame(sealed) == decode_frame(data)
    assert frames.frame_is_sealed_by(sealed, b"key")
