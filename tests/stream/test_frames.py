from __future__ import annotations

import dataclasses
import struct

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from ranklog import limits
from ranklog.errors import Corrupt, NewerVersion, TooLarge
from ranklog.model.frame import CallSite, Drop, Fence, Frame, StreamEnd
from ranklog.model.stream import Stream
from ranklog.stream import frames
from ranklog.stream.builder import FrameBuilder
from ranklog.stream.columns import transpose
from ranklog.stream.frames import (
    VERSION,
    decode_frame,
    encode_frame,
    frame_is_sealed_by,
    header_hash,
    peek_header,
    seal_frame,
)
from ranklog.stream.header import encode_header, hash_header

# What version 1 wrote on the day it was made: it is read for ever. The payload is not compressed
# the same by every zstd, so writing is compared before compression (the header and its hash).
GOLDEN = bytes.fromhex(
    "524c46520100000068010000c1000000e2746a66b38a792d82277dc32722787e9da764656661756c74a2613903d9"
    "206162616261626162616261626162616261626162616261626162616261626162a46c696e65041e010193dc0013"
    "a764656661756c74a464656d6fa26c3100a26e300000a76c6f6767696e67a430306666a564656e7365a870726f64"
    "75636572c2c0c005029192ce0007349e9192050790c0dc0013a764656661756c74a464656d6fa26c3100a26e3001"
    "01a6737464657272a430306666a564656e7365a870726f6475636572c2c0a861edb2802e6c6f67000290919204a5"
    "71756f7461c0dc0013a764656661756c74a464656d6fa26c3100a26e300202a76c6f6767696e67a430306666a564"
    "656e7365a870726f6475636572c2c0c0000090909200f79193ab747261696e2e70793a3132a473746570a5747261"
    "696e9494a3626967a3737472011694a464617461a3737472010594a26c72a5666c6f6174010894a6746f6b656e73"
    "a3696e740108c41019f0f433d4dca2eefb235697c5fd1a4c28b52ffd601200bd0500b209242c9029690ce70e7d7d"
    "57b153fde5aaf0301ff3d61c122460f45d74fb88db6e42848e9d9366ac6a886cc491bd53f3577ff202ff62b8501e"
    "d38193fef51338c73dcda3ea20851ae7a9024293a0fa2f8714414c124505a46127988507753c2288833e060e1389"
    "484400042c10c2c60be1fbc9febbab76d752f000638cc518a39452ce39e77befb5d69a92a82d303256ab030f002f"
    "c272030c989901ea00505752f24088bbb22c8301b195ccb96252519052f72ca005"
)
# What version 2 wrote: a header with manifests.
GOLDEN_2 = bytes.fromhex(
    "524c465202000000d9000000350000005a407e3d6dfe7a6b9438763a36fbcfca9da764656661756c74a2613904d9"
    "206364636463646364636463646364636463646364636463646364636463646364a46c696e650109000092dc0013"
    "a764656661756c74a464656d6fa26c3100a26e300000a76c6f6767696e67a430306666a564656e7365a870726f64"
    "75636572c2c0c005019090c0dc0014a764656661756c74a464656d6fa26c3100a26e300101a76c6f6767696e67a4"
    "30306666a564656e7365a870726f6475636572c2c0c000009090c092c40b6669727374207069656365c40200ff90"
    "90c410f4ab8e35b24825106392995e458c82f928b52ffd20336501003402000000002a36fe9c97171400ffffffff"
    "000000800080090000006c6f737320322e33310200609c0d2401"
)
GOLDEN_HEADER_HASH = "e2746a66b38a792d82277dc32722787e"


def stream(rank: int | None = 0, channel: str = "logging", **changes: object) -> Stream:
    values = {
        "tenant": "default",
        "run": "demo",
        "launch": "l1",
        "attempt": 0,
        "host": "n0",
        "rank": rank,
        "local_rank": rank,
        "channel": channel,
        "incarnation": "00ff",
    }
    return Stream(**(values | changes))  # type: ignore[arg-type]


