"""`import_paths`: find the files, look at them, then read each once and store what is new of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from typing import IO
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ranklog.errors import BadInput
from ranklog.importer.analysis import WARM_BYTES, Analyst
from ranklog.importer.batch import Batch
from ranklog.importer.fences import Hours
from ranklog.importer.lines import decode_lines, split_chunks
from ranklog.importer.paths import rank_by_pattern
from ranklog.importer.points import folder_dims, store_points
from ranklog.importer.prepare import Options, Plan, prepare
from ranklog.importer.records import (
    HEAD_BYTES,
    Ledger,
    find_incarnation,
    hash_bytes,
    new_incarnation,
)
from ranklog.importer.report import FileReport, ImportReport
from ranklog.importer.rows import Framer
from ranklog.importer.sources import STDIN, Source, Unreadable, find_sources, read_blocks
from ranklog.ingest.batch import IngestReport, Record, ingest_batch
from ranklog.layout.import_record import Known
from ranklog.limits import SECOND_NS
from ranklog.model.stream import Stream
from ranklog.rules.ruleset import RuleSet
from ranklog.rules.tenant import load_ruleset
from ranklog.store.protocol import Store

# The channel of points, as an agent has it.
TELEMETRY = "telemetry"
Progress = Callable[[FileReport], None]


def import_paths(
    paths: Sequence[str],
    *,
    store: Store,
    tenant: str,
    run: str,
    launch: str = "import",
    rank: int | None = None,
    rank_from: str | None = None,
    preset: str | None = None,
    tz: str = "UTC",
    date: str | None = None,
    stdin: IO[bytes] | None = None,
    progress: Progress | None = None,
    now_ns: int,
) -> ImportReport:
    """Store the lines of existing log files; what an earlier import stored is not stored again.

    `paths`: files, folders, `-` for `stdin`; compressed files are known by their content. `rank`: of
    all files; `rank_from`: an expression whose group finds it in a file's path. `tz`: zone of times
    that have none; `date` (YYYY-MM-DD): near which times without a year or date lie. `progress` is
    called as a file's lines are read, with its report so far. A file that can't be read is named in
    the report and does not stop the others. Raises BadInput for unusable options, and what the store
    raises.
    """
    options = Options(
        zone=_zone(tz),
        now_ns=now_ns,
        rank=rank,
        rank_from=None if rank_from is None else rank_by_pattern(rank_from),
        date_ns=None if date is None else _noon(date),
    )
    rules, notes = _rules(store, tenant, preset)
    ledger = Ledger(store, tenant, run, launch)
    report = ImportReport(run, launch, notes=notes)

    def ingest(records: Sequence[Record], source: str, first: str, last: str) -> IngestReport:
        return ingest_batch(
            records, store=store, rules=rules, source=source, first=first, last=last
        )

    batch = Batch(ingest, ledger, now_ns)
    found = list(find_sources([str(path) for path in paths], stdin, now_ns))
    found = [_ranked_stdin(item, rank) for item in found]
    try:
        plans = iter(prepare([item for item in found if isinstance(item, Source)], options))
        for item in found:
            if isinstance(item, Unreadable):
                report.files.append(FileReport(item.name, error=f"{item.name}: {item.error}"))
                continue
            template = Stream(tenant, run, launch, 0, None, None, None, "", "")
            file = FileImport(next(plans), template)
            report.files.append(file.report)
            file.run(ledger, batch, options, progress)
        batch.flush()
        report.refuse(batch.refused)
    finally:
        for item in found:
            if isinstance(item, Source) and item.spool is not None:
                item.spool.close()
    return report


class FileImport:
    """One file on its way in."""

    def __init__(self, plan: Plan, template: Stream) -> None:
        facts = plan.facts
        self._plan = plan
        self._source = plan.source
        self._template = replace(
            template,
            attempt=facts.attempt,
            host=facts.host,
            rank=facts.rank,
            local_rank=facts.local_rank,
            channel=TELEMETRY if plan.is_points else facts.channel,
            certified="import",
            copy=plan.copy,
            world_size=plan.evidence.stated_world,
            source=plan.source.name,
        )
        self.report = FileReport(plan.source.name, channel=facts.channel, notes=plan.notes)

    def run(
        self, ledger: Ledger, batch: Batch, options: Options, progress: Progress | None
    ) -> None:
        """Store what is new of the file. What went wrong with it stands in the report."""
        self.report.error = self._plan.error
        if self._plan.error is not None:
            return
        try:
            known, is_new = self._locate(ledger)
            self._describe(known)
            self._store(known, is_new, batch, options, progress)
        except BadInput as error:
            self.report.error = error.message

    def _locate(self, ledger: Ledger) -> tuple[Known, bool]:
        """Where the file goes on: an incarnation that is known, or a new one."""
        key = self._source.key
        incarnations = ledger.incarnations(key)
        if key.startswith(STDIN):  # nothing goes on with an empty standard input
            incarnations = [known for known in incarnations if known.bytes or not known.hash]
        known = find_incarnation(self._tolerant(0), incarnations) if incarnations else None
        if known is not None:
            rank = known.stream.rank
            if self._template.rank not in (None, rank):
                self._plan.notes.append(f"known from an earlier import, with rank {rank}")
            return known, not known.hash
        head = _head(self._tolerant(0))
        name = new_incarnation(key, head, len(incarnations))
        stream = replace(self._template, incarnation=name)
        return Known(key, stream, len(head), hash_bytes(head).hexdigest()), True

    def _tolerant(self, skip: int) -> Iterator[bytes]:
        """The file's blocks up to where it breaks off; the reason goes to the report."""
        try:
            yield from read_blocks(self._source, skip)
        except BadInput as error:
            self.report.error = error.message

    def _describe(self, known: Known) -> None:
        report, stream = self.report, known.stream
        report.channel, report.stream_id = stream.channel, stream.stream_id
        report.attempt, report.host, report.copy = stream.attempt, stream.host, stream.copy
        report.rank, report.local_rank = stream.rank, stream.local_rank
        report.known, report.lines, report.bytes = known.lines, known.lines, known.bytes

    def _store(
        self, known: Known, is_new: bool, batch: Batch, options: Options, progress: Progress | None
    ) -> None:
        if self._plan.is_points:
            self._store_points(known, is_new, batch, progress)
            return
        analyst = Analyst(self._plan.profile(options), known.last_ts_ns, options.now_ns)
        running = hash_bytes()
        if known.bytes:
            analyst.warm_up(self._before(known.bytes, running), known.is_open)
        framer, hours = Framer(known.stream, known.rows), Hours(known.fences)
        feeds = known.lines - known.is_open
        for data, more in _with_more(split_chunks(self._tolerant(known.bytes))):
            lines = decode_lines(data)
            columns = analyst.analyse(lines, more)
            hours.add(framer.next_seq, columns.ts)
            frames = list(framer.frames(lines, columns))
            running.update(data)
            feeds += lines.count - (not lines.last_has_lf)
            known = replace(
                known,
                bytes=known.bytes + len(data),
                hash=running.hexdigest(),
                rows=framer.next_seq,
                lines=feeds + (not lines.last_has_lf),
                is_open=not lines.last_has_lf,
                fences=hours.record(),
                last_ts_ns=int(columns.ts[-1]),
            )
            self.report.stored += lines.count
            self._progress(known, analyst, progress)
            batch.add(frames, known)
        if self.report.stored or is_new:
            batch.add([framer.closing(hours.fences())], replace(known, hash=running.hexdigest()))
        self._progress(known, analyst, progress)

    def _store_points(
        self, known: Known, is_new: bool, batch: Batch, progress: Progress | None
    ) -> None:
        dims = folder_dims(self._source.relative, known.stream.rank is not None)

        def told(known: Known, stored: int) -> None:
            report = self.report
            report.lines, report.bytes, report.stored = known.lines, known.bytes, stored
            report.last_ns = known.last_ts_ns
            if progress is not None:
                progress(report)

        store_points(self._tolerant(0), known, is_new, dims, batch, told)

    def _before(self, size: int, running: object) -> bytes:
        """The last lines before byte `size`, in UTF-8; the hash takes all of it."""
        warm = b""
        for block in _first(self._tolerant(0), size):
            running.update(block)  # type: ignore[attr-defined]
            warm = (warm + block)[-WARM_BYTES:]
        return decode_lines(warm).text

    def _progress(self, known: Known, analyst: Analyst, progress: Progress | None) -> None:
        report, seen = self.report, analyst.seen
        report.lines, report.bytes = known.lines, known.bytes
        report.first_ns, report.last_ns = seen.first_ns, seen.last_ns
        report.ranks = sorted(seen.ranks)
        report.envelopes = [name for name, lines in seen.envelopes.items() if lines]
        report.presets = sorted(seen.heads, key=lambda name: -seen.heads[name])
        if progress is not None:
            progress(report)


