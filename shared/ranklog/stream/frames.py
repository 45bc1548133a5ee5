"""Frames as bytes. The format is docs/frame-format.md; the values are ranklog.model.frame.

    magic 4 · version 1 · zero 1 · MAC length 2 · header length 4 · payload length 4 · header hash 16
    MAC · header (msgpack) · payload (zstd)

Text is taken as bytes: that it is valid UTF-8 is checked by ingest, in compiled code.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from dataclasses import dataclass

import zstandard

from ranklog import limits
from ranklog.errors import Corrupt, NewerVersion, TooLarge
from ranklog.model.frame import KIND_POINT, Frame, MetadataColumn
from ranklog.stream.columns import COLUMNS, ROW_BYTES, check_columns, restore, transpose
from ranklog.stream.header import (
    FrameHeader,
    MetadataShape,
    check_header,
    decode_header,
    encode_header,
    hash_header,
    version_of,
)
from ranklog.stream.point_columns import (
    POINT_ROW_BYTES,
    check_points,
    point_frame_of,
    point_parts,
    point_sizes,
)
from ranklog.stream.strict import HASH_BYTES

MAGIC = b"RLFR"
# A frame is of the lowest version that can say what is in it: readers of version 1 take every frame
# but those with manifests, readers of version 2 every frame of lines.
VERSION = 3
MAC_BYTES = 32
PRELUDE = struct.Struct("<4sBBHII16s")


@dataclass(frozen=True, slots=True)
class PeekedFrame:
    """What can be said of a frame without unpacking it. `mac` is b"" where it has none."""

    header: FrameHeader
    header_hash: str
    mac: bytes
    payload_at: int  # offset of the compressed payload in the frame's bytes


def encode_frame(frame: Frame, *, level: int = 1) -> bytes:
    """A frame's bytes, without a MAC. `level` is zstd's. Raises TooLarge, Corrupt (our bug)."""
    header = _header_of(frame)
    check_header(header)
    _check(frame)
    payload = b"".join(
        transpose(part, width) if width > 1 else part for part, width in _parts(frame)
    )
    if len(payload) > limits.FRAME_PAYLOAD_BYTES_MAX:
        raise TooLarge(
            f"frame payload of {len(payload)} bytes, limit {limits.FRAME_PAYLOAD_BYTES_MAX}",
            hint="cut the frame before it is built",
        )
    head = encode_header(header)
    packed = zstandard.ZstdCompressor(level=level).compress(payload)
    version = version_of(header)
    prelude = PRELUDE.pack(MAGIC, version, 0, 0, len(head), len(packed), hash_header(head))
    return b"".join((prelude, head, packed))


def decode_frame(data: bytes, peeked: PeekedFrame | None = None) -> Frame:
    """The frame of `encode_frame`'s bytes, MAC or not. Raises Corrupt, NewerVersion; no other.

    `peeked` is what `peek_header` gave for these bytes, where it was asked already.
    """
    peeked = peeked or peek_header(data)
    header = peeked.header
    payload = _unpack(memoryview(data)[peeked.payload_at :], _payload_bytes(header))
    frame = _frame_of(header, payload)
    if _payload_hash(frame) != header.payload_hash:
        raise Corrupt("frame payload does not have the hash of its header")
    _check(frame)
    return frame


def _check(frame: Frame) -> None:
    if frame.points is not None:
        check_points(frame)
    else:
        check_columns(frame)


def peek_header(data: bytes) -> PeekedFrame:
    """The header, checked against its hash; the payload stays packed.

    Raises Corrupt, NewerVersion.
    """
    if len(data) < PRELUDE.size:
        raise Corrupt(f"frame of {len(data)} bytes is shorter than its prelude")
    magic, version, zero, mac_bytes, head_bytes, packed_bytes, digest = PRELUDE.unpack_from(data)
    if magic != MAGIC:
        raise Corrupt(f"frame begins with {magic!r}, not {MAGIC!r}")
    if version > VERSION:
        raise NewerVersion(
            f"frame of version {version}, this ranklog reads up to {VERSION}",
            hint="update ranklog where frames are read",
        )
    if version == 0 or zero != 0 or mac_bytes not in (0, MAC_BYTES):
        raise Corrupt("frame prelude has a value that no version writes")
    head_at = PRELUDE.size + mac_bytes
    payload_at = head_at + head_bytes
    if payload_at + packed_bytes != len(data):
        raise Corrupt(f"frame of {len(data)} bytes, its prelude says {payload_at + packed_bytes}")
    head = bytes(data[head_at:payload_at])
    if hash_header(head) != digest:
        raise Corrupt("frame header does not have the hash of its prelude")
    header = decode_header(head)
    if version_of(header) != version:
        raise Corrupt(f"frame of version {version} holds what version {version_of(header)} does")
    if _payload_bytes(header) > limits.FRAME_PAYLOAD_BYTES_MAX:
        raise Corrupt(
            f"frame claims {_payload_bytes(header)} bytes of payload, "
            f"limit {limits.FRAME_PAYLOAD_BYTES_MAX}"
        )
    return PeekedFrame(header, digest.hex(), bytes(data[PRELUDE.size : head_at]), payload_at)


def header_hash(frame: Frame) -> str:
    """32 hex digits: what the next frame of the agent names as `previous`."""
    return hash_header(encode_header(_header_of(frame))).hex()


def encoded_hash(data: bytes) -> str:
    """`header_hash` of a frame that `encode_frame` just gave, from its bytes."""
    digest: bytes = PRELUDE.unpack_from(data)[6]
    return digest.hex()


def seal_frame(data: bytes, key: bytes) -> bytes:
    """The frame with its MAC set: HMAC-SHA256 over prelude (MAC length included), header, payload.

    Done when a frame is sent, so that a rotated key re-seals what is spooled.
    """
    peeked = peek_header(data)
    prelude = bytearray(data[: PRELUDE.size])
    struct.pack_into("<H", prelude, 6, MAC_BYTES)
    body = data[PRELUDE.size + len(peeked.mac) :]
    return bytes(prelude) + hmac.digest(key, bytes(prelude) + body, "sha256") + body


def unseal_frame(data: bytes) -> bytes:
    """The frame without a MAC. Raises Corrupt, NewerVersion."""
    mac = peek_header(data).mac
    prelude = bytearray(data[: PRELUDE.size])
    struct.pack_into("<H", prelude, 6, 0)
    return bytes(prelude) + data[PRELUDE.size + len(mac) :]


def frame_is_sealed_by(data: bytes, key: bytes) -> bool:
    """Whether the frame has a MAC and it is this key's. Raises Corrupt, NewerVersion."""
    peek_header(data)
    return mac_is_of(data, key)


