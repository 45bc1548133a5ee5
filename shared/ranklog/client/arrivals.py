"""Which indexes were committed since the last look: the hours of now, and pointers from them.

An index lies in the hour of its lines. What is committed into another hour than the one it arrived
in has a pointer under the hour of arrival, put before it. So the current and the previous hour,
listed in both places, show every commit; older hours are looked through now and then, for what an
ingest that lags behind commits into them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field

from ranklog.errors import BadInput, Corrupt
from ranklog.layout import keys
from ranklog.limits import HOUR_NS, SECOND_NS
from ranklog.store.protocol import Store

# Hours behind the previous one that are looked through, and how often.
OLDER_HOURS = 6
SWEEP_NS = 15 * SECOND_NS
# A tail that nobody asked on for longer is over.
AWAY_HOURS_MAX = 48
# A clock ahead of ours begins an hour earlier.
_CLOCK_NS = 60 * SECOND_NS
# An index that can't be read yet is asked for again after this, doubled each time, up to the most.
_AGAIN_NS = SECOND_NS // 4
_AGAIN_NS_MAX = 5 * SECOND_NS


@dataclass(slots=True)
class Seen:
    """Hashes of index keys by the place that listed them: `index` or `arrivals`, and its hour."""

    places: dict[tuple[str, int], set[bytes]] = field(default_factory=dict)
    # index -> (times it could not be read, when to ask again)
    waiting: dict[str, tuple[int, int]] = field(default_factory=dict)
    swept_ns: int = 0
    looked_ns: int | None = None
    # new indexes of the last look, with the places that listed them
    listed: dict[str, list[tuple[str, int]]] = field(default_factory=dict)

    def has(self, key: str) -> bool:
        name = _hash(key)
        return any(name in names for names in self.places.values())

    def add(self, key: str) -> None:
        """It needs no second look."""
        self.waiting.pop(key, None)
        for place in self.listed.pop(key, ()):
            self.places[place].add(_hash(key))

    def note(self, place: tuple[str, int], key: str) -> bool:
        """A LIST of the place showed it; whether it is new there."""
        names = self.places.setdefault(place, set())
        if _hash(key) in names:
            return False
        if self.has(key):  # it was listed elsewhere
            names.add(_hash(key))
            return False
        self.listed.setdefault(key, []).append(place)
        return True

    def put_off(self, key: str, now_ns: int) -> int:
        """It can't be read yet; how often that was so."""
        times = self.waiting.get(key, (0, 0))[0] + 1
        pause = min(_AGAIN_NS * 2 ** min(times, 16), _AGAIN_NS_MAX)
        self.waiting[key] = (times, now_ns + pause)
        return times

    def is_due(self, key: str, now_ns: int) -> bool:
        return now_ns >= self.waiting.get(key, (0, 0))[1]

    def keep(self, hours: range, there: set[str] | None) -> None:
        """Forget hours that are not looked at any more, and pointers that are gone with them."""
        self.places = {place: n for place, n in self.places.items() if place[1] in hours}
        if there is not None:
            self.waiting = {key: value for key, value in self.waiting.items() if key in there}


def _hash(key: str) -> bytes:
    return hashlib.blake2b(key.encode(), digest_size=8).digest()


class Arrivals:
    """Looks for new indexes of one tenant."""

    def __init__(self, store: Store, tenant: str, seen: Seen | None = None) -> None:
        self._store = store
        self._tenant = tenant
        self.seen = seen or Seen()

    def all_hours(self, now_ns: int) -> range:
        """Every hour that is looked at, now and then."""
        hot = _hot(now_ns)
        return range(hot.start - OLDER_HOURS, hot.stop)

    def new(self, now_ns: int) -> list[str]:
        """Index keys that were not seen; each stays new until `seen.add`. Raises BadInput."""
        sweep = now_ns - self.seen.swept_ns >= SWEEP_NS
        hours = self.all_hours(now_ns) if sweep else _hot(now_ns)
        hours = range(min(hours.start, self._left_at(now_ns)), hours.stop)
        self.seen.listed.clear()
        found: dict[str, None] = {}
        everything: set[str] = set()
        for hour in hours:
            for kind, listed in (("index", self._of_hour), ("arrivals", self.pointed)):
                for key in listed(hour):
                    everything.add(key)
                    if self.seen.note((kind, hour), key):
                        found[key] = None
        self.seen.looked_ns = now_ns
        if sweep:
            self.seen.swept_ns = now_ns
        self.seen.keep(self.all_hours(now_ns), everything if sweep else None)
        return [key for key in found if self.seen.is_due(key, now_ns)]

    def _left_at(self, now_ns: int) -> int:
        """The first hour that was still looked at when the last look was taken."""
        last = self.seen.looked_ns
        first = _hot(now_ns if last is None else min(last, now_ns)).start
        away = keys.hour_of(now_ns) - first
        if away > AWAY_HOURS_MAX:
            raise BadInput(f"the tail was left for {away} hours", hint="start it anew")
        return first

    def _of_hour(self, hour: int) -> list[str]:
        prefix = keys.index_hour_prefix(self._tenant, hour)
        return [key for key in (item.key for item in self._store.list(prefix)) if _is_lines(key)]

    def pointed(self, hour: int) -> list[str]:
        """Indexes elsewhere that arrived in this hour; they may not be there yet."""
        found = []
        for item in self._store.list(keys.arrivals_prefix(self._tenant, hour)):
            try:
                key = keys.index_of_arrival(self._tenant, hour, item.key)
            except Corrupt:
                continue  # not ours: something else lies in the folder
            if _is_lines(key):
                found.append(key)
        return found

    def older_than_tail(self, indexes: Iterable[str], now_ns: int) -> list[str]:
        """Those of a launch's indexes that no look has shown or will show as new.

        The pointers are listed after `indexes` were: what was committed before it with a pointer is
        seen to have one.
        """
        hours = self.all_hours(now_ns)
        coming = {key for hour in hours for key in self.pointed(hour)}
        kept = []
        for key in indexes:
            hour = keys.hour_of_index_prefix(key)
            if self.seen.has(key) or (hour not in hours and key not in coming):
                kept.append(key)
        return kept


def _hot(now_ns: int) -> range:
    """The previous hour, the current one, and the next where a clock may be there."""
    return range(keys.hour_of(max(0, now_ns - HOUR_NS)), keys.hour_of(now_ns + _CLOCK_NS) + 1)


def _is_lines(key: str) -> bool:
    try:
        return keys.parse_index_key(key).kind == "line"
    except Corrupt:
        return False
