"""A frame's header: what is in the payload, whose it is, and which header came before it.

Canonical: one header has one encoding, so its hash can be computed from a decoded frame. Reading is
strict; whatever is not exactly what `encode_header` writes is Corrupt.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import msgpack

from ranklog import limits
from ranklog.errors import Corrupt, TooLarge
from ranklog.model.frame import KIND_POINT, CallSite, Drop, Fence, FrameStream, StreamEnd
from ranklog.model.stream import ARRIVAL, DENSE, Stream
from ranklog.stream.strict import (
    HASH_BYTES,
    INT64_MAX,
    read_digest,
    read_flag,
    read_list,
    read_manifest,
    read_natural,
    read_optional,
    read_rank,
    read_signed,
    read_text,
    read_word,
)

METADATA_TYPES = ("int", "float", "str")
STREAM_KINDS = (DENSE, ARRIVAL)

_known_sites: dict[tuple[str | None, str | None, str | None], CallSite] = {}
_SITES_KNOWN_MAX = 65_536


@dataclass(frozen=True, slots=True)
class MetadataShape:
    """One metadata column: how many rows have a value, and the bytes of its values."""

    key: str
    type: str  # int | float | str
    rows: int
    value_bytes: int


@dataclass(frozen=True, slots=True)
class FrameHeader:
    """Everything about a frame but its rows. `payload_hash` is over the canonical columns."""

    tenant: str
    agent: str
    number: int
    previous: str
    kind: str
    rows: int
    text_bytes: int
    raw_rows: int
    raw_bytes: int
    streams: tuple[FrameStream, ...]
    sites: tuple[CallSite, ...]
    metadata: tuple[MetadataShape, ...]
    payload_hash: bytes
    point_bytes: tuple[int, ...] = ()  # of kind "point": bytes of each of its columns


def version_of(header: FrameHeader) -> int:
    """The lowest version of the format that has a place for all that the header says."""
    if header.kind == KIND_POINT:
        return 3
    newer = any(entry.manifests or entry.alive_ns is not None for entry in header.streams)
    return 2 if newer else 1


def encode_header(header: FrameHeader) -> bytes:
    """The header's bytes: a msgpack array in the order of FrameHeader's fields."""
    fields = [
        header.tenant,
        header.agent,
        header.number,
        header.previous,
        header.kind,
        header.rows,
        header.text_bytes,
        header.raw_rows,
        header.raw_bytes,
        [_stream_fields(stream) for stream in header.streams],
        [[site.site, site.function, site.logger] for site in header.sites],
        [[shape.key, shape.type, shape.rows, shape.value_bytes] for shape in header.metadata],
        header.payload_hash,
        *([list(header.point_bytes)] if header.kind == KIND_POINT else []),
    ]
    # A path may hold bytes that are no UTF-8 (lone surrogates): they survive.
    packed: bytes = msgpack.packb(fields, unicode_errors="surrogatepass")
    return packed


def decode_header(data: bytes) -> FrameHeader:
    """The header that `encode_header` wrote. Raises Corrupt."""
    try:
        fields = msgpack.unpackb(data, unicode_errors="surrogatepass")
    except (ValueError, msgpack.UnpackException) as error:
        raise Corrupt(f"frame header is no msgpack: {error}") from error
    try:
        header = _header(fields)
    except RecursionError as error:  # pragma: no cover - msgpack's own depth limit comes first
        raise Corrupt("frame header is nested too deep") from error
    if encode_header(header) != data:
        raise Corrupt("frame header is not in canonical form")
    return header


def hash_header(encoded: bytes) -> bytes:
    """16 bytes: the hash that the next frame's header names as `previous`."""
    return hashlib.blake2b(encoded, digest_size=HASH_BYTES, person=b"ranklog.header").digest()


def _stream_fields(entry: FrameStream) -> list[Any]:
    stream = entry.stream
    end = entry.end
    # Members that version 2 has, as far as they say something.
    newer: list[Any] = [list(entry.manifests)] if entry.manifests else []
    if entry.alive_ns is not None:
        newer = [list(entry.manifests), entry.alive_ns]
    return [
        stream.tenant,
        stream.run,
        stream.launch,
        stream.attempt,
        stream.host,
        stream.rank,
        stream.local_rank,
        stream.channel,
        stream.incarnation,
        stream.kind,
        stream.certified,
        stream.copy,
        stream.world_size,
        stream.source,
        entry.first_seq,
        entry.rows,
        [[fence.hour, [list(pair) for pair in fence.ranges]] for fence in entry.fences],
        [[drop.lines, drop.reason] for drop in entry.drops],
        None if end is None else [end.end_seq, end.exit_code],
        *newer,
    ]


