"""Jobs that were started again, and in plain Python which of their lines are superseded."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise

from ranklog.model.answer import Line
from ranklog.model.frame import NO_ITERATION
from ranklog.model.stream import Stream
from tests.corpus_lines import Corpus
from tests.ingest.frames import T0, Row

SECOND = 1_000_000_000
LOADED = "successfully loaded checkpoint"


def random_job(seed: int) -> Corpus:
    """Ranks whose attempts and restarts overlap partly; a stream without iterations; a console copy."""
    rng = random.Random(seed)
    corpus = Corpus()
    ts, begin = T0, 0
    seqs: dict[Stream, int] = {}
    for attempt in range(rng.randint(1, 3)):
        named = [_stream(rank, attempt, "stdout") for rank in range(2)]
        quiet = [_stream(0, attempt, "stderr"), _stream(2, attempt, "stderr")]
        rows: list[Row] = []
        for leg in range(rng.choice([1, 1, 2])):
            if leg:
                begin = max(0, begin - rng.randint(2, 4))
                at = rng.choice([NO_ITERATION, begin - 1]) if begin else NO_ITERATION
                rows += [Row(LOADED, ts=ts + 1, stream=one, iteration=at) for one in named]
            end = begin + rng.randint(2, 6)
            ts += 10 * SECOND
            rows += [Row("starting", ts=ts, stream=one) for one in [*named, *quiet]]
            for iteration in range(begin, end):
                ts += SECOND
                rows += _iteration(rng, iteration, ts, named, quiet, saves=iteration + 1 < end)
            begin = end
        begin = max(0, begin - rng.randint(0, 5))
        ts += 10 * SECOND
        rows += [Row("killed", ts=ts, stream=one) for one in [*named, *quiet]]
        cuts = sorted({0, len(rows), rng.randrange(len(rows))})
        for low, high in pairwise(cuts):
            _add(corpus, rows[low:high], seqs)
    return corpus


def _iteration(
    rng: random.Random,
    iteration: int,
    ts: int,
    named: Sequence[Stream],
    quiet: Sequence[Stream],
    *,
    saves: bool,
) -> list[Row]:
    rows = []
    for one in named:
        rows.append(Row(f"iteration begins {iteration}", ts=ts, stream=one, iteration=iteration))
        if rng.random() < 0.5:
            rows.append(Row("a word between", ts=ts + 2, stream=one))
        if saves and rng.random() < 0.2:  # a checkpoint is written while others go on
            at = max(0, iteration - 1)
            rows.append(Row("saved", ts=ts + 3, stream=one, iteration=at))
    return rows + [Row("noise", ts=ts + 4, stream=one) for one in quiet if rng.random() < 0.5]


def _stream(rank: int, attempt: int, channel: str) -> Stream:
    return Stream("acme", "llama", "17", attempt, f"gpu-{rank}", rank, rank, channel, "0")


def _add(corpus: Corpus, rows: Sequence[Row], seqs: dict[Stream, int]) -> None:
    corpus.firsts.append(dict(seqs))
    corpus.batches.append(list(rows))
    for row in rows:
        seq = seqs.get(row.stream, 0)
        seqs[row.stream] = seq + 1
        corpus.lines.append(as_line(row, seq))


def as_line(row: Row, seq: int) -> Line:
    one = row.stream
    iteration = None if row.iteration == NO_ITERATION else row.iteration
    return Line(
        stream_id=one.stream_id,
        seq=seq,
        ts_ns=row.ts,
        run=one.run,
        launch=one.launch,
        attempt=one.attempt,
        rank=one.rank,
        local_rank=one.local_rank,
        host=one.host,
        channel=one.channel,
        group=None,
        level=None,
        call_site=None,
        function=None,
        logger=None,
        text=str(row.text),
        iteration=iteration,
    )


def legs_of(lines: Sequence[Line]) -> list[list[Line]]:
    """One stream's lines, cut where the iteration is lower than the one before a line that says that
    a checkpoint was loaded."""
    legs: list[list[Line]] = [[]]
    loaded, high = False, -1
    for line in lines:
        loaded = loaded or line.text == LOADED
        if line.iteration is not None:
            if loaded and line.iteration < high:
                legs.append([])
                high = -1
            loaded, high = line.text == LOADED, max(high, line.iteration)
        legs[-1].append(line)
    return legs


def superseded(lines: Sequence[Line]) -> set[str]:
    """Ids of one launch's superseded lines, in the words of the documentation."""
    streams: dict[str, list[Line]] = {}
    for line in sorted(lines, key=lambda one: one.seq):
        streams.setdefault(line.stream_id, []).append(line)
    legs = {name: legs_of(found) for name, found in streams.items()}
    begins: dict[int, list[int]] = {}
    for found in legs.values():
        for leg in found:
            first = first_of(leg)
            if first is not None:
                begins.setdefault(leg[0].attempt, []).append(first)
    hit: dict[tuple[str, int], list[Line]] = {}
    for name, found in legs.items():
        for at, leg in enumerate(found):
            later = [i for n, all_ in begins.items() if n > leg[0].attempt for i in all_]
            later += [i for i in _starts(name, legs, at) if i is not None]
            if later:
                cut = min(later)
                redone = [x for x in leg if x.iteration is not None and x.iteration >= cut]
                if redone:
                    hit[name, at] = redone
    ids = {x.id for redone in hit.values() for x in redone}
    for name, found in legs.items():
        own = [redone for (other, _), redone in hit.items() if other == name]
        for line in (x for leg in found for x in leg if x.iteration is None):
            if own:
                inside = any(r[0].seq <= line.seq <= r[-1].seq for r in own)
            else:
                inside = _in_time(line, hit)
            ids |= {line.id} if inside else set()
    return ids


def _starts(name: str, legs: dict[str, list[list[Line]]], at: int) -> list[int | None]:
    """What the legs behind `at` begin with, in streams of the attempt that have as many."""
    own = legs[name]
    alike = [x for x in legs.values() if x[0][0].attempt == own[0][0].attempt]
    return [first_of(leg) for other in alike if len(other) == len(own) for leg in other[at + 1 :]]


def first_of(leg: list[Line]) -> int | None:
    """The iteration that a leg begins with; what is loaded is of the one before."""
    found = (x.iteration for x in leg if x.iteration is not None and x.text != LOADED)
    return next(found, None)


def _in_time(line: Line, hit: dict[tuple[str, int], list[Line]]) -> bool:
    """Whether its time is that of its rank's superseded lines, else of its attempt's."""
    found = [r for r in hit.values() if r[0].attempt == line.attempt]
    own = [r for r in found if r[0].rank == line.rank]
    spans = ((min(x.ts_ns for x in r), max(x.ts_ns for x in r)) for r in own or found)
    return any(low <= line.ts_ns <= high for low, high in spans)
