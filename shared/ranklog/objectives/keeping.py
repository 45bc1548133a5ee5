"""Measures as objects of the store, so that they are there without AWS too.

    <tenant>/measures/<YYYY-MM-DDTHH>/<process>.json     what one process measured in that hour, by minute
    <tenant>/measures/<YYYY-MM-DDTHH>/rolled.json        of a closed hour: all processes together

    {"version": 1, "minutes": {"7": {"counts": {…}, "ms": {…}}}, "rolled": ["<process>", …]}

A process writes its own object again and again, and no other's. Rolling up puts `rolled.json`, once, which
names the processes that are in it, before it deletes theirs: who reads both takes each once. What a process
that slept through the end of an hour writes under a name that is rolled up already is left out.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from ranklog.errors import AlreadyExists, Corrupt, NewerVersion, NotFound
from ranklog.layout import keys
from ranklog.limits import HOUR_NS, MEASURES_KEPT_NS, MEASURES_LAG_NS
from ranklog.objectives.measures import Measures, merged
from ranklog.store.protocol import Store

VERSION = 1
MINUTE_NS = HOUR_NS // 60
ROLLED = "rolled"
_GETS_AT_ONCE = 16


@dataclass(slots=True)
class Part:
    """One object: measures by minute of its hour; `rolled`: the processes that are in it."""

    minutes: dict[int, Measures] = field(default_factory=dict)
    rolled: tuple[str, ...] = ()

    def encode(self) -> bytes:
        minutes = {str(at): self.minutes[at].to_json() for at in sorted(self.minutes)}
        said: dict[str, Any] = {"version": VERSION, "minutes": minutes}
        if self.rolled:
            said["rolled"] = list(self.rolled)
        return json.dumps(said, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, data: bytes, key: str) -> Part:
        """Raises Corrupt, NewerVersion."""
        try:
            said = json.loads(data)
            if said["version"] > VERSION:
                raise NewerVersion(f"{key} is of version {said['version']}", hint="update ranklog")
            minutes = {int(at): Measures.from_json(item) for at, item in said["minutes"].items()}
            return cls(minutes, tuple(str(name) for name in said.get("rolled", ())))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise Corrupt(f"{key} holds no measures: {error}") from error


def put_part(
    store: Store, tenant: str, hour: int, process: str, part: Part, *, if_absent: bool = False
) -> None:
    """In place of what the process wrote for that hour before. Raises AlreadyExists if `if_absent`."""
    store.put(keys.measures_key(tenant, hour, process), part.encode(), if_absent=if_absent)


def read_measures(store: Store, tenant: str, from_ns: int, to_ns: int) -> tuple[Measures, int]:
    """All that was measured in [from_ns, to_ns), and the time from which on it is: whole minutes, and
    the whole of an hour that was rolled up. Raises what the store raises, Corrupt, NewerVersion."""
    first, last = keys.hour_of(from_ns), keys.hour_of(max(from_ns, to_ns - 1))
    start_after = keys.measures_hour_prefix(tenant, first)
    found = _list_hours(store, keys.measures_prefix(tenant), start_after)
    names = [(hour, name) for hour, processes in found for name in processes if hour <= last]
    begins_ns = from_ns // MINUTE_NS * MINUTE_NS
    total = Measures()
    for hour, parts in _read_hours(store, tenant, names):
        for part in parts:
            for at, measures in part.minutes.items():
                minute_ns = hour * HOUR_NS + at * MINUTE_NS
                if part.rolled or begins_ns <= minute_ns < to_ns:
                    total.merge(measures)
            if part.rolled:
                begins_ns = min(begins_ns, hour * HOUR_NS)
    return total, begins_ns


def roll_up(store: Store, tenant: str, now_ns: int) -> int:
    """Make one object of each closed hour's, delete what is too old; returns how many were deleted.

    Two that do this at once do the same. Raises what the store raises.
    """
    closed = keys.hour_of(now_ns - MEASURES_LAG_NS) - 1
    oldest = keys.hour_of(now_ns - MEASURES_KEPT_NS)
    deleted = 0
    for hour, names in list(_list_hours(store, keys.measures_prefix(tenant), "")):
        if hour < oldest:
            deleted += _delete(store, tenant, hour, names)
        elif hour <= closed and names != [ROLLED]:
            deleted += _roll_hour(store, tenant, hour, names)
    return deleted


def _roll_hour(store: Store, tenant: str, hour: int, names: Sequence[str]) -> int:
    """Once per hour: of two that try, one puts, and what comes later stays beside it."""
    if ROLLED in names:
        key = keys.measures_key(tenant, hour, ROLLED)
        inside = Part.decode(store.get(key), key).rolled
        return _delete(store, tenant, hour, [name for name in names if name in inside])
    parts = dict(_read_hours(store, tenant, [(hour, name) for name in names])).get(hour, [])
    if len(parts) < len(names):
        return 0  # somebody else is at it
    whole = merged(item for part in parts for item in part.minutes.values())
    try:
        rolled = Part({0: whole}, tuple(names))
        put_part(store, tenant, hour, ROLLED, rolled, if_absent=True)
    except AlreadyExists:
        return 0
    return _delete(store, tenant, hour, names)


def _delete(store: Store, tenant: str, hour: int, names: Sequence[str]) -> int:
    for name in names:
        store.delete(keys.measures_key(tenant, hour, name))
    return len(names)


def _list_hours(store: Store, prefix: str, start_after: str) -> Iterator[tuple[int, list[str]]]:
    """(hour, names of its objects), the oldest hour first."""
    hours: defaultdict[int, list[str]] = defaultdict(list)
    for info in store.list(prefix, start_after=start_after):
        folder, _, name = info.key.removeprefix(prefix).partition("/")
        hours[keys.parse_hour(folder)].append(keys.decode_name(name.removesuffix(".json")))
    yield from sorted(hours.items())


def _read_hours(
    store: Store, tenant: str, names: Sequence[tuple[int, str]]
) -> Iterator[tuple[int, list[Part]]]:
    """(hour, its parts), each process once."""

    def read(place: tuple[int, str]) -> Part | None:
        key = keys.measures_key(tenant, *place)
        try:
            return Part.decode(store.get(key), key)
        except NotFound:  # rolled up since it was listed
            return None

    with ThreadPoolExecutor(_GETS_AT_ONCE, thread_name_prefix="ranklog-measures") as pool:
        parts = list(pool.map(read, names))
    hours: defaultdict[int, dict[str, Part]] = defaultdict(dict)
    for (hour, name), part in zip(names, parts, strict=True):
        if part is not None:
            hours[hour][name] = part
    for hour, by_name in hours.items():
        rolled = by_name[ROLLED].rolled if ROLLED in by_name else ()
        yield hour, [part for name, part in by_name.items() if name not in rolled]
