"""Counts of outcomes into an answer's groups: leaf keys are named, equal groups added.

A leaf groups by what a row holds (stream position, template id, rank override); here the segment's
tables turn that into the fields that were asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ranklog import limits
from ranklog.errors import BadQuery
from ranklog.layout import schema
from ranklog.layout.index import SegmentIndex
from ranklog.merge.lines import FLOATS, line_rank
from ranklog.merge.numbers import Numbers
from ranklog.model.query import BUILTIN_FIELDS
from ranklog.model.stream import Stream
from ranklog.plan.prune_sites import SITE_FIELDS, Counted, SiteLines
from ranklog.plan.scope import STREAM_FIELDS, template_text
from ranklog.plan.tasks import Groups, Outcome

_LINE_FIELDS = frozenset(["level", "iteration", "call_site", "function", "logger"])
BUCKET_TIME, BUCKET_ITERATION = "bucket_ns", "bucket_iteration"


@dataclass(slots=True)
class GroupTotals:
    """One group. `bytes`, `first_ns`, `last_ns` only where extents were asked for, `first_seq` and
    `last_seq` where these were, `numbers` by key where numbers were."""

    count: int = 0
    bytes: int = 0
    first_ns: int | None = None
    last_ns: int | None = None
    first_seq: int | None = None
    last_seq: int | None = None
    numbers: dict[str, Numbers] = field(default_factory=dict)


def leaf_keys(
    by: Sequence[str], every_ns: int | None = None, every_iterations: int | None = None
) -> tuple[str, ...]:
    """What the leaf groups by, for these fields. Raises BadQuery for a field that has no values."""
    keys: list[str] = []
    for name in by:
        if name in STREAM_FIELDS:
            keys.append(schema.STREAM)
        elif name == "rank":
            keys += [schema.STREAM, schema.RANK]
        elif name == "template":
            keys.append(schema.TID)
        elif name in _LINE_FIELDS:
            keys.append(name)
        elif name in ("time", "id", "group", "kind", "series", "superseded"):
            raise BadQuery(f"can't count by {name}", hint="for time write --every 10s")
        else:
            keys.append(f"meta:{name}")
    if every_ns is not None:
        keys.append(f"{schema.TS}/{every_ns}")
    if every_iterations is not None:
        keys.append(f"{schema.ITERATION}/{every_iterations}")
    return tuple(dict.fromkeys(keys))


def _stat_keys(names: Sequence[str]) -> tuple[str, ...]:
    """Keys whose numbers can be told. Raises BadQuery for a field that is no number to add up."""
    for name in names:
        if name in BUILTIN_FIELDS and name != "iteration":
            raise BadQuery(
                f"{name} is no number to tell min, max and quantiles of",
                hint="name metadata, such as loss, or iteration",
            )
    return tuple(dict.fromkeys(names))


class GroupMerge:
    """Adds up groups. `fields`: the answer's fields in order, buckets last."""

    def __init__(
        self,
        indexes: Mapping[int, SegmentIndex],
        by: Sequence[str],
        every_ns: int | None = None,
        every_iterations: int | None = None,
        *,
        extent: bool = False,
        stats: Sequence[str] = (),
        seqs: bool = False,
    ) -> None:
        self._indexes = indexes
        self._by = tuple(by)
        self._time = every_ns
        self._iterations = every_iterations
        keys = leaf_keys(by, every_ns, every_iterations)
        self.shape = Groups(keys, extent, _stat_keys(stats), seqs)
        self.groups: dict[tuple[Any, ...], GroupTotals] = {}

    @property
    def fields(self) -> tuple[str, ...]:
        buckets = [BUCKET_TIME] * (self._time is not None)
        return (*self._by, *buckets, *([BUCKET_ITERATION] * (self._iterations is not None)))

    def add(self, outcome: Outcome) -> None:
        """Take an outcome's groups. Raises BadQuery over GROUPS_MAX."""
        columns = outcome.columns
        if not columns:
            return
        named = [self._named(field, columns) for field in self._by]
        if self._time is not None:
            named.append(columns[f"{schema.TS}/{self._time}"])
        if self._iterations is not None:
            named.append(columns[f"{schema.ITERATION}/{self._iterations}"])
        count = columns["count"]
        keys = zip(*named, strict=True) if named else [()] * len(count)
        for i, key in enumerate(keys):
            if count[i]:
                self._add(key, columns, i)
        self._check_size()

    def _add(self, key: tuple[Any, ...], columns: dict[str, list[Any]], i: int) -> None:
        total = self.groups.get(key)
        if total is None:
            total = self.groups[key] = GroupTotals()
        total.count += columns["count"][i]
        if self.shape.extent:
            first, last = columns["first_ns"][i], columns["last_ns"][i]
            total.bytes += columns["bytes"][i]
            total.first_ns = first if total.first_ns is None else min(first, total.first_ns)
            total.last_ns = last if total.last_ns is None else max(last, total.last_ns)
        if self.shape.seqs:
            low, high = columns["first_seq"][i], columns["last_seq"][i]
            total.first_seq = low if total.first_seq is None else min(low, total.first_seq)
            total.last_seq = high if total.last_seq is None else max(high, total.last_seq)
        for stat in self.shape.stats:
            total.numbers.setdefault(stat, Numbers()).add(columns, stat, i)

    def add_sites(self, number: int, counted: Counted) -> None:
        """Take lines that the index of a segment counted. Raises BadQuery over GROUPS_MAX."""
        templates = self._indexes[number].templates
        lines = [item for item in counted.lines if item.lines]
        values = [_of_sites(field, lines, templates) for field in self._by]
        keys = zip(*values, strict=True) if values else [()] * len(lines)
        found: dict[tuple[Any, ...], int] = {}
        for key, item in zip(keys, lines, strict=True):
            if self._time is None:
                found[key] = found.get(key, 0) + item.lines
                continue
            whole = ((counted.bucket, item.lines),)
            for start, part in whole if counted.buckets is None else counted.buckets[item.position]:
                at = (*key, start)
                found[at] = found.get(at, 0) + part
        for key, total in found.items():
            self._count(key, total)
        self._check_size()

    def _count(self, key: tuple[Any, ...], lines: int) -> None:
        total = self.groups.get(key)
        if total is None:
            total = self.groups[key] = GroupTotals()
        total.count += lines

    def _check_size(self) -> None:
        if len(self.groups) > limits.GROUPS_MAX:
            raise BadQuery(
                f"more than {limits.GROUPS_MAX} groups", hint="count by fewer or coarser fields"
            )

    def add_total(self, lines: int) -> None:
        """Take lines that an index counted, where there are no fields."""
        if lines:
            self._count((), lines)

    def _named(self, field: str, columns: dict[str, list[Any]]) -> list[Any]:
        """The field's value per row of the outcome."""
        if field in _LINE_FIELDS:
            return columns[field]
        if field == "template":
            pairs = zip(columns["segment"], columns[schema.TID], strict=True)
            return [template_text(self._indexes[n].templates[t]) if t else None for n, t in pairs]
        if field == "rank" or field in STREAM_FIELDS:
            return self._of_streams(field, columns)
        typed = [columns[f"{type_}/meta:{field}"] for type_ in schema.METADATA_TYPES]
        return [_first(values) for values in zip(*typed, strict=True)]

    def _of_streams(self, field: str, columns: dict[str, list[Any]]) -> list[Any]:
        pairs = zip(columns["segment"], columns[schema.STREAM], strict=True)
        entries = [self._indexes[number].head.streams[stream] for number, stream in pairs]
        if field == "stream":
            return [entry.stream_id for entry in entries]
        if field == "rank":
            ranks = zip(entries, columns[schema.RANK], strict=True)
            return [line_rank(entry.stream.rank, override) for entry, override in ranks]
        return [stream_value(entry.stream, field) for entry in entries]

    def total(self) -> int:
        return sum(group.count for group in self.groups.values())


