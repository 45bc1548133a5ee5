"""Which launches a run's name means, and which indexes a query must read. LISTs only."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeAlias

from ranklog import limits
from ranklog.client.indexes import IndexCache
from ranklog.client.waiting import held_back
from ranklog.errors import Corrupt, NotFound
from ranklog.layout import keys
from ranklog.layout.bundle import is_compacted
from ranklog.limits import DAY_NS, HOUR_NS
from ranklog.model.frame import KIND_LINE, KIND_POINT
from ranklog.model.index import StreamEntry
from ranklog.model.query import RunSelector
from ranklog.store.protocol import Store

# More hours than this of one day are listed with the day.
_HOURS_LISTED_SINGLY_MAX = 4
_NEWEST_LOADED_AT_ONCE = 8
# Kinds of indexes that a reader looks at.
Kinds: TypeAlias = "frozenset[str]"
LINES: Kinds = frozenset([KIND_LINE])
LINES_AND_POINTS: Kinds = frozenset([KIND_LINE, KIND_POINT])


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch of a run, and the hours that hold its lines."""

    run: str
    launch: str
    hours: frozenset[int]
    late_days: tuple[str, ...] = ()

    @property
    def run_id(self) -> str:
        return f"{self.run}@{self.launch}"


@dataclass(slots=True)
class Listing:
    """Index keys of all whole hours that the bounds touch, late ones among them. In order. `others`: those
    that were listed beside, of other kinds or times."""

    keys: list[str] = field(default_factory=list)
    from_ns: int | None = None
    to_ns: int | None = None
    defaulted: bool = False
    others: list[str] = field(default_factory=list)


