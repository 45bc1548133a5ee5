"""A producer that keeps what it is given."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ranklog.produce import context
from ranklog.produce.producer import Moment

NOW_NS = 7


class Recorder:
    """`points`: (values, dims, iteration, ts_ns); `lines`: (text, metadata)."""

    def __init__(self) -> None:
        self.points: list[tuple[dict[str, Any], dict[str, Any] | None, int | None, int]] = []
        self.lines: list[tuple[str, dict[str, Any]]] = []

    def moment(self) -> Moment:
        return Moment(NOW_NS, 0, None, context.current_iteration())

    def telemetry(
        self, values: dict[str, Any], dims: dict[str, Any] | None, moment: Moment | None = None
    ) -> None:
        at = moment or self.moment()
        self.points.append((values, dims, at.iteration, at.ts_ns))

    def call_at(self, *_: Any) -> Any:
        return SimpleNamespace(site=0)

    def emit(self, level: int, site: int, text: str, metadata: dict[str, Any]) -> None:
        self.lines.append((text, metadata))

    def values(self) -> list[tuple[dict[str, Any], int | None]]:
        return [(values, iteration) for values, _, iteration, _ in self.points]
