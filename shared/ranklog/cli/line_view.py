"""Lines for people: time, rank gutter, level, text; matches stand out from their neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo

from ranklog.cli.console import Console
from ranklog.cli.tables import pad
from ranklog.cli.times import shown_clock, shown_day
from ranklog.model.answer import Line
from ranklog.model.levels import ERROR, LEVEL_NAMES, WARNING, level_name

_LEVEL_WIDTH = max(map(len, LEVEL_NAMES.values()))


def level_colour(level: int | None) -> str | None:
    """Red from ERROR on, yellow from WARNING on, dim under INFO."""
    if level is None:
        return None
    if level >= ERROR:
        return "bright red"
    if level >= WARNING:
        return "yellow"
    return "dim" if level < 20 else None


def short_site(call_site: str | None) -> str | None:
    """`trainer.py:88` of a call site with its path: what a query takes as well."""
    return None if call_site is None else call_site.rpartition("/")[2]


class LineView:
    """Prints lines; columns appear where some line of the first page has a value for them."""

    def __init__(self, console: Console, zone: tzinfo, lines: Sequence[Line]) -> None:
        self._console = console
        self._zone = zone
        self._day: str | None = None
        runs = {line.run_id for line in lines}
        self._run_width = max(map(len, runs)) if len(runs) > 1 else 0
        self._rank_width = max((len(str(x.rank)) for x in lines if x.rank is not None), default=0)
        self._has_level = any(line.level is not None for line in lines)
        self._iteration_width = max(
            (len(str(x.iteration)) for x in lines if x.iteration is not None), default=0
        )

    def widen(self, line: Line) -> None:
        """Make room for a line that was not on the first page."""
        self._has_level = self._has_level or line.level is not None
        if line.rank is not None:
            self._rank_width = max(self._rank_width, len(str(line.rank)))
        if line.iteration is not None:
            self._iteration_width = max(self._iteration_width, len(str(line.iteration)))

    def show(self, line: Line, mark: str | None = None) -> None:
        """One line, `mark` before its text; a day before the first of that day."""
        console = self._console
        day = shown_day(line.ts_ns, self._zone)
        if day != self._day:
            console.line(console.paint(f"── {day} ──", "dim"))
            self._day = day
        parts = [console.paint(shown_clock(line.ts_ns, self._zone), "dim")]
        if self._run_width:
            parts.append(pad(console.safe(line.run_id), self._run_width))
        if self._iteration_width:
            shown = "" if line.iteration is None else str(line.iteration)
            parts.append(console.paint(f"it {shown:>{self._iteration_width}}", "dim"))
        parts.append(self._gutter(line))
        if self._has_level:
            name = "" if line.level is None else level_name(line.level)
            parts.append(console.paint(f"{name:<{_LEVEL_WIDTH}}", level_colour(line.level)))
        if mark is not None:
            parts.append(console.paint(mark, "yellow"))
        text = console.safe(line.text)
        parts.append(console.paint(text, None if line.match else "dim"))
        site = short_site(line.call_site)
        if site is not None and line.group in (None, line.seq) and site not in line.text:
            parts.append(console.paint(f"({console.safe(site)})", "dim"))
        console.line(" ".join(parts).rstrip())

    def _gutter(self, line: Line) -> str:
        if not self._rank_width:
            return "│" if line.match else "┊"
        rank = "-" if line.rank is None else str(line.rank)
        bar = "│" if line.match else "┊"
        return self._console.paint(
            f"rank {rank:>{self._rank_width}} {bar}", self._console.rank_colour(line.rank)
        )
