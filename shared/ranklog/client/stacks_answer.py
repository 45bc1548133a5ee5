"""Groups of ranks by their stacks, with completeness and cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ranklog.answer.render import completeness_json, report_json
from ranklog.model.answer import Completeness, Report


@dataclass(slots=True)
class StacksAnswer:
    """`groups`: {ranks, count, odd, waits, reason, dumped_ns, threads: [{name, frames}]}, the odd ones
    first. `missing`: ranks of the run of which no dump was found."""

    groups: list[dict[str, Any]]
    missing: list[int] = field(default_factory=list)
    completeness: Completeness = field(default_factory=Completeness)
    report: Report = field(default_factory=Report)

    @property
    def odd(self) -> list[int]:
        """Ranks that stand where most don't."""
        return sorted(rank for group in self.groups if group["odd"] for rank in group["ranks"])

    def to_json(self) -> dict[str, Any]:
        """The answer of `POST /v1/stacks`."""
        return {
            "groups": self.groups,
            "missing": self.missing,
            "completeness": completeness_json(self.completeness),
            "report": report_json(self.report),
        }
