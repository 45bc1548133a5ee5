"""What is said how often: templates of a scope, whoever logs them, summed in any order.

A sum remembers where its first line is, so that one line can be shown as an example.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ranklog.model.index import SiteCount
from ranklog.spmd.callsites import NO_RANK
from ranklog.spmd.variables import shown_template

# Where a pattern's first line is: its time, then the planner's number of the segment.
Place = tuple[int, int]


@dataclass(slots=True)
class Pattern:
    """One template. `tid`: its id in the segment of `first`."""

    template: str | None  # None: lines that the index keeps no template of
    first: Place
    tid: int
    last_ns: int
    count: int = 0
    ranks: set[int] = field(default_factory=set)

    def to_json(
        self, render_time: Callable[[int], str], example: Mapping[str, Any] | None, new: bool | None
    ) -> dict[str, Any]:
        """The object of `interfaces`, patterns; `ranks` ascending, lines without a rank left out."""
        return {
            "template": None if self.template is None else shown_template(self.template),
            "count": self.count,
            "ranks": sorted(self.ranks - {NO_RANK}),
            "first_ns": self.first[0],
            "first": render_time(self.first[0]),
            "last_ns": self.last_ns,
            "last": render_time(self.last_ns),
            "example": None if example is None else dict(example),
            "new": new,
        }


class Patterns:
    """Adds up counts of segments. `templates` of each turn its own template ids into text."""

    def __init__(self) -> None:
        self._found: dict[str | None, Pattern] = {}

    def add(self, number: int, counts: Iterable[SiteCount], templates: Sequence[str]) -> None:
        """Add counts of the segment `number`; template 0 has no text."""
        for item in counts:
            template = templates[item.tid] if item.tid else None
            place = (item.min_ts, number)
            known = self._found.get(template)
            if known is None:
                known = Pattern(template, place, item.tid, item.max_ts)
                self._found[template] = known
            elif place < known.first:
                known.first, known.tid = place, item.tid
            known.count += item.count
            known.last_ns = max(known.last_ns, item.max_ts)
            known.ranks.update(rank for rank, _ in item.ranks)

    def __contains__(self, template: str | None) -> bool:
        return template in self._found

    def without_template(self) -> int:
        """Lines whose template nobody knows."""
        known = self._found.get(None)
        return 0 if known is None else known.count

    def largest_first(self) -> list[Pattern]:
        """By count, then by text."""
        return sorted(self._found.values(), key=_order)


def _order(pattern: Pattern) -> tuple[int, str, bool]:
    """Largest first, then by template; lines without one before empty lines, whose template is ""."""
    return -pattern.count, pattern.template or "", pattern.template is not None
