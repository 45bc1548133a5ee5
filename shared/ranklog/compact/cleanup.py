"""Delete what is replaced or held twice: after a grace, the oldest ancestors first, never what is pinned.

An index object may go when a live object, older than the grace, answers for each index in it:

- it replaces the index, and its own segments are there, whole; or
- it is a bundle that holds the same index, and comes after this object in one order of all (number of
  indexes, then key), so that two that hold the same can't both go, whoever deletes what at which time.

Index before segment: what has no index does not exist, and a segment that is left is an orphan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ranklog.compact.contents import Contents, Held
from ranklog.compact.pins import Pinned
from ranklog.limits import COMPACT_GRACE_S, SECOND_NS


@dataclass(slots=True)
class Doomed:
    """Keys in the order of their deletion; `kept`: what is pinned."""

    indexes: list[str] = field(default_factory=list)
    segments: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)


def doomed(
    all_contents: Sequence[Contents],
    segments: Mapping[str, int],
    pinned: Pinned,
    now_ns: int,
) -> Doomed:
    """What of a folder may go. `segments`: key -> length of those that are there."""
    found = Doomed()
    objects: list[Held] = []
    for contents in all_contents:
        gone = _replaced(contents, segments, now_ns)
        homes = _homes(contents)
        chosen = [held for held in contents.objects if _may_go(held, gone, homes, now_ns)]
        depth = _depths(contents)
        for held in sorted(chosen, key=lambda held: (depth(held), held.key)):
            (found.kept if pinned.has_index(held) else found.indexes).append(held.key)
        objects += contents.objects
    if any(contents.failed for contents in all_contents):
        return found  # what can't be read may name any segment
    left = set(found.indexes)
    named = _named(held for held in objects if held.key not in left)
    was_named = _named(held for held in objects if held.key in left)
    for key in sorted(was_named - named):
        (found.kept if key in pinned.segments else found.segments).append(key)
    return found


def _named(objects: Iterable[Held]) -> set[str]:
    """Segments that these commit."""
    heads = (index.head for held in objects for index in held.indexes)
    return {head.segment.key for head in heads if head.segment is not None}


def _replaced(contents: Contents, segments: Mapping[str, int], now_ns: int) -> set[str]:
    """Keys that an object replaces which is older than the grace and has all its segments."""
    found: set[str] = set()
    for held in contents.objects:
        refs = [index.head.segment for index in held.indexes]
        whole = all(ref is None or segments.get(ref.key) == ref.length for ref in refs)
        if whole and held.age_ns(now_ns) > COMPACT_GRACE_S * SECOND_NS:
            found.update(key for index in held.indexes for key in index.head.replaces)
    return found


def _homes(contents: Contents) -> dict[str, list[Held]]:
    homes: dict[str, list[Held]] = {}
    for held in contents.objects:
        for index in held.indexes:
            homes.setdefault(index.key, []).append(held)
    return homes


def _may_go(held: Held, gone: set[str], homes: Mapping[str, Sequence[Held]], now_ns: int) -> bool:
    grace_ns = COMPACT_GRACE_S * SECOND_NS
    return all(
        index.key in gone
        or any(
            _rank(other) > _rank(held) and other.age_ns(now_ns) > grace_ns
            for other in homes[index.key]
        )
        for index in held.indexes
    )


def _rank(held: Held) -> tuple[int, bool, str]:
    return len(held.indexes), held.is_bundle, held.key


def _depths(contents: Contents) -> Callable[[Held], int]:
    """How many generations an object has below it: what replaces nothing that is there has none."""
    indexes = contents.indexes()
    known: dict[str, int] = {}

    def depth_of(key: str) -> int:
        if key not in known:
            known[key] = 0  # damage could name itself
            below = [depth_of(one) for one in indexes[key].head.replaces if one in indexes]
            known[key] = 1 + max(below, default=-1)
        return known[key]

    return lambda held: max(depth_of(index.key) for index in held.indexes)
