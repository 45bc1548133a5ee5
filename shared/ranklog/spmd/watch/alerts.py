"""Conditions into alerts: each once, many of a kind as one, resolved when the condition ends."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ranklog.spmd.watch.news import Patience

# A condition that comes and goes waits so many rounds more each time, at most.
_FLAPS_MAX = 5
GONE = "gone"


@dataclass(frozen=True, slots=True)
class Condition:
    """Something that holds now. (`kind`, `subject`) is what it is of; those of one `kind` and
    `verdict` that begin together are told together. `facts` are what its words are made of."""

    kind: str
    subject: str
    since_ns: int
    verdict: str = ""
    ranks: tuple[int, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)
    single: bool = False  # of one rank: others of its kind may follow in a moment

    @property
    def key(self) -> tuple[str, str]:
        return self.kind, self.subject


@dataclass(frozen=True, slots=True)
class Notice:
    """An alert that begins (`state` fired) or ends (resolved), in words."""

    state: str
    kind: str
    verdict: str
    severity: str
    subjects: tuple[str, ...]
    ranks: tuple[int, ...]
    ts_ns: int
    since_ns: int
    message: str
    query: str
    runbook: str
    facts: dict[str, Any] = field(default_factory=dict)


Told = Callable[[str, Sequence[Condition], int], Notice]


class Alerts:
    """What was told and has not ended."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self.fired: dict[tuple[str, str], Condition] = {}
        self._waiting: dict[tuple[str, str], int] = {}  # rounds since it began
        self._flaps: dict[tuple[str, str], int] = {}

    def step(
        self, holding: Iterable[Condition], now_ns: int, tell: Told, *, last: bool = False
    ) -> list[Notice]:
        """What to tell after a round. `last`: no other round comes, so nothing waits."""
        now = {condition.key: condition for condition in holding}
        ended = [self.fired.pop(key) for key in list(self.fired) if key not in now]
        for condition in ended:
            self._flaps[condition.key] = min(_FLAPS_MAX, self._flaps.get(condition.key, 0) + 1)
        waited = {key: self._waiting.get(key, -1) + 1 for key in now if key not in self.fired}
        begun = [
            now[key] for key, rounds in waited.items() if last or self._is_due(now, key, rounds)
        ]
        begun += [condition for condition in now.values() if self._is_worse(condition)]
        self._waiting = {key: rounds for key, rounds in waited.items() if now[key] not in begun}
        self.fired |= {condition.key: condition for condition in begun}
        found = [tell("resolved", group, now_ns) for group in _grouped(ended)]
        return found + [tell("fired", group, now_ns) for group in _grouped(begun)]

    def _is_due(
        self, now: dict[tuple[str, str], Condition], key: tuple[str, str], rounds: int
    ) -> bool:
        settle = self._patience.settle if now[key].single else 0
        return rounds >= settle + self._flaps.get(key, 0)

    def _is_worse(self, condition: Condition) -> bool:
        """A rank that was silent, and whose process turns out to be gone, is told again."""
        told = self.fired.get(condition.key)
        return told is not None and condition.verdict == GONE != told.verdict

    def to_json(self) -> dict[str, Any]:
        """For a file of state."""
        rows = [
            [c.kind, c.subject, c.since_ns, c.verdict, c.ranks, c.facts, c.single]
            for c in self.fired.values()
        ]
        flaps = [[*key, count] for key, count in self._flaps.items()]
        waiting = [[*key, rounds] for key, rounds in self._waiting.items()]
        return {"fired": rows, "flaps": flaps, "waiting": waiting}

    def read(self, said: dict[str, Any]) -> None:
        """Go on from what to_json said."""
        for kind, subject, since, verdict, ranks, facts, single in said["fired"]:
            condition = Condition(kind, subject, since, verdict, tuple(ranks), facts, single)
            self.fired[condition.key] = condition
        self._flaps = {(kind, subject): count for kind, subject, count in said["flaps"]}
        self._waiting = {(kind, subject): rounds for kind, subject, rounds in said["waiting"]}


def _grouped(conditions: Sequence[Condition]) -> list[list[Condition]]:
    groups: dict[tuple[str, str], list[Condition]] = defaultdict(list)
    for condition in conditions:
        alone = "" if condition.single else condition.subject
        groups[condition.kind + condition.verdict, alone].append(condition)
    return list(groups.values())