def small_frame() -> Frame:
    builder = FrameBuilder("default", "a9", 3, "ab" * 16)
    site = CallSite("train.py:12", "step", "train")
    first, second = stream(0), stream(1, "stderr", source="a\udc80.log")
    builder.add(first, 5, 1_700_000_000_000_000_000, 20, site, "loss 2.31", iteration=7)
    builder.add(second, 0, 1_700_000_000_000_000_500, None, None, b"[rank1]: x\xff", 9, 2)
    builder.add(
        first,
        6,
        1_700_000_000_000_001_000,
        40,
        site,
        "Träceback",
        group=5,
        rank=None,
        metadata={"lr": 0.5, "tokens": 12, "data": "c4/en", "big": 2**70},
    )
    builder.add(second, 1, 1_700_000_000_000_001_500, None, None, "", rank=3, raw=b"\xfe")
    builder.fence(first, 7, Fence(472_222, ((5, 7),)))
    builder.drop(second, 2, Drop(4, "quota"))
    builder.end(stream(2), StreamEnd(0, -9))
    return builder.build()


def frame_with_manifests() -> Frame:
    builder = FrameBuilder("default", "a9", 4, "cd" * 16)
    builder.add(stream(0), 5, 1_700_000_000_000_000_000, 20, None, "loss 2.31")
    builder.manifest(stream(1), 0, b"first piece")
    builder.manifest(stream(1), 0, b"\x00\xff")
    return builder.build()


def test_a_heartbeat_comes_back_with_and_without_manifests() -> None:
    builder = FrameBuilder("default", "a9", 4, "")
    builder.alive(stream(1), 7, 1_700_000_000_000_000_005)
    builder.alive(stream(1), 7, 1_700_000_000_000_000_004)
    builder.manifest(stream(2), 0, b"piece")
    builder.alive(stream(2), 0, 5)
    frame = builder.build()

    assert [(entry.first_seq, entry.alive_ns) for entry in frame.streams] == [
        (7, 1_700_000_000_000_000_005),
        (0, 5),
    ]
    assert encode_frame(frame)[4] == 2
    assert decode_frame(encode_frame(frame)) == frame


@st.composite
def any_frames(draw: st.DrawFn) -> Frame:
    builder = FrameBuilder(draw(st.text(max_size=4)), "a", draw(st.integers(0, 9)), "")
    streams = [stream(rank) for rank in range(draw(st.integers(1, 3)))]
    next_seq = [draw(st.integers(0, 2**40)) for _ in streams]
    values = st.one_of(
        st.integers(-(2**70), 2**70), st.floats(allow_nan=False), st.text(max_size=5)
    )
    for _ in range(draw(st.integers(0, 12))):
        which = draw(st.integers(0, len(streams) - 1))
        text = draw(st.binary(max_size=20))
        builder.add(
            streams[which],
            next_seq[which],
            draw(st.integers(0, 2**63 - 1)),
            draw(st.none() | st.integers(1, 60)),
            draw(st.none() | st.builds(CallSite, st.none() | st.text(max_size=3))),
            text,
            draw(st.integers(0, len(text))),
            rank=draw(st.none() | st.integers(0, 99)),
            iteration=draw(st.none() | st.integers(0, 99)),
            metadata=draw(st.dictionaries(st.text(max_size=3), values, max_size=3)),
            raw=draw(st.none() | st.binary(max_size=4)),
        )
        next_seq[which] += 1
    for piece in draw(st.lists(st.binary(max_size=8), max_size=2)):
        which = draw(st.integers(0, len(streams) - 1))
        builder.manifest(streams[which], next_seq[which], piece)
    return builder.build()


def test_a_frame_comes_back_as_it_was() -> None:
    frame = small_frame()

    assert decode_frame(encode_frame(frame)) == frame


@given(any_frames(), st.integers(1, 9))
@settings(max_examples=60)
def test_every_frame_comes_back_as_it_was(frame: Frame, level: int) -> None:
    assert decode_frame(encode_frame(frame, level=level)) == frame


def test_a_frame_without_rows_comes_back() -> None:
    builder = FrameBuilder("default", "a", 0, "")
    builder.end(stream(), StreamEnd(0, 0))
    frame = builder.build()

    assert decode_frame(encode_frame(frame)) == frame