class Catalog:
    """Names and hours of one tenant."""

    def __init__(self, store: Store, tenant: str, indexes: IndexCache) -> None:
        self._store = store
        self._tenant = tenant
        self._indexes = indexes

    # --- launches -------------------------------------------------------------------------------
    def run_names(self) -> list[str]:
        """Every run of the tenant."""
        folders = self._store.list_folders(keys.runs_prefix(self._tenant))
        return [keys.decode_name(folder.rstrip("/").rpartition("/")[2]) for folder in folders]

    def launches(self, run: str) -> list[Launch]:
        """Launches of a run, oldest first. Raises NotFound."""
        names = self.run_launches(run)
        if not names:
            raise NotFound(f"no run named {run}", hint=self._similar(run))
        return self._by_start([self.launch(*name) for name in names])

    def run_launches(self, run: str) -> list[tuple[str, str]]:
        """(run, launch) of each launch of a run, in order of names."""
        folders = self._store.list_folders(keys.run_prefix(self._tenant, run))
        return [keys.parse_launch_prefix(folder) for folder in folders]

    def launch(self, run: str, launch: str) -> Launch:
        """A launch with its hours, none where it has no marker."""
        prefix = keys.hours_prefix(self._tenant, run, launch)
        marks: list[int | str] = []
        for item in self._store.list(prefix):
            with suppress(Corrupt):  # not ours: something else lies in the folder
                marks.append(keys.parse_hour_marker(item.key))
        hours = frozenset(mark for mark in marks if isinstance(mark, int))
        days = [mark.partition("-")[2] for mark in marks if isinstance(mark, str)]
        return Launch(run, launch, hours, tuple(sorted(days)))

    def _by_start(self, launches: list[Launch]) -> list[Launch]:
        if len(launches) < 2:
            return launches
        starts = {item.launch: self._start(item) for item in launches}
        return sorted(launches, key=lambda item: (starts[item.launch], item.launch))

    def _start(self, launch: Launch) -> int:
        """Time of the launch's first line."""
        prefixes = [keys.index_late_prefix(self._tenant, day) for day in launch.late_days]
        if launch.hours:
            prefixes.append(keys.index_hour_prefix(self._tenant, min(launch.hours)))
        found = self._indexes.load(self._list(prefixes)).indexes
        times = [
            entry.min_ts
            for index in found
            for entry in index.head.streams
            if entry.min_ts is not None and entry.stream.run_id == launch.run_id
        ]
        return min(times, default=min(launch.hours, default=0) * HOUR_NS)

    def select(self, selector: RunSelector) -> list[Launch]:
        """The launches a selector means. Raises NotFound."""
        launches = self.launches(selector.name)
        if selector.launch == "*":
            return launches
        if selector.launch is not None:
            chosen = [item for item in launches if item.launch == selector.launch]
            if not chosen:
                names = ", ".join(item.launch for item in launches[-5:])
                raise NotFound(
                    f"run {selector.name} has no launch {selector.launch}",
                    hint=self._or_held_back(f"it has {names}"),
                )
            return chosen
        if selector.ok:
            chosen = [item for item in reversed(launches) if self._ended_well(item)]
            if not chosen:
                raise NotFound(f"no launch of {selector.name} ended well")
            return chosen[:1]
        if selector.back >= len(launches):
            raise NotFound(
                f"run {selector.name} has {len(launches)} launches, none is {selector.back} before"
            )
        return [launches[-1 - selector.back]]

    def ended_well_before(self, launch: Launch) -> Launch | None:
        """The last launch of the run, before this one, that ended well."""
        found = None
        for item in self.launches(launch.run):
            if item.launch == launch.launch:
                break
            found = item if self._ended_well(item) else found
        return found

    def _ended_well(self, launch: Launch) -> bool:
        codes = [
            entry.end.exit_code
            for entry in self.entries(launch)
            if entry.end is not None and entry.end.exit_code is not None
        ]
        return bool(codes) and not any(codes)

    def entries(self, launch: Launch, kinds: Kinds = LINES) -> list[StreamEntry]:
        """Every stream entry of a launch, of all its indexes of these kinds."""
        loaded = self._indexes.load(self.list_launches([launch], kinds=kinds).keys)
        return [
            entry
            for index in loaded.indexes
            for entry in index.head.streams
            if entry.stream.run_id == launch.run_id
        ]

    def _similar(self, run: str) -> str:
        names = self.run_names()
        close = difflib.get_close_matches(run, names, n=3) or names[:3]
        if not close:
            return self._or_held_back("this tenant has no runs")
        return self._or_held_back("did you mean " + " or ".join(close) + "?")

    def _or_held_back(self, hint: str) -> str:
        """The hint, behind what is said of frames that are not stored."""
        held = held_back(self._store, self._tenant)
        return f"{held}; {hint}" if held else hint

    # --- indexes --------------------------------------------------------------------------------
    def list_launches(
        self,
        launches: Sequence[Launch],
        from_ns: int | None = None,
        to_ns: int | None = None,
        kinds: Kinds = LINES,
    ) -> Listing:
        """Indexes of launches, of all their hours or of those that touch [from_ns, to_ns)."""
        hours = frozenset(
            hour for item in launches for hour in item.hours if _touches(hour, from_ns, to_ns)
        )
        days = {day for item in launches for day in item.late_days}
        late = (keys.index_late_prefix(self._tenant, day) for day in sorted(days))
        prefixes = [*self._hour_prefixes(hours), *late]
        wanted = self._list(prefixes, kinds)
        kept = [
            key
            for key in wanted
            if _in_hours(key, hours) and (_late_touches(key, from_ns, to_ns) or _is_note(key))
        ]
        return Listing(sorted(kept), from_ns, to_ns)

    def list_time(self, from_ns: int | None, to_ns: int | None, kinds: Kinds = LINES) -> Listing:
        """Indexes of all runs in the hours that touch [from_ns, to_ns)."""
        days = self._days(from_ns, to_ns)
        if from_ns is not None and to_ns is not None:
            # of the days that hold data: a range of a hundred years has a million hours
            bounds = (keys.day_ns(day) for day in days)
            whole = (keys.hours_between(first, first + DAY_NS) for first in bounds)
            touched = (hour for of_day in whole for hour in of_day)
            hours = [hour for hour in touched if _touches(hour, from_ns, to_ns)]
            prefixes = self._hour_prefixes(hours) if to_ns > from_ns else []
        else:
            prefixes = [f"{keys.index_prefix(self._tenant)}{day}/" for day in sorted(days)]
        found = self._list([*prefixes, keys.index_late_prefix(self._tenant)], None)
        kept = {
            key
            for key in found
            if keys.parse_index_key(key).kind in kinds
            and _hour_touches(key, from_ns, to_ns)
            and (_late_touches(key, from_ns, to_ns) or _note_touches(key, from_ns, to_ns))
        }
        others = [key for key in found if key not in kept]
        return Listing(sorted(kept), from_ns, to_ns, others=others)

    def list_newest(
        self, hours: int = limits.DEFAULT_WINDOW_HOURS, kinds: Kinds = LINES
    ) -> Listing:
        """Indexes of the last `hours` that end with the newest line of all runs."""
        newest = self.newest_ns(kinds)
        if newest is None:
            return Listing(defaulted=True)
        listing = self.list_time(max(0, newest + 1 - hours * HOUR_NS), newest + 1, kinds)
        listing.defaulted = True
        return listing

    def newest_ns(self, kinds: Kinds = LINES) -> int | None:
        """Time of the newest line (or point) of the tenant, None where there is none."""
        newest: int | None = None
        for day in sorted(self._days(None, None), reverse=True):
            found = self._list([f"{keys.index_prefix(self._tenant)}{day}/"], kinds)
            newest = self._newest_line(found)
            if newest is not None:
                break
        late = self._list([keys.index_late_prefix(self._tenant)], kinds)
        return self._newest_line(late, newest)

    def _newest_line(self, found: Sequence[str], newest: int | None = None) -> int | None:
        """The names only bound it: what they cover may be a fence, or a note that a stream ended."""
        ends = {key: keys.parse_index_key(key).max_ts for key in found}
        ordered = sorted(found, key=ends.__getitem__, reverse=True)
        for at in range(0, len(ordered), _NEWEST_LOADED_AT_ONCE):
            some = ordered[at : at + _NEWEST_LOADED_AT_ONCE]
            if newest is not None and ends[some[0]] <= newest:
                break
            loaded = self._indexes.load(some)
            entries = (entry for index in loaded.indexes for entry in index.head.streams)
            times = [entry.max_ts for entry in entries if entry.max_ts is not None]
            # One that can't be read counts with its name, so that an answer covers and names it.
            times += [ends[item["segment"]] for item in loaded.failed]
            newest = max([*times, *([] if newest is None else [newest])], default=None)
        return newest

    def _days(self, from_ns: int | None, to_ns: int | None) -> set[str]:
        """Days that hold data and touch the bounds."""
        folders = self._store.list_folders(keys.index_prefix(self._tenant))
        days = {folder.rstrip("/").rpartition("/")[2] for folder in folders} - {keys.LATE}
        low = keys.day_text(from_ns) if from_ns is not None and from_ns > 0 else ""
        high = keys.day_text(to_ns - 1) if to_ns is not None and to_ns > 0 else "~"
        return {day for day in days if low <= day <= high}

    def _hour_prefixes(self, hours: Iterable[int]) -> list[str]:
        """One LIST per hour, or per day where it has many."""
        by_day: dict[str, list[str]] = {}
        for hour in sorted(hours):
            prefix = keys.index_hour_prefix(self._tenant, hour)
            by_day.setdefault(prefix[:-3], []).append(prefix)
        return [
            prefix
            for day, singles in by_day.items()
            for prefix in (singles if len(singles) <= _HOURS_LISTED_SINGLY_MAX else [day])
        ]

    def list_prefixes(self, prefixes: Sequence[str]) -> list[str]:
        """Keys of indexes of every kind below any of the prefixes."""
        return self._list(prefixes, None)

    def _list(self, prefixes: Sequence[str], kinds: Kinds | None = LINES) -> list[str]:
        """Keys of indexes of these kinds (None: all) below any of the prefixes."""
        width = min(limits.INDEX_GETS_IN_FLIGHT_MAX, len(prefixes))
        if width <= 1:
            pages = [self._keys(prefix, kinds) for prefix in prefixes]
        else:
            with ThreadPoolExecutor(width, thread_name_prefix="ranklog-list") as pool:
                pages = list(pool.map(lambda prefix: self._keys(prefix, kinds), prefixes))
        return [key for page in pages for key in page]

    def _keys(self, prefix: str, kinds: Kinds | None) -> list[str]:
        found = []
        for item in self._store.list(prefix):
            try:
                name = keys.parse_index_key(item.key)
            except Corrupt:
                continue  # not ours: something else lies in the folder
            if kinds is None or name.kind in kinds:
                found.append(item.key)
        return found


