"""The columns of a file's lines, chunk after chunk: bodies, heads, times, groups, levels, ranks.

Shapes: n lines of a chunk, and before them w lines of the chunk before ("warm"), read once more so
that a record that straddles the cut is still one record; their columns are dropped.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import tzinfo

import numpy as np
import pyarrow as pa

from ranklog.importer.classify import NO_HEAD, Classifier, Heads, without_colours
from ranklog.importer.envelopes import Layer, Peeled, peel
from ranklog.importer.groups import find_groups
from ranklog.importer.inherit import LaneTimes, fill_levels
from ranklog.importer.lines import I64, Lines
from ranklog.importer.ranks import RankRule, line_ranks
from ranklog.importer.rows import Columns
from ranklog.importer.times import NO_TIME, Anchor
from ranklog.importer.timing import own_times
from ranklog.importer.windows import HEAD_WINDOW_BYTES, slices
from ranklog.limits import TIME_FUTURE_NS_MAX
from ranklog.model.frame import TS_ARRIVAL, TS_CLAIMED, TS_INHERITED

# Lines of the chunk before that are read again: the longest traceback of a few hundred ranks.
WARM_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class Profile:
    """What was found out about a file before its lines are read for good."""

    layers: tuple[Layer, ...]
    ranks: RankRule
    anchor: Anchor
    zone: tzinfo
    first_ns: int | None  # the file's first time: leading lines have it too
    arrival_ns: int  # where there is no time at all


@dataclass(slots=True)
class Seen:
    """What a file turned out to hold."""

    heads: dict[str, int] = field(default_factory=dict)
    envelopes: dict[str, int] = field(default_factory=dict)
    ranks: set[int] = field(default_factory=set)
    first_ns: int | None = None
    last_ns: int | None = None


class Analyst:
    """Reads the lines of one file in order."""

    def __init__(self, profile: Profile, last_ts_ns: int | None, now_ns: int) -> None:
        self._profile = profile
        self._latest_ns = now_ns + TIME_FUTURE_NS_MAX
        self._classifier = Classifier()
        self._times = LaneTimes(profile.first_ns if last_ts_ns is None else last_ts_ns)
        self._warm = b""
        self._warm_is_open = False
        self.seen = Seen()

    def warm_up(self, text: bytes, is_open: bool) -> None:
        """Lines that stand before the first chunk and are stored already."""
        self._warm, self._warm_is_open = _tail(text), is_open

    def analyse(self, lines: Lines, more: bool) -> Columns:
        """The columns of the next chunk; `more` follow."""
        text, starts, ends, warm = self._with_warm(lines)
        continues = self._warm_is_open and warm > 0
        peeled = peel(text, starts, ends, self._profile.layers)
        if continues:
            _unpeel(peeled, warm, starts)
        bodies = slices(text, peeled.body_at, np.minimum(ends, peeled.body_at + HEAD_WINDOW_BYTES))
        bodies = without_colours(bodies)
        heads = self._classifier.read(bodies)
        if continues:
            _behead(heads, warm)
        ranks = line_ranks(bodies, peeled, heads, self._profile.ranks)
        groups = find_groups(bodies, heads, ranks.lane, warm if continues else None, more)
        level, flags = fill_levels(heads.level, groups)
        ts, claimed, ts_flags = self._timed(bodies, peeled, heads, ranks.lane, warm)
        site = heads.site[groups.root]
        self._note(heads, peeled, ranks.rank, ts, warm)
        self._warm, self._warm_is_open = _tail(lines.text), not lines.last_has_lf
        return Columns(
            ts=ts[warm:],
            level=level[warm:],
            site=np.where(heads.site == 0, site, heads.site)[warm:],
            sites=tuple(heads.sites),
            body_at=(peeled.body_at - starts)[warm:].astype(np.uint32),
            flags=(flags | ts_flags)[warm:],
            group=groups.distance[warm:],
            rank=ranks.rank[warm:],
            claimed_rows=np.flatnonzero(claimed[warm:] != NO_TIME),
            claimed_ts=claimed[claimed != NO_TIME],
        )

    def _with_warm(self, lines: Lines) -> tuple[bytes, I64, I64, int]:
        """Text and offsets with the warm lines in front, and how many those are."""
        if not self._warm:
            return lines.text, lines.starts, lines.ends, 0
        shift = len(self._warm)
        feeds = np.flatnonzero(np.frombuffer(self._warm, np.uint8) == 10)
        starts = np.concatenate(([0], feeds[:-1] + 1, lines.starts + shift))
        ends = np.concatenate((feeds, lines.ends + shift))
        return self._warm + lines.text, starts, ends, len(feeds)

    def _timed(
        self, bodies: object, peeled: Peeled, heads: Heads, lane: I64, warm: int
    ) -> tuple[I64, I64, np.ndarray]:
        own = own_times(bodies, peeled, heads, self._profile.zone, self._profile.anchor)
        wild = own > self._latest_ns
        claimed = np.where(wild, own, NO_TIME)
        claimed[:warm] = NO_TIME
        own[wild] = NO_TIME
        ts = self._times.fill(own, lane, warm)
        flags = np.where(own == NO_TIME, TS_INHERITED, 0).astype(np.uint16)
        unknown = ts == NO_TIME
        flags[unknown] = TS_ARRIVAL
        flags[claimed != NO_TIME] |= TS_CLAIMED
        ts[unknown] = self._profile.arrival_ns
        return np.maximum(ts, 0), claimed, flags

    def _note(self, heads: Heads, peeled: Peeled, rank: np.ndarray, ts: I64, warm: int) -> None:
        seen = self.seen
        for name, count in heads.counts().items():
            seen.heads[name] = seen.heads.get(name, 0) + count
        for name, rows in peeled.rows.items():
            seen.envelopes[name] = seen.envelopes.get(name, 0) + int((rows >= warm).sum())
        seen.ranks.update(np.unique(rank[rank >= 0]).tolist())
        if len(ts) > warm:
            low, high = int(ts[warm:].min()), int(ts[warm:].max())
            seen.first_ns = low if seen.first_ns is None else min(seen.first_ns, low)
            seen.last_ns = high if seen.last_ns is None else max(seen.last_ns, high)


def _tail(text: bytes) -> bytes:
    """The last whole lines of a text, each with a line feed."""
    if len(text) > WARM_BYTES:
        cut = text.find(b"\n", len(text) - WARM_BYTES, len(text) - 1) + 1
        text = text[cut or len(text) - WARM_BYTES :]
    return text if not text or text.endswith(b"\n") else text + b"\n"


def _unpeel(peeled: Peeled, row: int, starts: I64) -> None:
    """The rest of a line has no envelope, whatever it looks like."""
    if row < len(starts):
        peeled.body_at[row] = starts[row]
        for labels in (peeled.task, peeled.rank, peeled.local):
            labels[row] = labels[row - 1]
        kept = peeled.time_rows != row
        peeled.times = peeled.times.filter(pa.array(kept))
        peeled.time_rows = peeled.time_rows[kept]


def _behead(heads: Heads, row: int) -> None:
    """The rest of a line has no head, whatever it looks like."""
    if row < len(heads.head):
        heads.head[row], heads.level[row], heads.site[row], heads.rank[row] = NO_HEAD, 0, 0, -1
        heads.times = [group.without(row) for group in heads.times]
