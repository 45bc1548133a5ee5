"""Turn a query's tree into what a scan can evaluate: terms on streams and templates become sets.

A segment knows its streams by position and its templates by id. So a term such as `host:gpu-01` is
answered here once per stream, and the scan compares small integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ranklog.errors import BadQuery
from ranklog.layout.index import SegmentIndex
from ranklog.model import query as q
from ranklog.model.index import StreamEntry
from ranklog.plan.tables import tables_of
from ranklog.plan.tasks import InStreams, InTemplates, LeafExpr, Nothing, Pairs, RankIs
from ranklog.plan.values import Regexes, numbers_hold, texts_hold

STREAM_FIELDS = frozenset(
    ["run", "run_id", "attempt", "local_rank", "host", "stream", "channel", "source", "copy"]
)
# What every line answers the same: lines are no points. Who knows the run has answered `superseded`
# before (client/lineage); a tail sees lines when nothing supersedes them yet.
_CONSTANTS = {"superseded": "false", "kind": "line"}
TEMPLATE_PLACEHOLDER = "<*>"


@dataclass(frozen=True, slots=True)
class Prepared:
    """`expr` refers to `slots[i]`, the field whose set slot i holds in each segment."""

    expr: LeafExpr
    slots: tuple[q.Field, ...]
    near: tuple[q.NearSet, ...]


def prepare(expr: q.Expr) -> Prepared:
    """Replace stream and template terms by slots. Near and Spike must be answered before."""
    slots: list[q.Field] = []
    near: list[q.NearSet] = []
    leaf = _prepare(expr, slots, near)
    return Prepared(leaf, tuple(slots), tuple(near))


def _prepare(expr: q.Expr, slots: list[q.Field], near: list[q.NearSet]) -> LeafExpr:
    if isinstance(expr, q.Not):
        return q.Not(_prepare(expr.item, slots, near))  # type: ignore[arg-type]
    if isinstance(expr, (q.And, q.Or)):
        items = tuple(_prepare(item, slots, near) for item in expr.items)
        return type(expr)(items)  # type: ignore[arg-type]
    if isinstance(expr, q.Field):
        return _prepare_field(expr, slots)
    if isinstance(expr, q.NearSet):
        near.append(expr)
    if isinstance(expr, (q.Near, q.Spike)):
        raise BadQuery("near() and spike() can't stand here")
    return expr


def _prepare_field(field: q.Field, slots: list[q.Field]) -> LeafExpr:
    if field.key in STREAM_FIELDS:
        return InStreams(_slot(field, slots))
    if field.key == "rank":
        return RankIs(_slot(field, slots), field)
    if field.key == "template":
        return InTemplates(_slot(field, slots))
    if field.key == "id":
        return _prepare_id(field, slots)
    if field.key == "series":
        absent = field.op == ":" and any(isinstance(value, q.Null) for value in field.values)
        return q.Everything() if absent else Nothing()
    if field.key in _CONSTANTS:
        held = texts_hold(_as_bool(field), [_CONSTANTS[field.key]], no_regexes)[0]
        return q.Everything() if held else Nothing()
    return field


def _slot(field: q.Field, slots: list[q.Field]) -> int:
    if field not in slots:
        slots.append(field)
    return slots.index(field)


def _prepare_id(field: q.Field, slots: list[q.Field]) -> LeafExpr:
    """`id:<stream_id>:<seq>`, one term per stream."""
    numbers: dict[str, list[q.Number]] = {}
    for value in field.values:
        text = value.text if isinstance(value, q.Exact) else ""
        stream, colon, seq = text.rpartition(":")
        if isinstance(value, (q.Null, q.Present)):
            everything = isinstance(value, q.Present) != (field.op == "!=")
            return q.Everything() if everything else Nothing()
        if not colon or not seq.isdecimal():
            raise BadQuery("an id is <stream id>:<sequence number>", hint="copy it from a line")
        numbers.setdefault(stream, []).append(q.Number(int(seq), seq))
    items: list[LeafExpr] = [
        q.And((InStreams(_slot(q.Field("stream", ":", (q.Exact(s),)), slots)), _seq_is(found)))  # type: ignore[arg-type]
        for s, found in numbers.items()
    ]
    one = q.Or(tuple(items))  # type: ignore[arg-type]
    return q.Not(one) if field.op == "!=" else one


def _seq_is(numbers: list[q.Number]) -> q.Field:
    return q.Field("seq", ":", tuple(numbers))


def no_regexes(pattern: str, flags: str, texts: Sequence[str]) -> list[bool]:
    """Where only plain values are taken."""
    raise BadQuery("this field takes plain values")


def template_text(template: str) -> str:
    """A template as people read and write it."""
    return template.replace("\x00", TEMPLATE_PLACEHOLDER)


class StreamTerms:
    """Terms on streams over segment after segment; remembers what a term said about a stream."""

    def __init__(self, regexes: Regexes) -> None:
        self._regexes = regexes
        self._known: dict[q.Field, dict[str, bool]] = {}

    def hits(self, term: q.Field, index: SegmentIndex) -> frozenset[int]:
        """Positions of the segment's streams that have it (`rank`: the stream's own)."""
        return tables_of(index).known(("streams", term), lambda: self._hits(term, index))

    def ranges(self, term: q.Field, index: SegmentIndex) -> Pairs:
        """The same as half-open ranges."""
        return tables_of(index).known(
            ("ranges", term), lambda: ranges_of(sorted(self.hits(term, index)))
        )

    def _hits(self, term: q.Field, index: SegmentIndex) -> frozenset[int]:
        known, streams = self._known.setdefault(term, {}), index.head.streams
        new = [entry for entry in streams if entry.stream_id not in known]
        if new:
            held = streams_hold(term, new, self._regexes)
            known.update(zip((entry.stream_id for entry in new), held, strict=True))
        return frozenset(i for i, entry in enumerate(streams) if known[entry.stream_id])


class Resolver:
    """Fills slots for segment after segment."""

    def __init__(self, prepared: Prepared, regexes: Regexes, streams: StreamTerms) -> None:
        self._prepared = prepared
        self._regexes = regexes
        self._streams = streams

    def fill(self, index: SegmentIndex) -> tuple[Pairs, ...]:
        """The sets of one segment, as ranges of positions."""
        return tuple(
            self._templates(field, index)
            if field.key == "template"
            else self._streams.ranges(field, index)
            for field in self._prepared.slots
        )

    def _templates(self, field: q.Field, index: SegmentIndex) -> Pairs:
        texts = [None, *(template_text(template) for template in index.templates[1:])]
        held = texts_hold(field, texts, self._regexes)
        return ranges_of([tid for tid, hit in enumerate(held) if hit])


def streams_hold(field: q.Field, entries: Sequence[StreamEntry], regexes: Regexes) -> list[bool]:
    """A term on a stream's field, `rank` being the stream's own."""
    streams = [entry.stream for entry in entries]
    if field.key in ("attempt", "local_rank", "rank"):
        return numbers_hold(field, [getattr(stream, field.key) for stream in streams])
    if field.key == "stream":
        return texts_hold(field, [entry.stream_id for entry in entries], regexes)
    if field.key == "copy":
        return texts_hold(_as_bool(field), [str(s.copy).lower() for s in streams], regexes)
    if field.key == "host":
        short = [None if s.host is None else s.host.partition(".")[0] for s in streams]
        return _either(field, [stream.host for stream in streams], short, regexes)
    if field.key == "run":
        run_ids: list[str | None] = [stream.run_id for stream in streams]
        return _either(field, [stream.run for stream in streams], run_ids, regexes)
    return texts_hold(field, [getattr(stream, field.key) for stream in streams], regexes)


def _either(
    field: q.Field,
    names: Sequence[str | None],
    others: Sequence[str | None],
    regexes: Regexes,
) -> list[bool]:
    """A host answers to its full name and the part before the first dot, a run to its run_id too."""
    pairs = zip(texts_hold(field, names, regexes), texts_hold(field, others, regexes), strict=True)
    return [a and b for a, b in pairs] if field.op == "!=" else [a or b for a, b in pairs]


def _as_bool(field: q.Field) -> q.Field:
    spelled = {"1": "true", "0": "false"}
    values = tuple(
        q.Exact(spelled.get(v.source, v.source)) if isinstance(v, q.Number) else v
        for v in field.values
    )
    return q.Field(field.key, field.op, values)


def flag_holds(field: q.Field, flag: bool) -> bool:
    """Whether a term on a flag holds where it is so."""
    return texts_hold(_as_bool(field), [str(flag).lower()], no_regexes)[0]


def ranges_of(positions: Sequence[int]) -> Pairs:
    """Ascending positions as half-open ranges."""
    ranges: list[tuple[int, int]] = []
    for position in positions:
        if ranges and ranges[-1][1] == position:
            ranges[-1] = (ranges[-1][0], position + 1)
        else:
            ranges.append((position, position + 1))
    return tuple(ranges)


def can_match(
    expr: LeafExpr, slots: Sequence[Pairs], streams: int, templates: int, overrides: bool
) -> bool | None:
    """What the sets alone say: False: no row, True: every row, None: the scan must look.

    `overrides`: whether rows of the segment have a rank of their own.
    """
    if isinstance(expr, q.Everything):
        return True
    if isinstance(expr, Nothing):
        return False
    if isinstance(expr, InStreams):
        return _of_set(slots[expr.slot], streams)
    if isinstance(expr, RankIs):
        return None if overrides else _of_set(slots[expr.slot], streams)
    if isinstance(expr, InTemplates):
        return _of_set(slots[expr.slot], templates)
    if isinstance(expr, q.Not):
        inner = can_match(expr.item, slots, streams, templates, overrides)
        return None if inner is None else not inner
    if isinstance(expr, (q.And, q.Or)):
        found = [can_match(item, slots, streams, templates, overrides) for item in expr.items]
        decisive = isinstance(expr, q.Or)
        if decisive in found:
            return decisive
        return None if None in found else not decisive
    return None


def _of_set(ranges: Pairs, size: int) -> bool | None:
    if not ranges:
        return False
    return True if ranges == ((0, size),) else None