def has_mac(data: bytes) -> bool:
    """Whether bytes that `peek_header` took are sealed, by whomever."""
    mac_bytes: int = PRELUDE.unpack_from(data)[3]
    return mac_bytes > 0


def mac_is_of(data: bytes, key: bytes) -> bool:
    """`frame_is_sealed_by` of bytes that `peek_header` took: their header is not read again."""
    mac_bytes: int = PRELUDE.unpack_from(data)[3]
    end = PRELUDE.size + mac_bytes
    digest = hmac.new(key, data[: PRELUDE.size], "sha256")
    digest.update(memoryview(data)[end:])
    return mac_bytes > 0 and hmac.compare_digest(data[PRELUDE.size : end], digest.digest())


def _header_of(frame: Frame) -> FrameHeader:
    return FrameHeader(
        tenant=frame.tenant,
        agent=frame.agent,
        number=frame.number,
        previous=frame.previous,
        kind=frame.kind,
        rows=frame.rows,
        text_bytes=len(frame.text),
        raw_rows=len(frame.raw_rows) // 4,
        raw_bytes=len(frame.raw),
        streams=frame.streams,
        sites=frame.sites,
        metadata=tuple(
            MetadataShape(column.key, column.type, len(column.rows) // 4, len(column.values))
            for column in frame.metadata
        ),
        payload_hash=_payload_hash(frame),
        point_bytes=() if frame.points is None else point_sizes(frame.points),
    )


def _parts(frame: Frame) -> list[tuple[bytes, int]]:
    """The payload's parts in order, each with the width of its numbers (1: bytes)."""
    if frame.points is not None:
        return point_parts(frame)
    parts = [(getattr(frame, name), width) for name, _, width in COLUMNS]
    parts.append((frame.text, 1))
    for column in frame.metadata:
        parts.append((column.rows, 4))
        parts.append((column.values, 1 if column.type == "str" else 8))
        parts.append((column.lengths, 4))
    parts += [(frame.raw_rows, 4), (frame.raw_length, 4), (frame.raw, 1)]
    return parts


def _payload_bytes(header: FrameHeader) -> int:
    if header.kind == KIND_POINT:
        return POINT_ROW_BYTES * header.rows + sum(header.point_bytes)
    metadata = sum(
        shape.value_bytes + shape.rows * (8 if shape.type == "str" else 4)
        for shape in header.metadata
    )
    raw = 8 * header.raw_rows + header.raw_bytes
    return ROW_BYTES * header.rows + header.text_bytes + metadata + raw


def _payload_hash(frame: Frame) -> bytes:
    """Over the canonical columns: the same whatever compressed or transposed them."""
    digest = hashlib.blake2b(digest_size=HASH_BYTES, person=b"ranklog.payload")
    for part, _ in _parts(frame):
        digest.update(part)
    return digest.digest()


def _unpack(packed: memoryview, size: int) -> bytes:
    """The payload; never more than `size` bytes of memory for it."""
    try:
        claimed = zstandard.frame_content_size(packed)
        if claimed != size:
            raise Corrupt(f"frame payload says {claimed} bytes, its header {size}")
        payload: bytes = zstandard.ZstdDecompressor().decompress(packed, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise Corrupt(f"frame payload is no zstd: {error}") from error
    if len(payload) != size:
        raise Corrupt(f"frame payload has {len(payload)} bytes, its header says {size}")
    return payload


def _frame_of(header: FrameHeader, payload: bytes) -> Frame:
    if header.kind == KIND_POINT:
        return point_frame_of(header, payload)
    at = 0

    def take(size: int, width: int = 1) -> bytes:
        nonlocal at
        part = payload[at : at + size]
        at += size
        return restore(part, width) if width > 1 else part

    columns = {name: take(width * header.rows, width) for name, _, width in COLUMNS}
    text = take(header.text_bytes)
    metadata = []
    for shape in header.metadata:
        is_text = shape.type == "str"
        rows = take(4 * shape.rows, 4)
        values = take(shape.value_bytes, 1 if is_text else 8)
        lengths = take(4 * shape.rows, 4) if is_text else b""
        metadata.append(MetadataColumn(shape.key, shape.type, rows, values, lengths))
    raw_rows, raw_length = take(4 * header.raw_rows, 4), take(4 * header.raw_rows, 4)
    return Frame(
        tenant=header.tenant,
        agent=header.agent,
        number=header.number,
        previous=header.previous,
        streams=header.streams,
        rows=header.rows,
        text=text,
        sites=header.sites,
        metadata=tuple(metadata),
        raw_rows=raw_rows,
        raw_length=raw_length,
        raw=take(header.raw_bytes),
        kind=header.kind,
        points=None,
        **columns,
    )
