"""What was said, what is surely stored and what was deleted; and whether an answer agrees with it.

Rows are seq ranges by name, (run, rank). An answer may be behind, and may say so; it must not show a line twice, one
that was deleted, or one that nobody said, nor call itself complete while a line is missing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ranklog.model.tombstone import SEQ_END, Tombstones
from ranklog.plan.overlap import Ranges, difference, union

Name = tuple[str, int]  # run and rank
Row = tuple[Name, int]  # and a seq
CHANNEL = "logging"  # of what is said; agents say things of their own
TELEMETRY, SERIES = "telemetry", "gnorm"  # a series beside the lines
CONSOLE = "stdout"  # of which nothing is asked
LOST = "quota"  # why lines were dropped before they were said
BUCKETS = 16
USERS = (("u4711q", 37, 5), ("u4712q", 41, 7))
EVERY_BUCKET, EVERY_RUN = -1, ""
KINDS = ("lost", "doubled", "undeleted", "false_complete", "broken")


def text_of(rank: int, seq: int) -> str:
    """The line of a rank; one of some templates, a word that all have, ids, and now and then a user."""
    word = ("loaded shard", "step done", "loss spike", "saved checkpoint", "waiting", "grad norm")
    text = f"matrix {word[(seq // 3 + rank) % 6]} rank {rank} seq {seq} in b{seq % BUCKETS:02d}x"
    for user in users_of(seq):
        text += f" of user {user}"
    return text + (f" loss: {1 + seq % 97 / 97:.4f}" if seq % 4 == 0 else "")


def users_of(seq: int) -> list[str]:
    """Users in a line, of which lines are deleted."""
    return [user for user, every, at in USERS if seq % every == at]


@dataclass(slots=True)
class Said:
    """A rank's lines, which one stream has: `ts` are their times. `ids`: how the stream was called; an
    agent that finds no log of the one before it calls a stream anew."""

    run: str
    rank: int
    ts: list[int] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)

    def within(self, window: tuple[int, int] | None) -> Ranges:
        """Its seqs of a span of time."""
        if window is None:
            return [(0, len(self.ts))] if self.ts else []
        low, high = bisect_left(self.ts, window[0]), bisect_left(self.ts, window[1])
        return [(low, high)] if low < high else []


@dataclass(frozen=True, slots=True)
class Asked:
    """A question. `bucket` EVERY_BUCKET: all lines; `run` EVERY_RUN: of all runs; `faulted`: its requests were disturbed, or it stood
    still for longer than objects are kept for it."""

    run: str
    bucket: int = EVERY_BUCKET
    window: tuple[int, int] | None = None
    rank: int | None = None

    @property
    def text(self) -> str:
        return "matrix" if self.bucket == EVERY_BUCKET else f"b{self.bucket:02d}x"


@dataclass(frozen=True, slots=True)
class Known:
    """A moment: stored for sure, said, and deleted by then."""

    stored: dict[Name, Ranges]
    said: dict[Name, int]
    tombstones: Tombstones
    points_stored: int = 0

    def said_rows(self, asked: Asked) -> dict[Name, Ranges]:
        """What an answer that is complete has: of a run that nothing is stored of, one about every run can't
        know."""
        heard = {run for (run, _), rows in self.stored.items() if rows}
        return {
            name: [(0, count)]
            for name, count in self.said.items()
            if asked.run != EVERY_RUN or name[0] in heard
        }


@dataclass(slots=True)
class Truth:
    """Of one schedule. `wrong` counts what must be zero; `notes` say of each what it was."""

    streams: dict[Name, Said] = field(default_factory=dict)
    stored: dict[Name, Ranges] = field(default_factory=dict)
    floors: dict[str, int] = field(default_factory=dict)  # by run, the highest so far
    points: Counter[Name] = field(default_factory=Counter)  # said
    points_stored: dict[Name, Ranges] = field(default_factory=dict)
    silent: set[Name] = field(default_factory=set)  # never spoke
    dropped: Counter[str] = field(default_factory=Counter)  # by run, before they were said
    wrong: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)

    @property
    def lines(self) -> int:
        return sum(len(one.ts) for one in self.streams.values())

    def note(self, kind: str, count: int, what: str) -> None:
        """Something is wrong."""
        if count:
            self.wrong[kind] += count
            self.notes.append(f"{kind} {count}: {what}")

    def add(self, name: Name) -> Said:
        """The rank, which has said nothing yet."""
        return self.streams.setdefault(name, Said(*name))

    def store(self, name: Name, stream_id: str, first: int, end: int) -> None:
        """Ingest said that these rows are committed."""
        self.add(name).ids.add(stream_id)
        self.stored[name] = union([*self.stored.get(name, []), (first, end)])

    def store_points(self, name: Name, first: int, end: int) -> None:
        """And these values."""
        self.points_stored[name] = union([*self.points_stored.get(name, []), (first, end)])

    def store_all(self) -> None:
        """Everybody had his time: what was said must be stored."""
        for name, one in self.streams.items():
            self.stored[name] = one.within(None)
        for name, count in self.points.items():
            self.points_stored[name] = [(0, count)]

    def now(self, tombstones: Tombstones) -> Known:
        """This moment."""
        said = {name: len(one.ts) for name, one in self.streams.items()}
        stored = {name: list(found) for name, found in self.stored.items()}
        points = sum(end - first for found in self.points_stored.values() for first, end in found)
        return Known(stored, said, tombstones, points)

    # --- what an answer has to show ---------------------------------------------------------------
    def _asked_about(self, asked: Asked) -> Iterable[Said]:
        for one in self.streams.values():
            if asked.run in (EVERY_RUN, one.run) and asked.rank in (None, one.rank):
                yield one

    def _deleted(self, one: Said, tombstones: Tombstones) -> Ranges:
        if any(run == one.run for run, _ in tombstones.launches):
            return [(0, SEQ_END)]
        found = [part for name in one.ids for part in tombstones.streams.get(name, ())]
        return union(found)

    def wanted(self, asked: Asked, rows: dict[Name, Ranges], gone: Tombstones) -> set[Row]:
        """Of these rows those that the question is about and nobody deleted, nor retention may have."""
        found = set()
        for one in self._asked_about(asked):
            left = rows.get((one.run, one.rank), [])
            floor = bisect_left(one.ts, self.floors.get(one.run, 0))
            hidden = union([*self._deleted(one, gone), *_may_be_deleted(one, gone), (0, floor)])
            for low, high in one.within(asked.window):
                for first, end in difference(_cut(left, low, high), hidden):
                    found |= {
                        ((one.run, one.rank), seq) for seq in _of_bucket(first, end, asked.bucket)
                    }
        return found

    # --- checks -----------------------------------------------------------------------------------
    def check(
        self, asked: Asked, answer: Any, before: Known, after: Known, *, faulted: bool, where: str
    ) -> None:
        """An answer to a search that began at one moment and ended at another."""
        where = f"{where}, {asked}"
        lines = [line for line in answer.lines if line.match and line.channel == CHANNEL]
        ids: list[Row] = [((line.run, line.rank), line.seq) for line in lines]
        shown = set(ids)
        self.note("doubled", len(ids) - len(shown), where)
        self._check_texts(lines, where)
        self.note("undeleted", self._count_deleted(shown, before.tombstones), where)
        state = answer.completeness.state
        self.check_drops(asked.run, answer.completeness, where)
        self.answers[state] += 1
        skipped = answer.completeness.skipped_tasks
        # a question of no run may find what a killed writer left, and can't tell whether others have it
        doubts = asked.run == EVERY_RUN and all("no index of" in one["reason"] for one in skipped)
        wrong = state == "partial" and not faulted and not doubts
        self.note("broken", int(wrong), f"{where}: partial, {skipped[:2]}")
        if state != "partial" or not faulted:
            must = self.wanted(asked, before.stored, after.tombstones)
            why = f"{where}: {state}, {answer.completeness.skipped_tasks[:2]}"
            self.note("lost", len(must - shown), f"{why} {sorted(must - shown)[:3]}")
        if state == "complete":
            said = before.said_rows(asked)
            missing = self.wanted(asked, said, after.tombstones) - shown
            self.note("false_complete", len(missing), f"{where} {sorted(missing)[:3]}")
        self._check_watermark(asked, answer, before, after, shown, where)

    def _count_deleted(self, shown: set[Row], tombstones: Tombstones) -> int:
        """How many of these rows were deleted."""
        seqs: dict[Name, list[int]] = {}
        for name, seq in sorted(shown):
            seqs.setdefault(name, []).append(seq)
        return sum(
            bisect_left(found, end) - bisect_left(found, first)
            for name, found in seqs.items()
            if name in self.streams
            for first, end in self._deleted(self.streams[name], tombstones)
        )

    def _check_texts(self, lines: Sequence[Any], where: str) -> None:
        for line in lines:
            one = self.streams.get((line.run, line.rank))
            if one is None or line.seq >= len(one.ts):
                self.note("broken", 1, f"nobody said {line.id} {line.text!r}, {where}")
            elif line.text != text_of(one.rank, line.seq) or line.ts_ns != one.ts[line.seq]:
                self.note("broken", 1, f"{line.id} is {line.text!r} at {line.ts_ns}, {where}")

    def _check_watermark(
        self,
        asked: Asked,
        answer: Any,
        before: Known,
        after: Known,
        shown: set[Row],
        where: str,
    ) -> None:
        """Everything before it is stored, of the streams that were seen."""
        mark = answer.completeness.watermark_ns
        if mark is None or answer.completeness.state == "partial":
            return
        seen = {name for name, _ in shown}
        rows = {
            name: [(0, min(before.said[name], bisect_left(self.streams[name].ts, mark)))]
            for name in seen & before.said.keys()
        }
        missing = self.wanted(asked, rows, after.tombstones) - shown
        self.note(
            "false_complete", len(missing), f"watermark {mark}, {where} {sorted(missing)[:3]}"
        )

    def check_count(
        self, asked: Asked, answer: Any, before: Known, after: Known, *, faulted: bool, where: str
    ) -> None:
        """A count: no less than what is stored, no more than what was said."""
        where = f"count {where}, {asked}"
        state, count = answer.completeness.state, answer.count
        if state != "partial" or not faulted:
            least = len(self.wanted(asked, before.stored, after.tombstones))
            self.note("lost", max(0, least - count), f"{where}: {count} of {least}, {state}")
        said = {name: [(0, count_)] for name, count_ in after.said.items()}
        floors, self.floors = self.floors, {}
        most = len(self.wanted(asked, said, before.tombstones))
        self.floors = floors
        self.note("doubled", max(0, count - most), f"{where}: {count} of at most {most}")
        if state == "complete":
            said = before.said_rows(asked)
            least = len(self.wanted(asked, said, after.tombstones))
            self.note("false_complete", max(0, least - count), f"{where}: {count} of {least}")

    def check_drops(
        self, run: str, completeness: Any, where: str, *, all_told: bool = False
    ) -> None:
        """What an answer says was dropped: no more than was, and all of it where `all_told`."""
        told = sum(one["lines"] for one in completeness.dropped if one["reason"] == LOST)
        was = self.dropped.total() if run == EVERY_RUN else self.dropped[run]
        what = f"{told} told as dropped, {where}"
        self.note("doubled", max(0, told - was), what)
        if all_told:
            self.note("lost", max(0, was - told), what)

    def check_points(
        self, count: int, state: str, before: Known, *, faulted: bool, where: str
    ) -> None:
        """Values of the series: no fewer than are stored, no more than were said."""
        where, said = f"points {where}: {count}, {state}", self.points.total()
        if state != "partial" or not faulted:
            self.note("lost", max(0, before.points_stored - count), where)
        self.note("doubled", max(0, count - said), where)


def _may_be_deleted(one: Said, gone: Tombstones) -> Ranges:
    """Of a stream that was not acknowledged, so that nobody knows which of the deleted ones it is."""
    if one.ids or not gone.streams:
        return []
    return [(seq, seq + 1) for seq in range(len(one.ts)) if users_of(seq)]


def _cut(ranges: Ranges, low: int, high: int) -> Ranges:
    return [(max(a, low), min(b, high)) for a, b in ranges if a < high and b > low]


def _of_bucket(first: int, end: int, bucket: int) -> range:
    if bucket == EVERY_BUCKET:
        return range(first, end)
    return range(first + (bucket - first) % BUCKETS, end, BUCKETS)
