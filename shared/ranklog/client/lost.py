"""Launches whose markers are in hours of the store in which no index tells of them.

A question that names no run looks at whatever indexes there are: where all those of a launch were lost,
nothing among the others says that it was there. Segments of the same hours do: one that no index names
is either a leftover, whose lines others have, or is all that is left of a launch. Which of both it is, the
markers of launches tell. They are only listed where such a segment is found, or where there is no index at all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ranklog.client.catalog import Launch, Listing
from ranklog.client.side_by_side import side_by_side
from ranklog.layout import keys
from ranklog.layout.bundle import COMPACTED, object_key
from ranklog.layout.index import SegmentIndex
from ranklog.limits import HOUR_NS
from ranklog.model.tombstone import Tombstones

if TYPE_CHECKING:
    from ranklog.client.reader import Reader

_LATE = f"{keys.LATE}/"


def lost_launches(
    reader: Reader, listing: Listing, indexes: Iterable[SegmentIndex], tombstones: Tombstones
) -> list[dict[str, str]]:
    """{"segment", "reason"} for each launch with a marker in the hours of a listing over all runs, and
    without an index there; `indexes`: what was read of the listing. Raises what the store raises."""
    folders = _without_index(reader, listing, list(indexes))
    if not folders and (listing.keys or _has_indexes(reader)):
        return []
    found = []
    heard = {folder: _heard(reader, folder) for folder in sorted(folders)}
    for launch in list_all_launches(reader):
        missed = _marked(launch, listing, tombstones)
        if folders:
            missed = [one for one in missed if one in folders and launch.run_id not in heard[one]]
        if missed:
            found.append(_told(reader, launch, missed))
    return found


def unlisted_launches(
    reader: Reader,
    launches: Iterable[Launch],
    read: Collection[str],
    tombstones: Tombstones,
    listing: Listing,
) -> list[dict[str, str]]:
    """The same of these launches, where every index of theirs was looked at: `read` has the run_ids of
    those that were met. `listing`: the bounds of the question."""
    found = []
    for launch in launches:
        missed = [] if launch.run_id in read else _marked(launch, listing, tombstones)
        if missed:
            found.append(_told(reader, launch, missed))
    return found


def _told(reader: Reader, launch: Launch, folders: Sequence[str]) -> dict[str, str]:
    """As what could not be read."""
    prefix = keys.hours_prefix(reader.tenant, launch.run, launch.launch)
    hours = f"{len(folders)} of its hours" if len(folders) > 1 else "an hour of it"
    reason = f"no index of {launch.run_id} is there for {hours}: it is on its way, or was lost"
    return {"segment": prefix, "reason": f"{reason}; ranklog reindex writes it anew"}


def list_all_launches(reader: Reader) -> list[Launch]:
    """Every launch of the tenant, in order of names."""
    catalog = reader.catalog
    names = side_by_side(catalog.run_launches, catalog.run_names())
    return side_by_side(lambda one: catalog.launch(*one), [one for some in names for one in some])


# --- segments without an index ---------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Named:
    """Segments that indexes name, and (folder, source, first, last) of indexes known by name alone."""

    segments: set[str]
    names: set[tuple[str, ...]]

    def has(self, segment: str) -> bool:
        return segment in self.segments or _name(segment, 0) in self.names


def _without_index(reader: Reader, listing: Listing, indexes: Sequence[SegmentIndex]) -> set[str]:
    """Folders with a segment that no index names."""
    segments = _segments(reader, listing)
    named = _named(indexes, [*listing.keys, *listing.others])
    left = [key for key in segments if not named.has(key)]
    if left:  # of another kind, or of other times than the listing is
        index = keys.index_prefix(reader.tenant)
        whole = reader.catalog.list_prefixes(
            [index + one for one in sorted(set(map(_folder, left)))]
        )
        named = _named((), whole)
        left = [key for key in left if not named.has(key)]
    if left:  # in a bundle, or replaced
        named = _named(reader.indexes.load(whole).indexes, whole)
        left = [key for key in left if not named.has(key)]
    return {_folder(key) for key in left}


def _named(indexes: Iterable[SegmentIndex], names: Iterable[str]) -> _Named:
    heads = [index.head for index in indexes]
    replaced = (object_key(key) for head in heads for key in head.replaces)
    return _Named(
        {head.segment.key for head in heads if head.segment is not None},
        {_name(key, 3) for key in (*names, *replaced)},
    )


def _name(key: str, at: int) -> tuple[str, ...]:
    """Folder and source, first and last of the batch, as they are written in the key of a segment (`at` 0) or of
    an index (`at` 3); of what a merge made, whose segments are numbered, without the last."""
    source, first, last, *_ = [*key.rpartition("/")[2].split(".")[at:], "", "", ""]
    return (_folder(key), source, first, "" if source == COMPACTED else last)


def _folder(key: str) -> str:
    """What comes behind `data/` and `index/` in a key: `2026-03-01/07/`, `late/2026-03-01/`."""
    parts = key.split("/")
    return f"{parts[-3]}/{parts[-2]}/"


def _marked(launch: Launch, listing: Listing, tombstones: Tombstones) -> list[str]:
    """Folders within the bounds in which its markers say that it has lines, in order. Those that something
    was deleted in, or is past retention, may have none any more."""
    if tombstones.hides_launch(launch.run, launch.launch):
        return []
    gone = {item.hour for item in tombstones.of_runs([launch.run_id])}
    hours = [] if None in gone else sorted(launch.hours - gone)
    late = [] if gone else launch.late_days
    folders = [keys.hour_text(hour).replace("T", "/") + "/" for hour in hours]
    folders += [f"{_LATE}{day}/" for day in late]
    return [folder for folder in folders if _touches(folder, listing)]


def _touches(folder: str, listing: Listing) -> bool:
    """Whether something of a folder may lie in the bounds; of a default window's end nobody is sure."""
    if folder.startswith(_LATE):
        return True
    try:
        start_ns = keys.parse_hour(folder.rstrip("/").replace("/", "T")) * HOUR_NS
    except ValueError:
        return False  # not ours: something else lies there
    from_ns, to_ns = listing.from_ns, None if listing.defaulted else listing.to_ns
    return (from_ns is None or start_ns + HOUR_NS > from_ns) and (to_ns is None or start_ns < to_ns)


