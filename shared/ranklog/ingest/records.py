"""Records in, frames out: a frame that can't be read is set aside and never blocks the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import pairwise
from typing import TYPE_CHECKING, TypedDict

import numpy as np
import numpy.typing as npt

from ranklog.errors import BadInput, Corrupt, Forbidden, NewerVersion, OverQuota, TooLarge
from ranklog.ingest.quarantine import BadFrame, set_aside
from ranklog.layout import keys
from ranklog.limits import FRAME_RECORD_BYTES_MAX
from ranklog.model.frame import KIND_LINE, KIND_POINT, Frame, PointColumns
from ranklog.model.manifest import unpack_piece
from ranklog.model.names import printable_names
from ranklog.model.point import context_values
from ranklog.model.record import Record
from ranklog.store.protocol import Store
from ranklog.stream.frames import decode_frame, peek_header

if TYPE_CHECKING:
    from ranklog.access.seals import Seals
    from ranklog.ingest.allowance import Allowance


@dataclass(frozen=True, slots=True)
class Received:
    """A frame that can be stored."""

    frame: Frame
    arrival_ns: int
    header_hash: str
    payload_hash: str = ""
    sequence: str = ""


@dataclass(slots=True)
class Read:
    """What became of the records of a batch: frames in the order given, those that went to quarantine,
    and the tenants of those that wait for room."""

    received: list[Received] = field(default_factory=list)
    bad: list[BadFrame] = field(default_factory=list)
    parked: list[str] = field(default_factory=list)


def read_records(
    records: Sequence[Record],
    store: Store,
    source: str,
    seals: Seals | None = None,
    allowance: Allowance | None = None,
) -> Read:
    """Read all; what can't be stored, now or ever, is kept before this returns."""
    read = Read()
    for record in records:
        try:
            read.received.append(read_record(record, seals, allowance))
        except OverQuota:
            tenant = peek_header(record.data).header.tenant
            park(store, tenant, record, source)
            read.parked.append(tenant)
        except (Corrupt, NewerVersion, BadInput, TooLarge, Forbidden) as error:
            read.bad.append(set_aside(store, record, error, source))
    return read


def park(store: Store, tenant: str, record: Record, source: str) -> str:
    """Keep a frame until its tenant's quota has room; its key. The same one again is the same object."""
    key = keys.waiting_key(tenant, max(record.arrival_ns, 0), source, record.sequence)
    store.put(key, record.data)
    return key


def read_record(
    record: Record, seals: Seals | None = None, allowance: Allowance | None = None
) -> Received:
    """The frame that a record holds, whose tenant is proven where there are `seals`, and has room where
    there is an `allowance`.

    Raises Corrupt, NewerVersion, BadInput, TooLarge, Unsigned, Forged, OverQuota; and what the store
    raises where keys can't be read.
    """
    if len(record.data) > FRAME_RECORD_BYTES_MAX:
        raise TooLarge(f"record of {len(record.data)} bytes, limit {FRAME_RECORD_BYTES_MAX}")
    peeked = peek_header(record.data)
    arrival_ns = max(record.arrival_ns, 0)
    if seals is not None:  # before a forger's payload is unpacked
        keys.tenant_prefix(peeked.header.tenant)
        seals.check(peeked.header.tenant, record.data, arrival_ns)
    if allowance is not None:
        keys.tenant_prefix(peeked.header.tenant)
        allowance.ask(peeked.header.tenant, len(record.data))
    frame = shown_frame(decode_frame(record.data, peeked))
    check_frame(frame)
    payload_hash = peeked.header.payload_hash.hex()
    return Received(frame, arrival_ns, peeked.header_hash, payload_hash, record.sequence)


class BatchNames(TypedDict):
    """What `ingest_batch` is told of where records come from."""

    source: str
    first: str
    last: str


