"""The lines of a round, and what became of them. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ranklog.limits import CANARY_RUN, SECOND_NS
from ranklog.model.answer import Line
from ranklog.objectives import names
from ranklog.objectives.measures import Measures

# Seldom asked for: `level>=INFO` has none of them.
LEVEL = 10
_TEXT = re.compile(r"ranklog canary ([0-9a-f]{16}) line (\d+) of (\d+)")


@dataclass(frozen=True, slots=True)
class Round:
    """`number_of` lines that are known by `round_id`, 16 hex digits, in a launch by day."""

    round_id: str
    lines: int
    launch: str

    @property
    def run_id(self) -> str:
        """Where they are looked for."""
        return f"{CANARY_RUN}@{self.launch}"

    @property
    def query(self) -> str:
        """What finds all of them, and no other."""
        return f'"ranklog canary {self.round_id} "'

    def texts(self) -> list[str]:
        """The lines, in order."""
        return [
            f"ranklog canary {self.round_id} line {at} of {self.lines}" for at in range(self.lines)
        ]


@dataclass(slots=True)
class Found:
    """Lines of a round that a search returned: when each number was seen first, how often it is there."""

    round: Round
    seen_ms: dict[int, float] = field(default_factory=dict)
    times: Counter[int] = field(default_factory=Counter)
    altered: int = 0

    def look(self, lines: Iterable[Line], now_ns: int) -> None:
        """What a search returned now, in place of what an earlier one did."""
        self.times, self.altered = Counter(), 0
        for line in lines:
            match = _TEXT.fullmatch(line.text)
            number = None if match is None else int(match[2])
            if number is None or line.text not in self.round.texts()[number : number + 1]:
                self.altered += 1
                continue
            self.times[number] += 1
            self.seen_ms.setdefault(number, max(0, now_ns - line.ts_ns) / (SECOND_NS / 1000))

    @property
    def is_all(self) -> bool:
        """Whether every line is there."""
        return len(self.times) == self.round.lines

    def outcome(self, counted: int, waited_s: float) -> Outcome:
        """What became of the round; `counted`: how many lines a count says that there are."""
        doubled = sum(times - 1 for times in self.times.values())
        unseen = counted - self.times.total() - self.altered
        return Outcome(
            self.round,
            missing=self.round.lines - len(self.times),
            doubled=doubled + max(0, unseen),
            altered=self.altered,
            ms=sorted(self.seen_ms[number] for number in self.times),
            waited_s=waited_s,
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """`ms`: per line that was found, from its own time to the search that saw it first, ascending.
    `error`: why it could not be written or read."""

    round: Round
    missing: int
    doubled: int
    altered: int
    ms: list[float]
    waited_s: float
    error: str | None = None

    @property
    def is_well(self) -> bool:
        return not (self.missing or self.doubled or self.altered)

    def measures(self) -> Measures:
        """For the tenant's objectives."""
        made = Measures()
        made.count(names.CANARY_LINES, self.round.lines)
        made.count(names.CANARY_MISSING, self.missing)
        made.count(names.CANARY_DOUBLED, self.doubled + self.altered)
        for ms in self.ms:
            made.took(names.CANARY_MS, ms)
        return made

    def to_json(self) -> dict[str, Any]:
        return {
            "round": self.round.round_id,
            "run_id": self.round.run_id,
            "lines": self.round.lines,
            "missing": self.missing,
            "doubled": self.doubled,
            "altered": self.altered,
            "freshness_ms": {
                "p50": _at(self.ms, 50),
                "p99": _at(self.ms, 99),
                "max": self.ms[-1] if self.ms else None,
            },
            "waited_s": round(self.waited_s, 3),
            "error": self.error,
        }


def _at(values: list[float], percent: int) -> float | None:
    """Nearest rank."""
    return values[max(0, -(-percent * len(values) // 100) - 1)] if values else None
