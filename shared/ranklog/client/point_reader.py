"""New points of losses and gradient norms, look by look, over a store or an API.

Points of a series come from many producers, and not in order of time. So each look asks again for the
time just before the newest one, and leaves out what it had.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ranklog.answer.render import render_time
from ranklog.client.point_answer import PointPage
from ranklog.client.point_lines import lines_of
from ranklog.client.words import Restrictions
from ranklog.errors import BadQuery, Unavailable
from ranklog.limits import SECOND_NS
from ranklog.model.answer import Line
from ranklog.spmd.watch.numbers import is_watched

if TYPE_CHECKING:
    from ranklog.client.client import Client

# Later than this behind the newest, a point is not seen.
_LATE_NS = 60 * SECOND_NS
# Of one look; of more the newest.
_POINTS_MAX = 20_000
_SERIES = "kind:point series:/(?i:loss|grad)/"


class PointReader:
    """Of one launch. `newest_ns`: time of the newest point that was read; one that goes on from there
    has nothing twice."""

    def __init__(self, client: Client, query: str, given: Restrictions) -> None:
        self._client, self._given = client, given
        self._query = f"{_SERIES} ({query})" if query.strip() else _SERIES
        self.newest_ns: int | None = None
        self._from_ns: int | None = None
        self._had: dict[str, int] = {}  # records of the time that is asked for again -> when
        self._is_text = False  # the query is about text, which points do not have

    def read(self) -> list[Line]:
        """As lines, in order of time. Raises RanklogError."""
        if self._is_text:
            return []
        given = self._given
        if self._from_ns is not None:
            given = {**given, "since": render_time(self._from_ns), "last": None}
        try:
            page = self._client.search(self._query, limit=_POINTS_MAX, **given)
        except BadQuery:
            self._is_text = True
            return []
        except Unavailable:  # where lines can be read, an API has nothing to read points with
            return []
        points = page.points if isinstance(page, PointPage) else []
        lines = lines_of(point for point in points if is_watched(point["series"]))
        new = [line for line in lines if line.id not in self._had]
        if new:
            self.newest_ns = max(self.newest_ns or 0, *(line.ts_ns for line in new))
            since = self._from_ns = max(self._from_ns or 0, self.newest_ns - _LATE_NS)
            self._had |= {line.id: line.ts_ns for line in new}
            self._had = {name: ts for name, ts in self._had.items() if ts >= since}
        return new

    def go_on(self, newest_ns: int | None) -> None:
        """Read what is newer."""
        self.newest_ns = newest_ns
        self._from_ns = None if newest_ns is None else newest_ns + 1
