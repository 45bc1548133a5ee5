"""Lines that a rank logged, as rows of its streams: sampled, masked, grouped.

Shapes: a chunk is n lines as columns (see `sdk_decode`). Whatever is the same for all lines of a
chunk is done once; only records of several lines (tracebacks) are rows one by one.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ranklog.agent.admission import Admission
from ranklog.agent.framer import LEVEL_MAX, Framer
from ranklog.agent.mask import Masker
from ranklog.agent.pieces import PIECE_BYTES
from ranklog.agent.rows import Row, StreamState
from ranklog.agent.sampling import Sampler, reasons
from ranklog.agent.sdk_decode import Columns, Decoder
from ranklog.agent.sdk_points import SdkPoints
from ranklog.model.frame import NO_ITERATION, NO_RANK, STREAM_RANK, CallSite
from ranklog.model.names import with_printable_names
from ranklog.produce.records import CONTEXT, SITE
from ranklog.stream.row_batch import RowBatch

Metadata = Mapping[str, Any]
# Reasons of drops that one chunk tells apart.
_REASONS_MAX = 64
_WRONG = (IndexError, TypeError, ValueError, OverflowError, AttributeError, KeyError)


class SdkLines:
    """What one process defined, and where its lines go. `damaged`: records that made no sense."""

    def __init__(
        self,
        state: StreamState,
        telemetry: StreamState,
        metadata: Metadata,
        masker: Masker,
        sampler: Sampler | None = None,
        admission: Admission | None = None,
    ) -> None:
        self.state = state
        self.telemetry = telemetry
        self.last_iteration: int | None = None
        self._decoder = Decoder()
        self._damaged = 0
        self._masker = masker
        self._sampler = sampler
        self._admission = admission or Admission()
        self._sites: dict[int, CallSite | None] = {}
        self._metadata = self._own(metadata) or None
        # number -> rank of its lines, and their metadata (the process's included)
        self._contexts: dict[int, tuple[int, Metadata | None]] = {0: (STREAM_RANK, self._metadata)}
        self._points = SdkPoints(telemetry, masker, self._contexts.__getitem__)

    @property
    def damaged(self) -> int:
        return self._damaged + self._decoder.damaged + self._points.damaged

    def define(self, fields: list[Any]) -> None:
        """Take a definition; one that is none is counted."""
        try:
            self._decoder.define(fields)
            if fields[0] == SITE:
                self._sites[fields[1]] = CallSite(*fields[2:5])
            elif fields[0] == CONTEXT:
                rank = STREAM_RANK if fields[2] is None else int(fields[2])
                own = self._own(fields[3]) if fields[3] else None
                merged = {**(self._metadata or {}), **(own or {})} or None
                self._contexts[fields[1]] = (rank, merged)
                self._points.redefined(fields[1])
        except _WRONG:
            self._damaged += 1

    def take(self, bodies: Sequence[bytes], records: Sequence[list[Any]], framer: Framer) -> None:
        """Move what a ring and a journal held to the framer."""
        before, self.last_iteration = self.last_iteration, None
        for chunk in (self._decoder.bodies(bodies), self._decoder.records(records)):
            if len(chunk):
                self._take_lines(chunk, framer)
        # points are told apart from lines, and after them: the later of both is the process's
        reached = (self.last_iteration, self._points.take(self._decoder.points, framer))
        self.last_iteration = max((at for at in reached if at is not None), default=before)

    # --- lines ----------------------------------------------------------------------------------

    def _take_lines(self, chunk: Columns, framer: Framer) -> None:
        if self._admission.level_min:
            chunk = self._admitted(chunk, framer)
        if self._sampler is not None:
            chunk = self._sampled(self._sampler, chunk, framer)
        for start, end, is_plain in _runs(chunk):
            whole = end - start == len(chunk)
            part = chunk if whole else chunk.part(start, end)
            if not (is_plain and self._take_plain(part, framer)):
                for line in range(len(part)):
                    self._guarded(self._take_row, part.part(line, line + 1), framer)

    def _take_plain(self, chunk: Columns, framer: Framer) -> bool:
        """Lines without a line feed; False where they have to be taken one by one."""
        try:
            lines = "\n".join(chunk.text).encode().split(b"\n")
            batch = RowBatch(
                ts=array("q", chunk.ts),
                level=array("h", chunk.level),
                texts=lines,
                site=chunk.site,
                sites=self._sites,
                iteration=array("q", chunk.iteration),
            )
            if max(map(len, lines)) > PIECE_BYTES or min(chunk.level) < 0:
                return False
            self._fill_contexts(batch, chunk)
        except _WRONG:
            return False
        self.state.masked += self._masker.lines(lines)
        framer.add_batch(self.state, batch)
        if (latest := max(chunk.iteration)) != NO_ITERATION:
            self.last_iteration = latest
        return True

    def _fill_contexts(self, batch: RowBatch, chunk: Columns) -> None:
        contexts = {number: self._contexts[number] for number in set(chunk.context)}
        extras = [(line, self._own(own)) for line, own in chunk.extra.items()]
        if len(contexts) == 1:
            rank, metadata = next(iter(contexts.values()))
            if rank != STREAM_RANK:
                batch.rank = array("i", [rank]) * len(batch)
            if not metadata or all(metadata.keys().isdisjoint(own) for _, own in extras):
                batch.common, batch.metadata = metadata, extras
                return
        else:
            batch.rank = array("i", [contexts[number][0] for number in chunk.context])
        merged = {
            line: metadata
            for line, number in enumerate(chunk.context)
            if (metadata := contexts[number][1])
        }
        for line, own in extras:
            merged[line] = {**merged.get(line, {}), **own}
        batch.metadata = sorted(merged.items())

    def _take_row(self, chunk: Columns, framer: Framer) -> None:
        """A chunk of one record, of any number of lines."""
        text, trace = chunk.text[0], chunk.trace.get(0)
        whole = (text if trace is None else f"{text}\n{trace}").encode("utf-8", "surrogatepass")
        masked = self._masker.text(whole)
        self.state.masked += masked != whole
        rank, metadata = self._contexts[chunk.context[0]]
        if own := chunk.extra.get(0):
            metadata = {**(metadata or {}), **self._own(own)}
        at = chunk.iteration[0]
        row = Row(
            chunk.ts[0],
            _lines(masked),
            min(max(chunk.level[0], 0), LEVEL_MAX) or None,
            self._sites.get(chunk.site[0]),
            None if rank == NO_RANK else rank,
            None if at == NO_ITERATION else at,
            dict(metadata) if metadata else None,
        )
        framer.add(self.state, row)
        if row.iteration is not None:
            self.last_iteration = row.iteration

    # --- the rest -------------------------------------------------------------------------------

    def _own(self, metadata: Metadata) -> Metadata:
        """Masked, under names that ingest takes."""
        return with_printable_names(self._masker.metadata(metadata))

    def _admitted(self, chunk: Columns, framer: Framer) -> Columns:
        """What a spool that is getting full takes still."""
        level_min = self._admission.level_min
        kept = [line for line, level in enumerate(chunk.level) if level >= level_min]
        if len(kept) < len(chunk):
            framer.drop(self.state, len(chunk) - len(kept), "spool quota: debug")
            chunk = chunk.chosen(kept)
        return chunk

    def _sampled(self, sampler: Sampler, chunk: Columns, framer: Framer) -> Columns:
        kept = sampler.kept(chunk.site, chunk.level, chunk.ts)
        if len(kept) == len(chunk):
            return chunk
        left_out: Counter[tuple[int, str]] = Counter()
        for line in set(range(len(chunk))).difference(kept):
            site = self._sites.get(chunk.site[line])
            left_out[chunk.level[line], (site and site.site) or "?"] += 1
        told = reasons(left_out)
        for reason in sorted(told)[:_REASONS_MAX]:
            framer.drop(self.state, told.pop(reason), reason)
        if told:
            framer.drop(self.state, sum(told.values()), "sampled others")
        return chunk.chosen(kept)

    def _guarded(self, take: Any, record: Any, framer: Framer) -> None:
        """One record that makes no sense (another version's, a CRC by chance) costs itself only."""
        try:
            take(record, framer)
        except _WRONG:
            self._damaged += 1


def _runs(chunk: Columns) -> Iterable[tuple[int, int, bool]]:
    """(start, end, whether each record is one line), over all records."""
    if not len(chunk):
        return
    if not chunk.trace and "\n" not in "".join(chunk.text):
        yield 0, len(chunk), True
        return
    start = 0
    for at, text in enumerate(chunk.text):
        if at in chunk.trace or "\n" in text:
            if start < at:
                yield start, at, True
            yield at, at + 1, False
            start = at + 1
    if start < len(chunk):
        yield start, len(chunk), True


def _lines(text: bytes) -> list[bytes]:
    lines = text.split(b"\n")
    # A record that ends in a line feed is not followed by an empty line; `print` in a file isn't.
    return lines[:-1] if len(lines) > 1 and not lines[-1] else lines