def _heard(reader: Reader, folder: str) -> set[str]:
    """run_ids of which an index in the folder tells."""
    prefix = keys.index_prefix(reader.tenant) + folder
    loaded = reader.indexes.load(reader.catalog.list_prefixes([prefix]))
    return {entry.stream.run_id for index in loaded.indexes for entry in index.head.streams}


def _has_indexes(reader: Reader) -> bool:
    prefix = keys.index_prefix(reader.tenant)
    return next(iter(reader.store.list(prefix)), None) is not None


def _segments(reader: Reader, listing: Listing) -> list[str]:
    """Segments of the hours that a listing touches, late ones among them. Of a default window those
    that come after it as well: the newest indexes may be what is missing."""
    from_ns, to_ns = listing.from_ns, None if listing.defaulted else listing.to_ns
    prefix = keys.data_prefix(reader.tenant)
    days = [one.removeprefix(prefix) for one in reader.store.list_folders(prefix)]
    low = "" if not from_ns or from_ns < 0 else keys.day_text(from_ns)
    high = "~" if to_ns is None or to_ns <= 0 else keys.day_text(to_ns - 1)
    chosen = [day for day in days if day == _LATE or low <= day.rstrip("/") <= high]
    pages = side_by_side(lambda day: [item.key for item in reader.store.list(prefix + day)], chosen)
    return [
        key
        for page in pages
        for key in page
        if key.endswith(".parquet") and _touches(_folder(key), listing)
    ]