def _ranked_stdin(item: Source | Unreadable, rank: int | None) -> Source | Unreadable:
    """Standard input has no path: what several ranks send may be alike, and is not the same."""
    if isinstance(item, Source) and item.key == STDIN and rank is not None:
        return replace(item, key=f"{STDIN} rank {rank}")
    return item


def _with_more(chunks: Iterator[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Each chunk, and whether one follows."""
    held = next(chunks, None)
    while held is not None:
        following = next(chunks, None)
        yield held, following is not None
        held = following


def _first(blocks: Iterator[bytes], size: int) -> Iterator[bytes]:
    for block in blocks:
        yield block[:size]
        size -= len(block)
        if size <= 0:
            return


def _head(blocks: Iterator[bytes]) -> bytes:
    return b"".join(_first(blocks, HEAD_BYTES))


def _zone(name: str) -> ZoneInfo | timezone:
    if name.upper() in ("UTC", "Z"):
        return timezone.utc
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise BadInput(f"no time zone {name!r}", hint="for example Europe/Berlin") from error


def _noon(date: str) -> int:
    try:
        day = datetime.strptime(date, "%Y-%m-%d").replace(tzinfo=timezone.utc)
    except ValueError as error:
        raise BadInput(f"no day {date!r}", hint="write it as YYYY-MM-DD") from error
    return (int(day.timestamp()) + 12 * 3600) * SECOND_NS


def _rules(store: Store, tenant: str, preset: str | None) -> tuple[RuleSet, list[str]]:
    """The presets, or one family of them, and the tenant's own."""
    presets = None if preset is None else [preset]
    rules, refused = load_ruleset(store, tenant, presets=presets)
    return rules, [f"rules {name} are left out: {why}" for name, why in refused.items()]
