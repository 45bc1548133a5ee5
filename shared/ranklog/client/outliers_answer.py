"""Ranks held against their peers, in hand: rows of the interfaces, and what they have in common."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ranklog.answer.render import completeness_json, report_json
from ranklog.model.answer import Completeness, Report


@dataclass(slots=True)
class OutliersAnswer:
    """`rows`: one object per rank that deviates, the oddest first. `summary`: run, attempt, number of
    ranks and lines, the odd ranks, the group that explains them, the heat map."""

    rows: list[dict[str, Any]]
    summary: dict[str, Any]
    completeness: Completeness = field(default_factory=Completeness)
    report: Report = field(default_factory=Report)

    @property
    def odd(self) -> list[int]:
        """Ranks with a score of 0.5 or more."""
        return list(self.summary["odd"])

    @property
    def group(self) -> dict[str, Any] | None:
        """Name, ranks, exceptions, others; None where no group explains the odd ranks."""
        group: dict[str, Any] | None = self.summary["group"]
        return group

    def to_json(self) -> dict[str, Any]:
        """The answer of `POST /v1/outliers`."""
        return {
            "outliers": self.rows,
            "summary": self.summary,
            "completeness": completeness_json(self.completeness),
            "report": report_json(self.report),
        }
