"""What is asked amid a schedule and at its end, and whether the answers are true."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ranklog.client.audit import audit
from ranklog.client.reader import Reader
from ranklog.errors import NotFound, RanklogError
from ranklog.limits import COMPACT_GRACE_S, DAY_NS, HOUR_NS, SECOND_NS
from ranklog.model.tombstone import Tombstones
from tests.matrix import actors
from tests.matrix import faults as f
from tests.matrix.actors import DOOMED, RUN, SCRATCH, TWIN, WORLD
from tests.matrix.baton import Task
from tests.matrix.boundary import Boundary, Killed
from tests.matrix.faults import ActorPlan, Injection
from tests.matrix.machine import T0
from tests.matrix.play import Play
from tests.matrix.truth import BUCKETS, EVERY_BUCKET, EVERY_RUN, Asked, Known
from tests.matrix.works import add_compaction

# All that is said.
SPAN = (T0 - 4 * DAY_NS, T0 + DAY_NS)


def draw_question(play: Play) -> Asked:
    """One of sixteen parts of a run's lines, of some hours and of one rank perhaps."""
    rng = play.rng
    run = rng.choice([RUN, RUN, RUN, RUN, SCRATCH, DOOMED, EVERY_RUN])
    bucket, window, rank = rng.randrange(BUCKETS), None, None
    if run == RUN and rng.random() < 0.5:
        first = T0 + rng.randrange(5) * HOUR_NS
        window = (first, first + rng.choice([HOUR_NS, 2 * HOUR_NS, HOUR_NS // 4]))
    if run == EVERY_RUN:  # without a time it would be about the last hours
        window = SPAN
    if run == RUN and rng.random() < 0.2:
        rank = rng.randrange(WORLD)
    return Asked(run, bucket, window, rank)


def add_query(play: Play) -> None:
    """A question beside others' work: a search, a count of lines, or one of points."""
    asked, drawn = draw_question(play), play.rng.random()
    ask = ask_points if drawn < 0.15 else count_lines if drawn < 0.45 else ask_lines
    kept = play.rng.random() < 0.4
    injection = play.sigkill(f.QUERY)

    def work(task: Task) -> None:
        if injection is not None:
            play.in_child(injection, "search", (asked,))
        else:
            ask(play, asked, play.boundary(f.QUERY, task), kept=kept)

    play.stage.add("query", work)


def ask_lines(play: Play, asked: Asked, boundary: Boundary, *, kept: bool = False) -> None:
    """A search."""

    def check(answer: Any, before: Known, *, faulted: bool) -> None:
        play.truth.check(asked, answer, before, play.known(), faulted=faulted, where=play.where)

    _ask(play, asked, boundary, kept, lambda reader: actors.search(reader, asked), check)


def count_lines(play: Play, asked: Asked, boundary: Boundary, *, kept: bool = False) -> None:
    """A count."""

    def check(answer: Any, before: Known, *, faulted: bool) -> None:
        after, where = play.known(), play.where
        play.truth.check_count(asked, answer, before, after, faulted=faulted, where=where)

    _ask(play, asked, boundary, kept, lambda reader: actors.count(reader, asked), check)


def ask_points(play: Play, _: Asked, boundary: Boundary, *, kept: bool = False) -> None:
    """How many values a series has."""

    def check(answer: Any, before: Known, *, faulted: bool) -> None:
        state = answer.completeness.state
        play.truth.check_points(answer.count, state, before, faulted=faulted, where=play.where)

    asked = Asked(RUN)
    _ask(play, asked, boundary, kept, lambda reader: actors.count_points(reader, RUN), check)


def _ask(
    play: Play,
    asked: Asked,
    boundary: Boundary,
    kept: bool,
    ask: Callable[[Reader], Any],
    check: Callable[..., None],
) -> None:
    """An error is right where a request was disturbed, or nothing is stored yet."""
    before, began = play.known(), play.clock()
    reader = play.take_reader(boundary, kept=kept)
    try:
        answer = ask(reader)
    except RanklogError as error:
        if boundary.faulted:
            return
        if not isinstance(error, NotFound):
            play.truth.note("broken", 1, f"{play.where}: {asked}: {error}")
            return
        must = play.truth.wanted(asked, before.stored, play.gone())
        play.truth.note("lost", len(must), f"{play.where}: {error}")
        return
    if boundary.dead:
        raise Killed
    if kept:
        play.keep_reader(reader)
    is_old = play.clock() - began > COMPACT_GRACE_S * SECOND_NS
    check(answer, before, faulted=boundary.faulted or is_old)


def pause_question(play: Play) -> None:
    """A question stands still behind one of its LISTs, while compaction goes by; what it listed is there."""
    plan = ActorPlan([Injection(f.QUERY, "index.list", f.STALL_AFTER, play.rng.randrange(2))])
    asked = Asked(RUN, play.rng.randrange(BUCKETS))
    task = play.stage.add(
        "paused query", lambda task: ask_lines(play, asked, play.boundary(f.QUERY, task, plan))
    )
    play.run_stage()
    add_compaction(play)
    play.run_stage()
    task.stalled = False
    play.run_stage()


def ask_twin(play: Play) -> None:
    """The run of which frames arrive one by one: whole, or one of its two hours."""
    hour = T0 + play.rng.choice([-1, 0]) * HOUR_NS
    window = play.rng.choice([None, (hour, hour + HOUR_NS)])
    ask_lines(play, Asked(TWIN, EVERY_BUCKET, window), play.quiet())


class Pins:
    """Questions that are kept have the same lines for good, but for those that are deleted; retention does
    not take any."""

    def __init__(self) -> None:
        self._kept: list[tuple[str, Asked, set[str]]] = []

    def pin(self, play: Play, asked: Asked) -> None:
        """Keep a question; none about a run of which nothing is stored yet."""
        try:
            answer = actors.search(play.site.reader(play.quiet()), asked, pin=True)
        except NotFound as error:
            must = play.truth.wanted(asked, play.known().stored, play.gone())
            play.truth.note("lost", len(must), f"to be pinned: {error}")
            return
        assert answer.pin is not None
        ids = {line.id for line in answer.lines}
        self._kept.append((str(answer.pin["id"]), asked, ids))

    def check(self, play: Play) -> None:
        """Ask it again."""
        gone = play.gone_of_pins()
        for pin, asked, ids in self._kept:
            answer = actors.search(play.site.reader(play.quiet()), asked, pin=pin)
            shown = {line.id for line in answer.lines}
            kept = {name for name in ids if not _is_deleted(name, gone)}
            play.truth.note("lost", len(kept - shown), f"of a pinned question: {pin}")
            play.truth.note("doubled", len(shown - ids), f"new in a pinned question: {pin}")


def _is_deleted(line_id: str, gone: Tombstones) -> bool:
    stream_id, _, seq = line_id.partition(":")
    return any(low <= int(seq) < high for low, high in gone.streams.get(stream_id, ()))


# --- at the end ------------------------------------------------------------------------------------
def check_deletion(play: Play, word: str) -> None:
    """What was stored and matches is gone."""
    answer = actors.search(play.site.reader(play.quiet()), Asked(RUN), text=word)
    left = [line.id for line in answer.lines]
    play.truth.note("undeleted", len(left), f"{word} is in {left[:3]}")


def check_console(play: Play, lines: int) -> None:
    """Two incarnations of a console said so many lines together, with bytes that are no UTF-8."""
    asked = Asked(TWIN)
    answer = actors.search(play.site.reader(play.quiet()), asked, text="channel:stdout console")
    shown = {line.id for line in answer.lines}
    play.truth.note("lost", max(0, lines - len(shown)), f"{len(shown)} lines of a console")
    play.truth.note("doubled", max(0, len(answer.lines) - lines), "lines of a console")


def last_answers(play: Play) -> None:
    """Everything that is left is there once, and every answer knows."""
    play.where = "at the end"
    play.truth.store_all()
    failed = actors.compact(play.site, play.quiet())
    play.truth.note("broken", len(failed), f"compaction leaves {failed}")
    for run in (RUN, SCRATCH, DOOMED, TWIN):
        ask_lines(play, Asked(run, EVERY_BUCKET), play.quiet())
    _check_every_run(play)
    for hour in range(-1, 5, 2):
        first = T0 + hour * HOUR_NS
        ask_lines(play, Asked(RUN, 3, (first, first + HOUR_NS)), play.quiet(), kept=True)
    count_lines(play, Asked(RUN, EVERY_BUCKET), play.quiet())
    _check_complete(play)
    _check_series(play)
    _check_audit(play)


def _check_every_run(play: Play) -> None:
    """What killed writers left is gone."""
    asked = Asked(EVERY_RUN, EVERY_BUCKET, SPAN)
    ask_lines(play, asked, play.quiet())
    found = actors.search(play.site.reader(play.quiet()), asked).completeness
    told = f"{found.state} at the end, of every run: {found.skipped_tasks}"
    play.truth.note("broken", int(found.state == "partial"), told)


def _check_complete(play: Play) -> None:
    found = actors.search(play.site.reader(play.quiet()), Asked(RUN, 0)).completeness
    play.truth.check_drops(RUN, found, play.where, all_told=True)
    wanted = "behind" if play.truth.silent else "complete"
    told = f"{found.behind} {found.absent} {found.gaps} {found.skipped_tasks}"
    play.truth.note("broken", int(found.state != wanted), f"{wanted} is {found.state}: {told}")


def _check_series(play: Play) -> None:
    ask_points(play, Asked(RUN), play.quiet())
    answer = actors.series(play.site.reader(play.quiet()), RUN)
    read, said = int(answer.read.sum()), play.truth.points.total()
    play.truth.note("lost", max(0, said - read), f"{read} of {said} values of the series")
    play.truth.note("doubled", max(0, read - said), f"{read} of {said} values of the series")


def _check_audit(play: Play) -> None:
    found = audit(play.site.reader(play.quiet()))
    bad = [one.to_json() for one in found.frames if one.state in ("missing", "altered")]
    play.truth.note("broken", len(bad) + len(found.segments), f"audit: {bad} {found.segments}")
