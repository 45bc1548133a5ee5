"""An answer in hand: lines with their completeness and cost, and ways to other libraries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ranklog.answer.render import (
    answer_json,
    completeness_json,
    count_json,
    report_json,
)
from ranklog.errors import BadInput
from ranklog.merge.numbers import ERROR
from ranklog.model.answer import Completeness, Line, Report


class Tabular(ABC):
    """What can be had as an Arrow table can be had as the frames of other libraries."""

    __slots__ = ()

    @abstractmethod
    def to_arrow(self) -> Any:
        """A pyarrow table."""

    def to_pandas(self) -> Any:
        """A pandas frame. pandas is the caller's."""
        _need("pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """A polars frame. polars is the caller's."""
        return _need("polars").from_arrow(self.to_arrow())


@dataclass(slots=True)
class Answer(Tabular):
    """`lines` in order; those with `match` False stand beside a match (its group, its context).

    `next` resumes behind the last match; `truncated`: a limit cut the answer. `explain`: the plan,
    where it was asked for instead of lines. `pin`: {"id", "query", …} where it was pinned.
    """

    lines: list[Line] = field(default_factory=list)
    completeness: Completeness = field(default_factory=Completeness)
    report: Report = field(default_factory=Report)
    next: str | None = None
    truncated: bool = False
    fields: tuple[str, ...] = ()
    explain: dict[str, Any] | None = None
    pin: dict[str, Any] | None = None

    def __len__(self) -> int:
        return len(self.lines)

    def __iter__(self) -> Iterator[Line]:
        return iter(self.lines)

    @property
    def matches(self) -> list[Line]:
        """The lines that match, without their neighbours."""
        return [line for line in self.lines if line.match]

    def to_json(self) -> dict[str, Any]:
        """The answer of `POST /v1/search`."""
        shown = answer_json(
            self.lines,
            next_cursor=self.next,
            truncated=self.truncated,
            completeness=self.completeness,
            report=self.report,
            fields=self.fields,
        )
        if self.pin is not None:
            shown["pin"] = self.pin
        return shown if self.explain is None else shown | {"explain": self.explain}

    def to_arrow(self) -> Any:
        """A pyarrow table, one row per line; metadata is a JSON column beside typed columns."""
        from ranklog.client.tables import lines_table

        return lines_table(self.lines)


@dataclass(slots=True)
class CountAnswer(Tabular):
    """`rows`: (values of `fields`, count), in order of the values; without fields one row.

    With `top` the largest groups come first, and only so many; `total` is of all of them. `stats`: per
    row, the numbers of each key that was asked for (merge/numbers).
    """

    fields: tuple[str, ...]
    rows: list[tuple[tuple[Any, ...], int]]
    completeness: Completeness = field(default_factory=Completeness)
    report: Report = field(default_factory=Report)
    explain: dict[str, Any] | None = None
    total: int | None = None
    stats: list[dict[str, Any]] | None = None

    @property
    def count(self) -> int:
        """All matching lines."""
        return sum(count for _, count in self.rows) if self.total is None else self.total

    @property
    def approximate(self) -> dict[str, Any] | None:
        """What is not exact: quantiles are within this share of their value. None: all is exact."""
        return None if self.stats is None else {"quantiles": ERROR}

    def groups(self) -> list[dict[str, Any]]:
        """One object per group, `{"count": N}` without fields; `stats` where they were asked for."""
        shown = [count_json(self.fields, key, count) for key, count in self.rows]
        if self.stats is None:
            return shown
        return [{**one, "stats": stats} for one, stats in zip(shown, self.stats, strict=True)]

    def to_json(self) -> dict[str, Any]:
        """The answer of `POST /v1/count`."""
        shown: dict[str, Any] = {"count": self.count} if not self.fields else {}
        if self.fields:
            shown["groups"] = self.groups()
            shown["count"] = self.count
        elif self.stats:
            shown["stats"] = self.stats[0]
        if self.approximate is not None:
            shown |= {"approximate": True, "error": self.approximate}
        shown["completeness"] = completeness_json(self.completeness)
        shown["report"] = report_json(self.report)
        return shown if self.explain is None else shown | {"explain": self.explain}

    def to_arrow(self) -> Any:
        """A pyarrow table, one row per group."""
        from ranklog.client.tables import objects_table

        return objects_table(self.groups())


@dataclass(slots=True)
class Listing(Tabular):
    """Rows of JSON objects (runs, streams, call sites, hunks) with completeness and cost."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    completeness: Completeness = field(default_factory=Completeness)
    report: Report = field(default_factory=Report)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def __getitem__(self, at: int) -> dict[str, Any]:
        return self.rows[at]

    def to_json(self, name: str) -> dict[str, Any]:
        """`{name: rows, completeness, report}`."""
        return {
            name: self.rows,
            "completeness": completeness_json(self.completeness),
            "report": report_json(self.report),
        }

    def to_arrow(self) -> Any:
        """A pyarrow table, one row per object."""
        from ranklog.client.tables import objects_table

        return objects_table(self.rows)


def _need(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise BadInput(f"{name} is not installed", hint=f"pip install {name}") from error