def _touches(hour: int, from_ns: int | None, to_ns: int | None) -> bool:
    return (from_ns is None or (hour + 1) * HOUR_NS > from_ns) and (
        to_ns is None or hour * HOUR_NS < to_ns
    )


def _in_hours(key: str, hours: frozenset[int]) -> bool:
    hour = keys.hour_of_index_prefix(key)
    return hour is None or hour in hours


def _hour_touches(key: str, from_ns: int | None, to_ns: int | None) -> bool:
    hour = keys.hour_of_index_prefix(key)
    return hour is None or _touches(hour, from_ns, to_ns)


def _late_touches(key: str, from_ns: int | None, to_ns: int | None) -> bool:
    """Late indexes by the whole hours of the bounds, so that completeness sees whole hours."""
    if keys.hour_of_index_prefix(key) is not None:
        return True
    low = None if from_ns is None else from_ns // HOUR_NS * HOUR_NS
    high = None if to_ns is None else -(-to_ns // HOUR_NS) * HOUR_NS
    return keys.parse_index_key(key).overlaps(low, high)


def _note_touches(key: str, from_ns: int | None, to_ns: int | None) -> bool:
    """A note that arrived within a day may be of a stream of these hours."""
    later = None if to_ns is None else to_ns + DAY_NS
    return _is_note(key) and keys.parse_index_key(key).overlaps(from_ns, later)


def _is_note(key: str) -> bool:
    """Whether an index may hold no lines but that a stream ended, under the time of its arrival; what
    compaction made of some may hold such, too."""
    name = keys.parse_index_key(key)
    return name.min_ts == name.max_ts or is_compacted(name)
