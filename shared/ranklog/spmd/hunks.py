"""What a comparison answers: hunks, the values that changed in them, and how many there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ranklog.model.answer import Line
from ranklog.spmd.slots import Slot
from ranklog.spmd.variables import shown_template


@dataclass(frozen=True, slots=True)
class Change:
    """One value that differs. `values`: side's label -> number or text, absent sides left out.

    `position` counts the variables of the line from 0 (its words, where the texts have different
    shapes); None for metadata, whose key is then the name. `distance` is how far the farthest of the values lies from
    the median of the peers, or without peers from the other values; None where they are no numbers.
    """

    name: str | None
    position: int | None
    values: Mapping[str, int | float | str]
    peers_median: float | None = None
    distance: float | None = None


@dataclass(slots=True)
class Hunk:
    """Neighbouring places of one key and one verdict. `window_ns`: where there is no iteration.

    `op`: equal | insert | delete | change. What most sides say and some do not is a delete, what few
    say an insert; with as many on both sides the first one is what the others are held against.
    """

    op: str
    attempt: int
    iteration: int | None
    window_ns: int | None
    call_site: str | None
    template: str
    lines: dict[str, list[Line]]
    values: list[Change] = field(default_factory=list)
    moved: bool = False

    def to_json(
        self, line_json: Callable[[Line], dict[str, Any]], render_time: Callable[[int], str]
    ) -> dict[str, Any]:
        """The object of `interfaces`, compare."""
        item: dict[str, Any] = {
            "op": self.op,
            "attempt": self.attempt,
            "iteration": self.iteration,
            "window_ns": self.window_ns,
            "window": None if self.window_ns is None else render_time(self.window_ns),
            "call_site": self.call_site,
            "template": shown_template(self.template),
            "ranks": {side: [line_json(x) for x in lines] for side, lines in self.lines.items()},
            "values": [change_json(change) for change in self.values],
        }
        if self.moved:
            item["moved"] = True
        return item


def change_json(change: Change) -> dict[str, Any]:
    """One member of `values`."""
    return {
        "name": change.name,
        "position": change.position,
        **{side: json_number(value) for side, value in change.values.items()},
        "peers_median": json_number(change.peers_median),
        "distance": json_number(change.distance),
    }


def json_number(value: Any) -> Any:
    """NaN and the infinities as the strings that JSON readers can take."""
    if isinstance(value, float):
        if value != value:
            return "NaN"
        if value in (float("inf"), float("-inf")):
            return "Infinity" if value > 0 else "-Infinity"
    return value


@dataclass(slots=True)
class Comparison:
    """Hunks in walking order, and how many places of each verdict there are. `more`: places that
    differ and are in no hunk, because only so many were wanted."""

    sides: list[str]
    hunks: list[Hunk]
    counts: dict[str, int]
    more: int = 0

    @property
    def differs(self) -> bool:
        """Whether any place is not equal."""
        return any(count for op, count in self.counts.items() if op != "equal")


def verdict(slot: Slot[Line], changes: Sequence[Change]) -> str:
    """The op of a slot."""
    if not slot.missing:
        return "change" if changes else "equal"
    absent = slot.lines.count(None)
    present = len(slot.lines) - absent
    if absent != present:
        return "delete" if present > absent else "insert"
    return "insert" if slot.lines[0] is None else "delete"
