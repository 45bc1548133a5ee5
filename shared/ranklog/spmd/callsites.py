"""Who logs how much: the call sites and templates of a scope, summed from what indexes count.

The rows of several segments add up in any order; the result is sorted, largest first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ranklog.limits import SECOND_NS
from ranklog.model.index import SiteCount
from ranklog.model.levels import level_name
from ranklog.spmd.variables import shown_template

NO_RANK = -1
# Ranks of a live run are never exactly as far.
COMMON_SPREAD = 0.05

# A site of a scope: call site, function, logger, level, template.
SiteKey = tuple[str | None, str | None, str | None, int | None, str]


@dataclass(slots=True)
class Site:
    """One call site and template. `ranks`: rank -> lines, NO_RANK for lines without one."""

    call_site: str | None
    function: str | None
    logger: str | None
    level: int | None
    template: str | None  # None: the index does not say (template 0)
    count: int = 0
    text_bytes: int = 0
    first_ns: int | None = None
    last_ns: int | None = None
    ranks: dict[int, int] = field(default_factory=dict)

    @property
    def rate(self) -> float | None:
        """Lines per second between the first and the last; None for a single moment."""
        if self.first_ns is None or self.last_ns is None or self.last_ns <= self.first_ns:
            return None
        return self.count * SECOND_NS / (self.last_ns - self.first_ns)

    @property
    def alike(self) -> bool:
        """Whether every rank that says it says it equally often, and there is more than one."""
        return len(self.ranks) > 1 and len(set(self.ranks.values())) == 1

    def to_json(self, render_time: Callable[[int], str]) -> dict[str, Any]:
        """The object of `interfaces`, callsites; `ranks` ascending, lines without a rank left out."""
        return {
            "call_site": self.call_site,
            "function": self.function,
            "logger": self.logger,
            "level": None if self.level is None else level_name(self.level),
            "count": self.count,
            "bytes": self.text_bytes,
            "ranks": sorted(rank for rank in self.ranks if rank != NO_RANK),
            "first_ns": self.first_ns,
            "first": None if self.first_ns is None else render_time(self.first_ns),
            "last_ns": self.last_ns,
            "last": None if self.last_ns is None else render_time(self.last_ns),
            "rate": None if self.rate is None else round(self.rate, 6),
            "template": None if self.template is None else shown_template(self.template),
        }


class CallSites:
    """Adds up indexes' counts. `templates` of each segment turn its own template ids into text."""

    def __init__(self) -> None:
        self._sites: dict[SiteKey, Site] = {}

    def add(self, counts: Iterable[SiteCount], templates: Sequence[str]) -> None:
        """Add one segment; template 0 is the one that is not kept and has no text."""
        for item in counts:
            template = templates[item.tid] if item.tid else ""
            key = (item.call_site, item.function, item.logger, item.level, template)
            site = self._sites.get(key)
            if site is None:
                site = self._sites[key] = Site(*key[:4], template if item.tid else None)
            site.count += item.count
            site.text_bytes += item.text_bytes
            site.first_ns = _lowest(site.first_ns, item.min_ts)
            site.last_ns = max(item.max_ts, item.max_ts if site.last_ns is None else site.last_ns)
            for rank, lines in item.ranks:
                site.ranks[rank] = site.ranks.get(rank, 0) + lines

    def sites(self, *, hide_alike: bool = False) -> list[Site]:
        """Largest first. `hide_alike` leaves out what all ranks of the scope say equally often."""
        ranks = set[int]().union(*(site.ranks for site in self._sites.values()))
        found = [
            site
            for site in self._sites.values()
            if not (hide_alike and site.alike and set(site.ranks) == ranks)
        ]
        return sorted(found, key=_largest_first)


def common_keys(
    counts: Mapping[tuple[str | None, str], Mapping[int, int]],
) -> list[tuple[str | None, str]]:
    """What all ranks say equally often, but for 5 % or one line; the most frequent first.

    `counts`: (call site, template) -> rank -> lines. Of one rank alone nothing is common.
    """
    ranks = set[int]().union(*counts.values())
    found = [
        key
        for key, said in counts.items()
        if len(ranks) > 1
        and len(said) == len(ranks)
        and max(said.values()) - min(said.values()) <= max(1, COMMON_SPREAD * max(said.values()))
    ]
    return sorted(found, key=lambda key: (-sum(counts[key].values()), key[0] or "", key[1]))


def _largest_first(site: Site) -> tuple[int, str, str]:
    return -site.count, site.call_site or "", site.template or ""


def _lowest(known: int | None, value: int) -> int:
    return value if known is None else min(known, value)
