"""Frames from few words, for tests of ingest and of everything that reads what it wrote."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ranklog.model.frame import (
    NO_GROUP,
    NO_ITERATION,
    NO_LEVEL,
    STREAM_RANK,
    CallSite,
    Frame,
    FrameStream,
    MetadataColumn,
)
from ranklog.model.stream import Stream

T0 = 1_772_323_200_000_000_000  # 2026-03-01T00:00:00Z
STREAM = Stream("acme", "llama", "17", 0, "gpu-1", 3, 3, "stdout", "0")


def stream(rank: int | None = 3, **changes: object) -> Stream:
    return replace(STREAM, rank=rank, local_rank=rank, **changes)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a frame, with what it is about."""

    text: str | bytes
    ts: int = T0
    stream: Stream = STREAM
    level: int = NO_LEVEL
    site: CallSite | None = None
    body_at: int = 0
    flags: int = 0
    group: int = NO_GROUP
    rank: int = STREAM_RANK
    iteration: int = NO_ITERATION
    metadata: dict[str, int | float | str] = field(default_factory=dict)
    raw: bytes | None = None


def make_frame(
    rows: Sequence[Row],
    *,
    first_seq: dict[Stream, int] | None = None,
    streams: Sequence[FrameStream] = (),
    tenant: str = "acme",
    number: int = 1,
) -> Frame:
    """A frame of the rows; `streams` are named beside those that have rows (or give their notes)."""
    named = {entry.stream: entry for entry in streams}
    for row in rows:
        named.setdefault(row.stream, FrameStream(row.stream, 0, 0))
    counts = {one: sum(row.stream == one for row in rows) for one in named}
    entries = tuple(
        replace(entry, rows=counts[one], first_seq=(first_seq or {}).get(one, entry.first_seq))
        for one, entry in named.items()
    )
    place = {one: i for i, one in enumerate(named)}
    sites = list(dict.fromkeys(row.site for row in rows if row.site))
    texts = [row.text.encode() if isinstance(row.text, str) else row.text for row in rows]
    raws = [(i, row.raw) for i, row in enumerate(rows) if row.raw is not None]
    return Frame(
        tenant=tenant,
        agent="0a",
        number=number,
        previous="",
        streams=entries,
        rows=len(rows),
        stream=array("H", [place[row.stream] for row in rows]).tobytes(),
        ts=array("q", [row.ts for row in rows]).tobytes(),
        level=array("h", [row.level for row in rows]).tobytes(),
        site=array("I", [1 + sites.index(row.site) if row.site else 0 for row in rows]).tobytes(),
        body_at=array("I", [row.body_at for row in rows]).tobytes(),
        flags=array("H", [row.flags for row in rows]).tobytes(),
        group=array("I", [row.group for row in rows]).tobytes(),
        rank=array("i", [row.rank for row in rows]).tobytes(),
        iteration=array("q", [row.iteration for row in rows]).tobytes(),
        text_length=array("I", map(len, texts)).tobytes(),
        text=b"".join(texts),
        sites=tuple(sites),
        metadata=_metadata(rows),
        raw_rows=array("I", [i for i, _ in raws]).tobytes(),
        raw_length=array("I", [len(raw) for _, raw in raws]).tobytes(),
        raw=b"".join(raw for _, raw in raws),
    )


def _metadata(rows: Sequence[Row]) -> tuple[MetadataColumn, ...]:
    found: dict[tuple[str, str], list[tuple[int, int | float | str]]] = {}
    for i, row in enumerate(rows):
        for key, value in row.metadata.items():
            found.setdefault((key, type(value).__name__), []).append((i, value))
    columns = []
    for (key, type_), cells in found.items():
        at = array("I", [i for i, _ in cells]).tobytes()
        if type_ == "str":
            encoded = [str(value).encode() for _, value in cells]
            lengths = array("I", map(len, encoded)).tobytes()
            columns.append(MetadataColumn(key, type_, at, b"".join(encoded), lengths))
        else:
            code = "q" if type_ == "int" else "d"
            values = array(code, [value for _, value in cells])  # type: ignore[arg-type]
            columns.append(MetadataColumn(key, type_, at, values.tobytes()))
    return tuple(columns)
