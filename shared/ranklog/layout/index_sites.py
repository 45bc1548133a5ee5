"""The site section of an index: counts by call site as one msgpack map of columns.

Hundreds of sites, with lines of hundreds of ranks each, are most of an index, so each part is packed
with its like: the times of all sites once, ascending; what a line's bytes exceed its template's by;
ranks of all lists as steps, then their lines. Most sites have one line, or lines of one rank: their last
time is their first, and the lines of their only rank are all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

from ranklog.layout.packed import (
    pack_column,
    pack_integers,
    unpack_column,
    unpack_int32s,
    unpack_integers,
    unpack_pairs,
)
from ranklog.model.index import SiteCount

_NAMES = ("call_site", "function", "logger", "level", "tid", "count")
_TIMES = ("min_ts", "max_ts")
_VERSION_STEPS = 5
# Versions 1 and 2 have these as they are.
_FIELDS = tuple(name for name in SiteCount.__slots__ if name != "ranks")
_BEFORE_RANKS = -1  # no rank is less: ranks of a list are steps from here
_kept_pairs: dict[tuple[int, int], tuple[int, int]] = {}
_PAIRS_KEPT_MAX = 65_536


def sites_to_map(sites: Sequence[SiteCount], templates: Sequence[str]) -> dict[str, Any]:
    """What msgpack writes. Ranks of a site ascend."""
    columns = {name: pack_column([getattr(site, name) for site in sites]) for name in _NAMES}
    times = sorted({getattr(site, name) for site in sites for name in _TIMES})
    place = {time: at for at, time in enumerate(times)}
    columns["min_ts"] = pack_column([place[site.min_ts] for site in sites])
    columns["max_ts"] = pack_column([place[site.max_ts] - place[site.min_ts] for site in sites])
    sizes = [divmod(site.text_bytes, max(site.count, 1)) for site in sites]
    of_template = [len(template.encode()) for template in templates]
    columns["over"] = pack_column(
        [size - of_template[site.tid] for site, (size, _) in zip(sites, sizes, strict=True)]
    )
    columns["rest"] = pack_column([rest for _, rest in sizes])
    # Equal lists of ranks are stored once.
    of_sites = [_without_count(site) for site in sites]
    lists = {ranks: at for at, ranks in enumerate(dict.fromkeys(of_sites))}
    columns["ranks"] = pack_column([lists[ranks] for ranks in of_sites])
    return {
        "n": len(sites),
        "site": columns,
        "times": pack_integers(times),
        "ranks": _lists_to_columns(list(lists)),
    }


def sites_from_map(
    data: dict[str, Any], version: int, templates: Sequence[str]
) -> tuple[SiteCount, ...]:
    """Inverse of `sites_to_map`, and of what earlier versions wrote. Raises ValueError, TypeError,
    KeyError, IndexError on damage."""
    count, packed = data["n"], data["site"]
    if version < 3:
        columns = {name: unpack_column(packed[name], count) for name in _FIELDS}
        ranks = _earlier_ranks(data, version)
    else:
        columns = {name: unpack_column(packed[name], count) for name in _NAMES}
        columns |= _times(data, version)
        columns["text_bytes"] = _text_bytes(packed, columns, templates)
        lists = _lists_from_columns(data["ranks"])
        places = unpack_column(packed["ranks"], count)
        if version < _VERSION_STEPS:
            ranks = [lists[at] for at in places]
        else:
            ranks = _with_counts(lists, places, columns["count"])
    values = zip(*(columns[name] for name in _FIELDS), ranks, strict=True)
    return tuple(SiteCount(*of_site) for of_site in values)


def _times(data: dict[str, Any], version: int) -> dict[str, list[int]]:
    """First and last time of each site; from version 5 on the place of the last is a step from the first."""
    times = unpack_integers(data["times"])
    first, last = (unpack_column(data["site"][name], data["n"]) for name in _TIMES)
    if version >= _VERSION_STEPS:
        last = [at + step for at, step in zip(first, last, strict=True)]
    return {"min_ts": [times[at] for at in first], "max_ts": [times[at] for at in last]}


def _text_bytes(
    packed: dict[str, Any], columns: dict[str, Sequence[Any]], templates: Sequence[str]
) -> list[int]:
    counts = columns["count"]
    of_template = [len(templates[tid].encode()) for tid in columns["tid"]]
    over, rest = (unpack_column(packed[name], len(counts)) for name in ("over", "rest"))
    return [
        (size + more) * max(count, 1) + left
        for size, more, count, left in zip(of_template, over, counts, rest, strict=True)
    ]


# --- lists of (rank, lines) ---------------------------------------------------------------------
def _without_count(site: SiteCount) -> tuple[tuple[int, int], ...]:
    """The site's ranks; 0 for the lines of an only rank where these are all of the site's."""
    if len(site.ranks) == 1 and site.ranks[0][1] == site.count:
        return ((site.ranks[0][0], 0),)
    return site.ranks


def _with_counts(
    lists: Sequence[tuple[tuple[int, int], ...]], places: Sequence[int], counts: Sequence[int]
) -> list[tuple[tuple[int, int], ...]]:
    """Inverse of `_without_count` over all sites."""
    one = _one_of_equals()
    of_only = [ranks[0][0] if len(ranks) == 1 and not ranks[0][1] else None for ranks in lists]
    found = []
    for at, count in zip(places, counts, strict=True):
        rank = of_only[at]
        if rank is None:
            found.append(lists[at])
        else:
            pair = (rank, count)
            found.append((one(pair, pair),))
    return found


def _lists_to_columns(lists: Sequence[Sequence[tuple[int, int]]]) -> list[Any]:
    """Lengths of the lists; of all lists, ranks as steps; and lines."""
    steps = []
    for ranks in lists:
        before = _BEFORE_RANKS
        for rank, _ in ranks:
            steps.append(rank - before)
            before = rank
    lines = [lines for ranks in lists for _, lines in ranks]
    return [
        pack_integers([len(ranks) for ranks in lists]),
        pack_integers(steps),
        pack_integers(lines),
    ]


def _lists_from_columns(packed: Sequence[Any]) -> list[tuple[tuple[int, int], ...]]:
    lengths, steps, lines = map(unpack_integers, packed)
    lists, start = [], 0
    one = _one_of_equals()
    for length in lengths:
        ranks = accumulate(steps[start : start + length], initial=_BEFORE_RANKS)
        next(ranks)
        pairs = list(zip(ranks, lines[start : start + length], strict=True))
        lists.append(tuple(map(one, pairs, pairs)))
        start += length
    return lists


def _one_of_equals() -> Callable[[tuple[int, int], tuple[int, int]], tuple[int, int]]:
    """Gives the kept pair that equals one: indexes in memory have a few pairs a million times."""
    if len(_kept_pairs) > _PAIRS_KEPT_MAX:
        _kept_pairs.clear()
    return _kept_pairs.setdefault


def _earlier_ranks(data: dict[str, Any], version: int) -> list[tuple[tuple[int, int], ...]]:
    if version == 1:
        places = data["place"]
        lists = [tuple(zip(*map(unpack_int32s, pairs), strict=True)) for pairs in data["ranks"]]
    else:
        places = unpack_column(data["place"], data["n"])
        lists = [unpack_pairs(pairs) for pairs in data["ranks"]]
    return [lists[at] for at in places]