def chosen_names(source: str, sequences: Sequence[str]) -> BatchNames:
    """`source`, `first` and `last` of a batch whose records were chosen from among others: of these and no
    others. Another choice with the same ends would be taken for what is committed already."""
    digest = blake2b("\n".join(sequences).encode(), digest_size=8).hexdigest()
    return {"source": f"{source}-{digest}", "first": sequences[0], "last": sequences[-1]}


# --- what the codec leaves to ingest -----------------------------------------------------------
def shown_frame(frame: Frame) -> Frame:
    """The frame with names of metadata that can be shown: one line's must not refuse the others."""
    if all(column.key.isprintable() for column in frame.metadata):
        return frame
    shown = printable_names(dict.fromkeys(column.key for column in frame.metadata))
    columns = (replace(column, key=shown[column.key]) for column in frame.metadata)
    return replace(frame, metadata=tuple(columns))


def check_frame(frame: Frame) -> None:
    """Names that fit keys, one tenant, text that is UTF-8 lines. Raises Corrupt, BadInput."""
    if frame.kind not in (KIND_LINE, KIND_POINT):
        raise Corrupt(f"frame of kind {frame.kind!r}, this ranklog stores lines and points")
    keys.tenant_prefix(frame.tenant)
    for entry in frame.streams:
        if entry.stream.tenant != frame.tenant:
            raise Corrupt(
                f"frame of tenant {frame.tenant!r} has a stream of {entry.stream.tenant!r}"
            )
        keys.launch_prefix(frame.tenant, entry.stream.run, entry.stream.launch)
        for piece in entry.manifests:
            unpack_piece(piece)
            keys.encode_name(entry.stream.host or "")
    if frame.points is not None:
        check_point_texts(frame.points)
        return
    _check_text(frame)
    for column in frame.metadata:
        if column.type == "str":
            _check_utf8(f"metadata {column.key!r}", column.values, _edges(column.lengths))


def check_point_texts(points: PointColumns) -> None:
    """Names that can be shown; dimensions and contexts that are JSON objects. Raises Corrupt."""
    for name, lengths, data in (
        ("a name of a series", points.name_length, points.names),
        ("dimensions", points.dims_length, points.dims),
        ("a context", points.context_length, points.contexts),
    ):
        edges = _edges(lengths)
        _check_utf8(name, data, edges)
        if name != "a name of a series":
            for start, end in pairwise(edges.tolist()):
                _check_object(data[start:end], name)
        elif not data.decode().isprintable():
            raise Corrupt(f"{name} has characters that can't be shown")


def _check_object(data: bytes, name: str) -> None:
    try:
        values = context_values(data.decode())
    except (ValueError, RecursionError) as error:
        raise Corrupt(f"{name} of a frame of points is no JSON object: {data[:60]!r}") from error
    if not all(type(value) in (int, float, str) for value in values.values()):
        raise Corrupt(f"{name} of a frame of points has values that are neither text nor number")


def _check_text(frame: Frame) -> None:
    if b"\n" in frame.text:
        raise Corrupt("a line holds a line feed")
    if frame.text.isascii():
        return
    edges = _edges(frame.text_length)
    bodies = edges[:-1] + np.frombuffer(frame.body_at, "<u4")
    _check_utf8("text", frame.text, np.concatenate([edges, bodies]))


def _edges(lengths: bytes) -> npt.NDArray[np.int64]:
    edges = np.zeros(len(lengths) // 4 + 1, np.int64)
    np.cumsum(np.frombuffer(lengths, "<u4"), out=edges[1:])
    return edges


def _check_utf8(name: str, data: bytes, edges: npt.NDArray[np.int64]) -> None:
    """Valid as a whole, and no edge inside a character."""
    if data.isascii():
        return
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise Corrupt(f"{name} is no UTF-8 at byte {error.start}") from error
    inside = np.frombuffer(data, np.uint8)[edges[edges < len(data)]]
    if (inside & 0xC0 == 0x80).any():
        raise Corrupt(f"{name} is cut inside a character")