def test_version_1_is_read_for_ever() -> None:
    assert decode_frame(GOLDEN) == small_frame()


def test_the_header_of_version_1_is_written_as_it_was() -> None:
    assert header_hash(small_frame()) == GOLDEN_HEADER_HASH
    at = peek_header(GOLDEN).payload_at
    assert encode_frame(small_frame())[24:at] == GOLDEN[24:at]


def test_a_frame_without_manifests_stays_readable_for_readers_of_version_1() -> None:
    assert encode_frame(small_frame())[4] == 1
    assert encode_frame(frame_with_manifests())[4] == 2


def test_version_2_is_read_for_ever() -> None:
    assert decode_frame(GOLDEN_2) == frame_with_manifests()


def test_the_header_of_version_2_is_written_as_it_was() -> None:
    at = peek_header(GOLDEN_2).payload_at
    assert encode_frame(frame_with_manifests())[4:at] == GOLDEN_2[4:at]


@pytest.mark.parametrize(("version", "frame"), [(2, "small"), (1, "manifests")])
def test_a_version_that_does_not_fit_what_the_header_says_is_corrupt(
    version: int, frame: str
) -> None:
    made = small_frame() if frame == "small" else frame_with_manifests()
    data = bytearray(encode_frame(made))
    data[4] = version

    with pytest.raises(Corrupt, match="version"):
        decode_frame(bytes(data))


def test_a_manifest_over_the_limit_is_refused() -> None:
    builder = FrameBuilder("default", "a", 0, "")

    with pytest.raises(TooLarge, match="manifest"):
        builder.manifest(stream(), 0, bytes(limits.MANIFEST_BYTES_MAX + 1))
    assert builder.is_empty


def test_peeking_tells_the_header_without_the_payload() -> None:
    data = encode_frame(small_frame())
    peeked = peek_header(data[:-8] + bytes(8))

    assert (peeked.header.tenant, peeked.header.number, peeked.header.rows) == ("default", 3, 4)
    assert peeked.header.streams == small_frame().streams
    assert peeked.header_hash == header_hash(small_frame())


def test_the_header_hash_does_not_depend_on_compression() -> None:
    hashes = {peek_header(encode_frame(small_frame(), level=n)).header_hash for n in (1, 3, 19)}

    assert hashes == {header_hash(small_frame())}


def test_a_mac_is_outside_the_chain_and_does_not_change_the_frame() -> None:
    data = encode_frame(small_frame())
    sealed = seal_frame(data, b"key")

    assert decode_frame(sealed) == small_frame()
    assert peek_header(sealed).header_hash == peek_header(data).header_hash
    assert seal_frame(sealed, b"key") == sealed
    assert frame_is_sealed_by(sealed, b"key")
    assert not frame_is_sealed_by(sealed, b"other key")
    assert not frame_is_sealed_by(data, b"key")


def test_a_changed_payload_breaks_the_mac() -> None:
    sealed = bytearray(seal_frame(encode_frame(small_frame()), b"key"))
    sealed[-1] ^= 1

    assert not frame_is_sealed_by(bytes(sealed), b"key")


def test_a_newer_version_is_named_so() -> None:
    data = bytearray(encode_frame(small_frame()))
    data[4] = VERSION + 1

    with pytest.raises(NewerVersion, match=f"version {VERSION + 1}"):
        decode_frame(bytes(data))


def test_every_truncation_is_corrupt() -> None:
    data = encode_frame(small_frame())

    for length in range(len(data)):
        with pytest.raises(Corrupt):
            decode_frame(data[:length])


def test_every_flipped_bit_is_corrupt_or_newer() -> None:
    data = seal_frame(encode_frame(small_frame()), b"key")
    mac = range(frames.PRELUDE.size, frames.PRELUDE.size + frames.MAC_BYTES)

    for at in range(len(data)):
        if at in mac:
            continue  # the MAC is the receiver's to check
        for bit in range(8):
            broken = bytearray(data)
            broken[at] ^= 1 << bit
            if _decodes_otherwise(bytes(broken)):
                pytest.fail(f"bit {bit} of byte {at} went unnoticed")


