"""What one folder of indexes holds: an event hour's, or one day's of late arrivals.

Everything that compaction does stays inside a folder: what replaces an index lies beside it, so that
whoever lists the one lists the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from ranklog import limits
from ranklog.errors import Corrupt, NewerVersion, NotFound
from ranklog.ingest.commit import Place
from ranklog.layout import keys
from ranklog.layout.bundle import object_key, open_indexes
from ranklog.layout.index import SegmentIndex
from ranklog.store.protocol import ObjectInfo, Store


@dataclass(frozen=True, slots=True)
class Folder:
    """`hour` None: late arrivals of `day`."""

    tenant: str
    hour: int | None
    day: str = ""

    @property
    def index_prefix(self) -> str:
        if self.hour is None:
            return keys.index_late_prefix(self.tenant, self.day)
        return keys.index_hour_prefix(self.tenant, self.hour)

    @property
    def data_prefix(self) -> str:
        """Segments of this folder's indexes."""
        name = self.index_prefix.removeprefix(keys.index_prefix(self.tenant))
        return f"{keys.tenant_prefix(self.tenant)}data/{name}"

    def place(self, source: str, first: str, last: str) -> Place:
        """Where what compaction makes goes."""
        return Place(self.tenant, self.hour, self.day, source, first, last, self.hour or 0)


def folders(store: Store, tenant: str, *, kind: str = "index") -> Iterator[Folder]:
    """Every folder that holds an index (`kind` "data": a segment), late ones last."""
    prefix = f"{keys.tenant_prefix(tenant)}{kind}/"
    for day_folder in store.list_folders(prefix):
        day = day_folder.removeprefix(prefix).rstrip("/")
        for name in store.list_folders(day_folder):
            part = name.removeprefix(day_folder).rstrip("/")
            if day == keys.LATE:
                yield Folder(tenant, None, part)
            elif (hour := _hour(day, part)) is not None:
                yield Folder(tenant, hour)


def _hour(day: str, part: str) -> int | None:
    try:
        return keys.parse_hour(f"{day}T{part}")
    except ValueError:
        return None  # not ours: something else lies in the folder


@dataclass(frozen=True, slots=True)
class Held:
    """One object and the indexes in it. `modified_ns` None: the store can't say."""

    key: str
    name: keys.IndexName
    modified_ns: int | None
    length: int
    indexes: tuple[SegmentIndex, ...]

    @property
    def is_bundle(self) -> bool:
        return self.indexes[0].key != self.key

    def age_ns(self, now_ns: int) -> int:
        """Since it was put; 0 where nobody knows."""
        return 0 if self.modified_ns is None else now_ns - self.modified_ns


@dataclass(slots=True)
class Contents:
    """Objects of a folder and kind, in order of keys; `failed`: key -> why it can't be read."""

    folder: Folder
    kind: str
    objects: list[Held] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    damaged: dict[str, bytes] = field(
        default_factory=dict
    )  # of `failed` those that no reader can read

    def indexes(self) -> dict[str, SegmentIndex]:
        """Every index by its key, replaced ones too, in order of keys."""
        found = {index.key: index for held in self.objects for index in held.indexes}
        return dict(sorted(found.items()))

    def live(self) -> list[SegmentIndex]:
        """Those that a reader looks at, in order of keys."""
        found = self.indexes()
        replaced = {key for index in found.values() for key in index.head.replaces}
        return [index for key, index in found.items() if key not in replaced]

    def names(self, chosen: Iterable[SegmentIndex]) -> list[keys.IndexName]:
        """Names that a LIST finds these indexes by."""
        wanted = {index.key for index in chosen}
        return [
            keys.parse_index_key(name)
            for held in self.objects
            for index in held.indexes
            if index.key in wanted
            for name in {held.key, object_key(index.key)}
        ]


# Objects whose bytes are held at once, until they are opened.
_SHARE = 256

# Indexes by the key of their object, which never changes: of objects that were read already.
Known = dict[str, tuple[SegmentIndex, ...]]


def read_contents(store: Store, folder: Folder, known: Known | None = None) -> list[Contents]:
    """The folder by kind. What went meanwhile is left out: somebody else compacts. What is `known` is
    not read again, and what is read is known from then on."""
    known = {} if known is None else known
    found: dict[str, Contents] = {}
    listed = list(_listed(store, folder))
    fetched = _fetch(store, [info.key for info, _ in listed if info.key not in known])
    for info, name in listed:
        contents = found.setdefault(name.kind, Contents(folder, name.kind))
        indexes = known.get(info.key)
        if indexes is None:
            indexes = _opened(next(fetched), info.key, contents)
        if indexes:
            known[info.key] = indexes
            held = Held(info.key, name, info.modified_ns, info.length, indexes)
            contents.objects.append(held)
    return list(found.values())


def _listed(store: Store, folder: Folder) -> Iterator[tuple[ObjectInfo, keys.IndexName]]:
    for info in store.list(folder.index_prefix):
        with suppress(Corrupt):  # not ours: something else lies in the folder
            yield info, keys.parse_index_key(info.key)


def _fetch(store: Store, wanted: list[str]) -> Iterator[bytes | None]:
    """The bytes of each object, in order, many requests side by side; None where it went."""
    width = min(limits.COMPACT_GETS_IN_FLIGHT_MAX, len(wanted))
    if width <= 1:
        yield from map(partial(_get, store), wanted)
        return
    with ThreadPoolExecutor(width, thread_name_prefix="ranklog-get") as pool:
        for at in range(0, len(wanted), _SHARE):
            yield from pool.map(partial(_get, store), wanted[at : at + _SHARE])


def _get(store: Store, key: str) -> bytes | None:
    try:
        return store.get(key)
    except NotFound:
        return None


def _opened(data: bytes | None, key: str, contents: Contents) -> tuple[SegmentIndex, ...]:
    """The indexes of an object; none where it went or can't be read, which `contents` then says."""
    if data is None:
        return ()
    try:
        indexes = open_indexes(data, key)
        for index in indexes:
            index.check()
            _ = index.head
    except (Corrupt, NewerVersion) as error:
        contents.failed[key] = error.message
        if isinstance(error, Corrupt):
            contents.damaged[key] = data
        return ()
    return indexes