def _of_sites(field: str, items: Sequence[SiteLines], templates: Sequence[str]) -> list[Any]:
    """A field's values of lines that a site table counted."""
    if field == "rank":
        return [item.rank for item in items]
    if field == "template":
        tids = [item.site.tid for item in items]
        return [template_text(templates[tid]) if tid else None for tid in tids]
    value = SITE_FIELDS[field]
    return [value(item.site) for item in items]


def stream_value(stream: Stream, field: str) -> Any:
    """A stream's field as an answer names it."""
    return getattr(stream, field)


def _first(values: Sequence[Any]) -> Any:
    """A metadata key's value: whichever type the line has."""
    integer, real, text = values
    if integer is not None:
        return integer
    if real is not None:
        return FLOATS[real] if isinstance(real, str) else real
    return text


def sort_key(value: Any) -> tuple[int, Any]:
    """Orders values of mixed types: numbers, texts, absent last."""
    if value is None:
        return (2, 0)
    return (1, value) if isinstance(value, str) else (0, value)


def fill_buckets(present: Sequence[int], width: int) -> list[int]:
    """Every bucket from the first to the last, empty ones too. Raises BadQuery over BUCKETS_MAX."""
    if not present:
        return []
    low, high = min(present), max(present)
    count = (high - low) // width + 1
    if count > limits.BUCKETS_MAX:
        raise BadQuery(
            f"{count} buckets are over the limit of {limits.BUCKETS_MAX}",
            hint="write a wider --every or a shorter time",
        )
    return list(range(low, high + 1, width))