def _decodes_otherwise(data: bytes) -> bool:
    """Whether damaged bytes gave another frame; a flip that zstd ignores gives the same one."""
    try:
        return decode_frame(data) != small_frame()
    except (Corrupt, NewerVersion):
        return False


@given(st.binary(max_size=200))
def test_random_bytes_are_corrupt(data: bytes) -> None:
    with pytest.raises((Corrupt, NewerVersion)):
        decode_frame(data)


@given(st.data())
@settings(max_examples=300)
def test_a_forged_header_with_a_right_hash_never_raises_anything_else(data: st.DataObject) -> None:
    whole = encode_frame(small_frame())
    peeked = peek_header(whole)
    head = bytearray(whole[frames.PRELUDE.size : peeked.payload_at])
    for _ in range(data.draw(st.integers(1, 3))):
        head[data.draw(st.integers(0, len(head) - 1))] = data.draw(st.integers(0, 255))

    _decodes_otherwise(_assembled(bytes(head), whole[peeked.payload_at :]))


@given(st.binary(max_size=80))
def test_any_header_with_a_right_hash_never_raises_anything_else(head: bytes) -> None:
    whole = encode_frame(small_frame())

    _decodes_otherwise(_assembled(head, whole[peek_header(whole).payload_at :]))


def _assembled(head: bytes, packed: bytes) -> bytes:
    digest = hash_header(head)
    prelude = frames.PRELUDE.pack(frames.MAGIC, 1, 0, 0, len(head), len(packed), digest)
    return prelude + head + packed


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("site", struct.pack("<4I", 1, 0, 2, 0)),
        ("stream", struct.pack("<4H", 0, 1, 0, 3)),
        ("stream", struct.pack("<4H", 0, 1, 0, 0)),
        ("body_at", struct.pack("<4I", 0, 9, 0, 1)),
        ("text_length", struct.pack("<4I", 1, 1, 1, 1)),
        ("ts", bytes(24)),
        ("raw_rows", struct.pack("<I", 4)),
        ("raw_length", struct.pack("<I", 2)),
    ],
)
def test_numbers_that_point_nowhere_are_corrupt(column: str, value: bytes) -> None:
    frame = dataclasses.replace(small_frame(), **{column: value})  # type: ignore[arg-type]
    payload = b"".join(
        transpose(part, width) if width > 1 else part for part, width in frames._parts(frame)
    )
    head = encode_header(frames._header_of(frame))
    packed = zstandard.ZstdCompressor().compress(payload)

    with pytest.raises(Corrupt):
        decode_frame(_assembled(head, packed))
    with pytest.raises(Corrupt):
        encode_frame(frame)


def test_a_payload_over_the_limit_is_refused_before_it_is_unpacked() -> None:
    frame = small_frame()
    header = dataclasses.replace(
        frames._header_of(frame), text_bytes=limits.FRAME_PAYLOAD_BYTES_MAX
    )
    bomb = zstandard.ZstdCompressor().compress(bytes(limits.FRAME_PAYLOAD_BYTES_MAX + 10))

    with pytest.raises(Corrupt, match="limit"):
        decode_frame(_assembled(encode_header(header), bomb))


def test_a_payload_that_unpacks_to_more_than_it_says_is_corrupt() -> None:
    whole = encode_frame(small_frame())
    head = whole[frames.PRELUDE.size : peek_header(whole).payload_at]
    bomb = zstandard.ZstdCompressor().compress(bytes(10_000_000))

    with pytest.raises(Corrupt, match="says"):
        decode_frame(_assembled(head, bomb))


def test_a_frame_over_the_payload_limit_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FRAME_PAYLOAD_BYTES_MAX", 100)

    with pytest.raises(TooLarge, match="limit 100"):
        encode_frame(small_frame())


@pytest.mark.parametrize("hour", [2_562_047, 2**62])
def test_a_fence_beyond_64_bits_of_nanoseconds_is_corrupt(hour: int) -> None:
    builder = FrameBuilder("default", "00", 0, "")
    builder.fence(stream(), 0, Fence(hour, ((0, 1),)))
    with pytest.raises(Corrupt, match=f"a fence of hour {hour}"):
        decode_frame(encode_frame(builder.build()))
