"""What schedules came to: rows of actor, step and fault, with all that went wrong in schedules that had it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.matrix.faults import every_row
from tests.matrix.schedule import Result
from tests.matrix.truth import KINDS

_HEADS = ("lost", "doubled", "undeleted", "false complete", "broken")


@dataclass(slots=True)
class Row:
    """Of the schedules in which it happened."""

    schedules: int = 0
    lines: int = 0
    wrong: Counter[str] = field(default_factory=Counter)

    def add(self, result: Result) -> None:
        self.schedules += 1
        self.lines += result.lines
        self.wrong.update(result.wrong)


@dataclass(slots=True)
class Table:
    """Rows by (actor, step, fault); `total` counts each schedule once."""

    rows: dict[tuple[str, str, str], Row] = field(
        default_factory=lambda: {name: Row() for name in every_row()}
    )
    total: Row = field(default_factory=Row)
    answers: Counter[str] = field(default_factory=Counter)
    cpu_s: float = 0.0

    def add(self, result: Result) -> None:
        """Count a schedule where each of its faults is."""
        self.total.add(result)
        self.answers.update(result.answers)
        self.cpu_s += result.cpu_s
        for name in {(one.actor, one.step, one.fault) for one in result.fired}:
            self.rows.setdefault(name, Row()).add(result)

    @property
    def is_clean(self) -> bool:
        """Nothing went wrong."""
        return not sum(self.total.wrong.values())

    @property
    def never(self) -> list[tuple[str, str, str]]:
        """What no schedule met."""
        return [name for name, row in self.rows.items() if not row.schedules]

    def render(self) -> Iterator[str]:
        """Lines of text."""
        numbers = ("schedules", "lines", *_HEADS)
        yield f"{'actor':<11}{'step':<18}{'fault':<16}" + "".join(f"{n:>15}" for n in numbers)
        for (actor, step, fault), row in self.rows.items():
            if row.schedules:
                yield f"{actor:<11}{step:<18}{fault:<16}" + _numbers(row)
        yield f"{'all':<45}" + _numbers(self.total)
        met = len(self.rows) - len(self.never)
        answers = ", ".join(f"{count} {state}" for state, count in sorted(self.answers.items()))
        yield f"met {met} of {len(self.rows)} faults; {sum(self.answers.values())} searches: {answers}"
        yield f"{self.cpu_s / max(1, self.total.schedules):.1f} s of a worker's processor a schedule"


def _numbers(row: Row) -> str:
    wrong = [row.wrong[kind] for kind in KINDS]
    return "".join(f"{number:>15,}" for number in (row.schedules, row.lines, *wrong))


def told(result: Result, most: int = 5) -> Iterator[str]:
    """What went wrong in a schedule, and what had happened there."""
    yield f"seed {result.seed}: {dict(result.wrong)}"
    yield "  after " + ", ".join(f"{i.actor} {i.step} {i.fault} #{i.nth}" for i in result.fired)
    for note in result.notes[:most]:
        yield f"  {note:.1500}"