def _header(fields: object) -> FrameHeader:
    (
        tenant,
        agent,
        number,
        previous,
        kind,
        rows,
        text,
        raw_rows,
        raw,
        streams,
        sites,
        shapes,
        digest,
        *more,
    ) = _fields(fields)
    header = FrameHeader(
        tenant=read_text(tenant),
        agent=read_text(agent),
        number=read_natural(number),
        previous=read_text(previous),
        kind=read_text(kind),
        rows=read_natural(rows),
        text_bytes=read_natural(text),
        raw_rows=read_natural(raw_rows),
        raw_bytes=read_natural(raw),
        streams=tuple(_stream(item) for item in read_list(streams)),
        sites=tuple(_site(item) for item in read_list(sites)),
        metadata=tuple(_shape(item) for item in read_list(shapes)),
        payload_hash=read_digest(digest),
        point_bytes=tuple(read_natural(item) for item in read_list(more[0])) if more else (),
    )
    if len(header.streams) > limits.FRAME_STREAMS_MAX:
        raise Corrupt(
            f"frame names {len(header.streams)} streams, limit {limits.FRAME_STREAMS_MAX}"
        )
    if sum(entry.rows for entry in header.streams) != header.rows:
        raise Corrupt("rows of a frame's streams do not add up to its rows")
    if len({(shape.key, shape.type) for shape in header.metadata}) != len(header.metadata):
        raise Corrupt("frame has a metadata column twice")
    return header


def _fields(value: object) -> list[Any]:
    """The header's members: one more where the frame holds points."""
    fields = read_list(value)
    if len(fields) < 13 or len(fields) != (14 if fields[4] == KIND_POINT else 13):
        raise Corrupt("frame header has a list of another shape")
    return fields


def _site(fields: object) -> CallSite:
    """Frames of one job name the same hundreds of call sites again and again."""
    parts = read_list(fields, 3)
    try:
        known = _known_sites.get(tuple(parts))
    except TypeError:  # not hashable, so no text
        known = None
    if known is None:
        known = CallSite(*(read_optional(read_text, part) for part in parts))
        if len(_known_sites) >= _SITES_KNOWN_MAX:
            _known_sites.clear()
        _known_sites[known.site, known.function, known.logger] = known
    return known


def _stream(fields: object) -> FrameStream:
    parts = read_list(fields)
    if len(parts) not in (19, 20, 21):
        raise Corrupt("frame header has a list of another shape")
    stream = Stream(
        tenant=read_text(parts[0]),
        run=read_text(parts[1]),
        launch=read_text(parts[2]),
        attempt=read_natural(parts[3]),
        host=read_optional(read_text, parts[4]),
        rank=read_optional(read_rank, parts[5]),
        local_rank=read_optional(read_rank, parts[6]),
        channel=read_text(parts[7]),
        incarnation=read_text(parts[8]),
        kind=read_word(STREAM_KINDS, parts[9]),
        certified=read_text(parts[10]),
        copy=read_flag(parts[11]),
        world_size=read_optional(read_natural, parts[12]),
        source=read_optional(read_text, parts[13]),
    )
    first_seq, rows = read_natural(parts[14]), read_natural(parts[15])
    if first_seq + rows > INT64_MAX:
        raise Corrupt(f"seq {first_seq} + {rows} is over 64 bits")
    return FrameStream(
        stream=stream,
        first_seq=first_seq,
        rows=rows,
        fences=tuple(_fence(item) for item in read_list(parts[16])),
        drops=tuple(_drop(item) for item in read_list(parts[17])),
        end=read_optional(_end, parts[18]),
        manifests=tuple(read_manifest(item) for item in read_list(parts[19])) if parts[19:] else (),
        alive_ns=read_natural(parts[20]) if parts[20:] else None,
    )


def _fence(fields: object) -> Fence:
    hour, ranges = read_list(fields, 2)
    pairs = tuple(_range(item) for item in read_list(ranges))
    if any(low >= high for low, high in pairs):
        raise Corrupt("a fence has an empty or reversed range")
    if (read_natural(hour) + 1) * limits.HOUR_NS > INT64_MAX:
        raise Corrupt(f"a fence of hour {hour} is beyond 64 bits of nanoseconds")
    return Fence(hour, pairs)


def _range(fields: object) -> tuple[int, int]:
    low, high = read_list(fields, 2)
    return read_natural(low), read_natural(high)


def _drop(fields: object) -> Drop:
    lines, reason = read_list(fields, 2)
    return Drop(read_natural(lines), read_text(reason))


def _end(fields: object) -> StreamEnd:
    end_seq, exit_code = read_list(fields, 2)
    return StreamEnd(read_natural(end_seq), read_optional(read_signed, exit_code))


def _shape(fields: object) -> MetadataShape:
    key, kind, rows, value_bytes = read_list(fields, 4)
    shape = MetadataShape(
        read_text(key),
        read_word(METADATA_TYPES, kind),
        read_natural(rows),
        read_natural(value_bytes),
    )
    if shape.type != "str" and shape.value_bytes != 8 * shape.rows:
        raise Corrupt(f"metadata column {shape.key!r} has {shape.value_bytes} bytes of values")
    return shape


def check_header(header: FrameHeader) -> None:
    """Refuse to write what no reader takes. Raises TooLarge, Corrupt."""
    if len(header.streams) > limits.FRAME_STREAMS_MAX:
        raise TooLarge(
            f"{len(header.streams)} streams in a frame, limit {limits.FRAME_STREAMS_MAX}"
        )
