"""What happened to a run, in hand: the JSON of the interfaces with completeness and cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ranklog.answer.render import completeness_json, report_json
from ranklog.model.answer import Completeness, Report


@dataclass(slots=True)
class Triage:
    """`result`: run, attempt, class, undecidable, suspects, timeline, last_iteration,
    last_checkpoint, next_steps; see docs/debugging.md."""

    result: dict[str, Any]
    completeness: Completeness = field(default_factory=Completeness)
    report: Report = field(default_factory=Report)

    def __getitem__(self, name: str) -> Any:
        return self.result[name]

    @property
    def fault(self) -> str:
        """The class; `none` for a healthy run."""
        return str(self.result["class"])

    @property
    def suspects(self) -> list[dict[str, Any]]:
        """The likeliest first."""
        return list(self.result["suspects"])

    def to_json(self) -> dict[str, Any]:
        """The answer of `POST /v1/triage`."""
        return {
            **self.result,
            "completeness": completeness_json(self.completeness),
            "report": report_json(self.report),
        }
