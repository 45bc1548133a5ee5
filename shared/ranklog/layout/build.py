"""One segment and its index from chosen rows: the write path's last step before the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from ranklog.layout.grams import bloom_key
from ranklog.layout.groups import describe_groups
from ranklog.layout.index import INDEX_VERSION, encode_index
from ranklog.layout.metadata import choose_columns
from ranklog.layout.order import order_rows
from ranklog.layout.row_sums import sums_of_lines
from ranklog.layout.rows import I64, MetadataValues, Rows, StreamRows
from ranklog.layout.segment import SegmentBytes, write_segment
from ranklog.layout.tables import longest_by_template, site_counts, stream_entries, template_runs
from ranklog.layout.templates import (
    TemplateIds,
    envelope_templates,
    number_templates,
    opaque_rows,
    renumber,
)
from ranklog.layout.tokens import Extracted, extract
from ranklog.layout.variables import longest_variables
from ranklog.limits import GRAMS_TEXT_BYTES_MIN
from ranklog.model.frame import Drop, Fence, StreamEnd
from ranklog.model.index import Contested, FrameRef, IndexHead, SegmentRef, StreamEntry

KIND_LINE = "line"


@dataclass(frozen=True, slots=True)
class RowFacts:
    """What is computed once for all rows of a batch, whichever segment they go to.

    `opaque` bool[n]: the template says nothing.
    """

    extracted: Extracted
    numbered: TemplateIds
    opaque: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class StreamNotes:
    """What frames say of a stream beside its lines. `open_hours`: it has lines there, and may have more."""

    fences: tuple[Fence, ...] = ()
    drops: tuple[Drop, ...] = ()
    end: StreamEnd | None = None
    alive_ns: int | None = None
    open_hours: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class BuiltSegment:
    """Bytes of a segment, and `index(ref)`: bytes of the index that commits it."""

    segment: SegmentBytes
    min_ts: int
    max_ts: int
    index: Callable[[SegmentRef], bytes]


@dataclass(frozen=True, slots=True)
class Beside:
    """What goes into an index beside what its rows say; notes by place in `rows.streams`."""

    notes: Mapping[int, StreamNotes] = field(default_factory=dict)
    frames: tuple[FrameRef, ...] = ()
    contested: tuple[Contested, ...] = ()
    replaces: tuple[str, ...] = ()  # keys of the indexes that a compacted one stands for


def find_facts(rows: Rows) -> RowFacts:
    """Templates, tokens of all rows."""
    extracted = extract(rows.text, rows.piece_offsets())
    hashes = extracted.hashes[1::2] if rows.has_envelopes else extracted.hashes
    opaque = opaque_rows(rows)
    return RowFacts(extracted, number_templates(rows, hashes, opaque), opaque)


def build_segment(
    rows: Rows,
    facts: RowFacts,
    chosen: I64,
    metadata: Sequence[MetadataValues],
    beside: Beside,
) -> BuiltSegment:
    """The segment of the rows `chosen` (indices into `rows`, in (stream, seq) order; at least one)."""
    numbered = renumber(facts.numbered, chosen)
    placed = order_rows(rows, chosen, numbered.ids)
    order, tids = chosen[placed.permutation], numbered.ids[placed.permutation]
    entries, places = stream_table(rows, chosen, beside.notes)
    in_segment = np.zeros(len(rows), np.bool_)
    in_segment[chosen] = True
    columns = choose_columns(metadata, in_segment)
    segment = write_segment(rows, order, placed.starts, tids, places, columns)
    grouped = describe_groups(
        rows, order, placed.starts, places, facts.extracted, columns, segment.chunks
    )
    row_sums = sums_of_lines(rows, chosen, places, len(entries))
    ts = rows.ts[chosen]
    head = IndexHead(
        version=INDEX_VERSION,
        kind=KIND_LINE,
        segment=None,
        rows=len(order),
        min_ts=int(ts.min()),
        max_ts=int(ts.max()),
        text_bytes=sum(entry.text_bytes for entry in entries),
        streams=entries,
        row_groups=grouped.row_groups,
        columns=columns.names,
        overflow=columns.overflow_names,
        frames=beside.frames,
        contested=beside.contested,
        replaces=beside.replaces,
        envelopes=envelope_templates(rows, chosen, facts.extracted, facts.opaque),
        odd_case=_has_odd_case(rows),
        bloom_key=bloom_key(grouped.filters.grams),
    )

    def index(ref: SegmentRef) -> bytes:
        sites, times = site_counts(rows, order, tids)
        return encode_index(
            replace(head, segment=ref),
            templates=numbered.templates,
            template_rows=template_runs(tids),
            longest_mixed=longest_by_template(
                rows, order, tids, facts.extracted.longest, len(numbered.templates)
            ),
            # a segment of little text is scanned as fast
            longest_variables=longest_variables(
                rows, order, tids, facts.extracted, numbered.templates
            )
            if head.text_bytes >= GRAMS_TEXT_BYTES_MIN
            else None,
            sites=sites,
            times=times,
            footer_bytes=segment.footer_bytes,
            blooms=grouped.filters.blooms,
            grams=grouped.filters.grams,
            sums=segment.sums,
            row_sums=row_sums,
        )

    return BuiltSegment(segment, head.min_ts, head.max_ts, index)


def stream_table(
    rows: StreamRows, chosen: I64, notes: Mapping[int, StreamNotes]
) -> tuple[tuple[StreamEntry, ...], npt.NDArray[np.int32]]:
    """Streams with rows here, then those only noted; and the place of each of rows.streams, or -1."""
    places = np.full(max(len(rows.streams), 1), -1, np.int32)
    found = dict(stream_entries(rows, chosen))
    found |= {at: _entry_without_rows(rows, at) for at in sorted(notes) if at not in found}
    entries: list[StreamEntry] = []
    for place, entry in found.items():
        places[place] = len(entries)
        note = notes.get(place, StreamNotes())
        said = {"fences": note.fences, "drops": note.drops, "end": note.end}
        entries.append(replace(entry, **said, alive_ns=note.alive_ns))  # type: ignore[arg-type]
    return tuple(entries), places


def _entry_without_rows(rows: StreamRows, place: int) -> StreamEntry:
    return StreamEntry(rows.streams[place], rows.stream_ids[place], 0, 0, None, None, ())


def _has_odd_case(rows: Rows) -> bool:
    """KELVIN SIGN or LATIN SMALL LETTER LONG S: RE2 takes them for k and s, case-insensitively."""
    if rows.text.max(initial=0) < 0x80:  # without a copy of the text
        return False
    text = rows.text.tobytes()
    return "\u212a".encode() in text or "\u017f".encode() in text


def build_notes(rows: Rows, beside: Beside, bounds: tuple[int, int]) -> bytes:
    """An index without a segment: what frames said of streams that have no line in this part."""
    entries, _ = stream_table(rows, np.empty(0, np.int64), beside.notes)
    low, high = bounds
    head = IndexHead(INDEX_VERSION, KIND_LINE, None, 0, low, high, 0, entries, (), ())
    said = {"frames": beside.frames, "contested": beside.contested, "replaces": beside.replaces}
    return encode_index(replace(head, **said))  # type: ignore[arg-type]
