"""Processes that ended by themselves: crashes, exceptions, exit codes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ranklog.model.answer import Line
from ranklog.spmd.exceptions import TELEMETRY_MODULES, VICTIM_EXCEPTIONS
from ranklog.spmd.triage.blame import (
    ALL_SHARE,
    ALL_SHARE_AT_START,
    LINES_MAX,
    Cause,
    ranks_of,
    samples,
    shown_words,
    whom,
)
from ranklog.spmd.triage.facts import Facts
from ranklog.spmd.triage.read import Sign
from ranklog.spmd.triage.rules import FAULT_OF
from ranklog.spmd.triage.suspects import everybody, of_ranks

_EXCEPTION, _EXIT = 0.75, 0.7
_CRASHES = frozenset([-11, -7, -8, -4])
_SYMPTOMS = ("peer_gone", "gloo_timeout", "watchdog", "barrier", "task_absent", "no_connection")


def of_crash(score: float, signs: list[Sign], facts: Facts) -> Cause:
    coded = frozenset(rank for rank, code in facts.codes().items() if code in _CRASHES)
    ranks = coded or ranks_of(signs)
    if not coded:
        suspect, _ = whom(signs, facts, score)
        return Cause("crash_signal", score, suspect.why, suspect, signs[0].ts_ns)
    return _crashed(score, ranks, shown_words(signs[0].line.text), samples(signs), facts)


def _crashed(
    score: float, ranks: frozenset[int], words: str, lines: list[Line], facts: Facts
) -> Cause:
    share = ALL_SHARE if facts.progress.began else ALL_SHARE_AT_START
    several = len(ranks) > 1 and len(ranks) >= share * facts.world
    on_every_node = len({facts.places.hosts.get(r) for r in ranks}) == facts.places.nodes > 1
    if several or (on_every_node and not facts.progress.began and len(ranks) > 1):
        suspect = everybody(score, words, lines)
    else:
        suspect = of_ranks(facts.places, ranks, score, words, lines)
    first = lines[0].ts_ns if lines else 0
    return Cause("crash_signal", score, words, suspect, first)


def of_exceptions(signs: Sequence[Sign], facts: Facts) -> list[Cause]:
    """Exceptions that nobody's absence explains."""
    explained = {
        (s.line.stream_id, s.line.seq)
        for s in facts.signs
        if s.kind in _SYMPTOMS or (s.kind in FAULT_OF and not s.handled)
    }
    codes = facts.codes()
    own = [
        s
        for s in signs
        if s.kind == "exception"
        and (s.data["module"] not in TELEMETRY_MODULES or {codes.get(r) for r in s.ranks} == {1})
        and not s.handled
        and s.data["name"] not in VICTIM_EXCEPTIONS
        and (s.line.stream_id, s.line.seq) not in explained
        and not _lived_on(s, facts)
    ]
    if not own:
        return []
    commonest, _ = Counter(s.key for s in reversed(own)).most_common(1)[0]
    alike = [s for s in own if s.key == commonest]
    suspect, all_of_them = whom(alike, facts, _EXCEPTION)
    if not all_of_them:
        suspect, all_of_them = whom(own, facts, _EXCEPTION)
    fault = "import_or_config" if all_of_them and not facts.progress.began else "unknown"
    return [Cause(fault, _EXCEPTION, suspect.why, suspect, own[0].ts_ns)]


def _lived_on(sign: Sign, facts: Facts) -> bool:
    """Whether its process later waited for others, or lost them: it was there."""
    return any(
        other.kind in _SYMPTOMS
        and other.line.stream_id == sign.line.stream_id
        and other.line.rank == sign.line.rank
        and other.line.seq > sign.line.seq
        and other.line.group != sign.line.group
        for other in facts.signs
    )


def of_codes(facts: Facts) -> list[Cause]:
    """Crashes and exits that only a code tells of."""
    codes = facts.codes()
    crashed = frozenset(rank for rank, code in codes.items() if code in _CRASHES)
    lines = [e.line for e in facts.exits if e.line is not None and e.rank in crashed][:LINES_MAX]
    if crashed:
        number = -codes[min(crashed)]
        return [_crashed(0.85, crashed, f"ended by signal {number}", lines, facts)]
    lost = frozenset(r for s in facts.of(*_SYMPTOMS) for r in s.ranks)
    aborted = frozenset(rank for rank, code in codes.items() if code == -6) - lost
    waited = facts.of("watchdog", "gloo_timeout", "mismatch")
    if aborted and len(aborted) * 4 <= facts.world and not waited:
        lines = [e.line for e in facts.exits if e.line is not None and e.rank in aborted]
        return [_crashed(0.8, aborted, "ended by signal 6", lines[:LINES_MAX], facts)]
    own = frozenset(rank for rank, code in codes.items() if code > 1)
    if not own:
        own = frozenset(rank for rank, code in codes.items() if code == 1) - lost
    if not own or waited or (len(own) > 1 and not lost and len(own) < facts.world):
        return []
    lines = [e.line for e in facts.exits if e.line is not None and e.rank in own][:LINES_MAX]
    words = f"ended itself with exit code {codes[min(own)]}"
    if len(own) > 1 and len(own) >= ALL_SHARE * facts.world:
        suspect = everybody(_EXIT, words, lines)
    else:
        suspect = of_ranks(facts.places, own, _EXIT, words, lines)
    return [Cause("unknown", _EXIT, words, suspect, lines[0].ts_ns if lines else 0)]
