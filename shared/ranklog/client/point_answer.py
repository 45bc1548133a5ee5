"""Points of a search in hand: objects, with their completeness and cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ranklog.answer.render import completeness_json, report_json
from ranklog.client.answer import Answer


@dataclass(slots=True)
class PointPage(Answer):
    """Points in order of time, as JSON objects; `lines` are none."""

    points: list[dict[str, Any]] = field(default_factory=list)
    table: Any = None

    def __len__(self) -> int:
        return len(self.points)

    def to_json(self) -> dict[str, Any]:
        """The answer of `POST /v1/search` to a question for points."""
        return {
            "lines": [],
            "points": [chosen(point, self.fields) for point in self.points],
            "next": None,
            "truncated": self.truncated,
            "completeness": completeness_json(self.completeness),
            "report": report_json(self.report),
        }

    def to_arrow(self) -> Any:
        """A pyarrow table, one row per point (client/points)."""
        from ranklog.client.tables import objects_table

        return objects_table(self.points) if self.table is None else self.table


def chosen(point: dict[str, Any], fields: Sequence[str]) -> dict[str, Any]:
    """The point, or only these of its members, dimensions and metadata."""
    if not fields:
        return point
    return {
        name: point.get(name, point["dims"].get(name, point["metadata"].get(name)))
        for name in fields
    }
