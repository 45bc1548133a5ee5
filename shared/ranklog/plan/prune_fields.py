"""Field terms against an index: bounds of row groups, the stream table, call sites, string blooms.

Answers are True: every row, False: no row, None: doubt.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property

from ranklog.layout import schema
from ranklog.layout.index import SegmentIndex
from ranklog.limits import TOKEN_BYTES_MAX
from ranklog.model import query as q
from ranklog.model.index import Bounds, RowGroup, SiteCount
from ranklog.plan.prune_bounds import Answer, any_of, compare, compare_all, presence
from ranklog.plan.prune_sites import SITE_FIELDS, SiteTable, site_table
from ranklog.plan.render import render_expr
from ranklog.plan.scope import STREAM_FIELDS, StreamTerms, template_text
from ranklog.plan.tables import mask, tables_of
from ranklog.plan.values import Regexes, numbers_hold, texts_hold

_BOUNDED = {
    "level": schema.LEVEL,
    "iteration": schema.ITERATION,
    "rank": schema.RANK,
    "time": schema.TS,
    "seq": schema.SEQ,
}
# What no index answers, or what is the same for every line.
_UNANSWERED = frozenset(["group", "series", "superseded", "kind"])


class SegmentFacts:
    """What the terms of one query ask of one segment, each looked up once."""

    def __init__(self, index: SegmentIndex, regexes: Regexes | None, streams: StreamTerms) -> None:
        self.index = index
        self.regexes = regexes
        self.streams = streams

    @property
    def sites(self) -> SiteTable | None:
        """Call sites of every row, None where the index does not count them all."""
        table = site_table(self.index)
        return table if table.complete else None

    def sites_hold(self, term: q.Field) -> int | None:
        """The set of sites that have it, None where nothing here can say."""
        engine = self.engine(term)
        if engine is None:
            return None

        def work_out() -> int:
            held = _sites_hold(term, self.index.sites, engine)
            return mask(position for position, hit in enumerate(held) if hit)

        return tables_of(self.index).known(("held", term), work_out)

    def engine(self, field: q.Field) -> Regexes | None:
        """What runs the patterns of the field's values; None where nothing here can."""
        if self.regexes is None and any(isinstance(v, q.RegexValue) for v in field.values):
            return None
        return self.regexes or globs


def globs(pattern: str, flags: str, texts: Sequence[str]) -> list[bool]:
    """Patterns of globs (`typed.glob_pattern`), which RE2 and Python read alike but for the `$`."""
    program = re.compile(pattern.removesuffix("$") + r"\Z")
    return [program.match(text) is not None for text in texts]


class FieldTerm:
    """A field's term, or intervals near a match, over one segment."""

    def __init__(self, facts: SegmentFacts, term: q.Field | q.NearSet, everything: int) -> None:
        self._facts = facts
        self._term = term
        self._all = everything
        self._by_templates: tuple[int, int] | None = None
        self._answers: dict[int, Answer] = {}
        self._ids: list[tuple[int, int]] | None = None
        self._hits = self._stream_hits()

    def cells(self, group: int) -> tuple[int, int]:
        answer = self._answer(group)
        if answer is not None:
            return (self._all, self._all) if answer else (0, 0)
        if self._by_templates is None:
            self._by_templates = self._templates()
        return self._by_templates

    def reason(self, group: int, templates: int) -> tuple[str, str]:
        shown = render_expr(self._term)
        key = self._term.key if isinstance(self._term, q.Field) else "near"
        if self._answer(group) is None:
            by = "template" if key == "template" else "site"
            return by, f"no template of these lines has {shown}"
        if key in STREAM_FIELDS:
            return "stream", f"no stream of these lines has {shown}"
        return "bound", f"no line has {shown}"

    def _answer(self, group: int) -> Answer:
        if group not in self._answers:
            self._answers[group] = self._look_up(self._facts.index.head.row_groups[group], group)
        return self._answers[group]

    def _look_up(self, described: RowGroup, group: int) -> Answer:
        term = self._term
        if isinstance(term, q.NearSet):
            return _near(term, described)
        if term.key in _BOUNDED:
            bounds = described.bounds.get(_BOUNDED[term.key])
            found = None if bounds is None else any_of(compare_all(bounds, term))
            return found if found is not None else self._by_streams(described)
        if term.key in STREAM_FIELDS:
            return self._by_streams(described)
        if term.key == "id":
            return self._by_ids(described)
        if term.key in SITE_FIELDS or term.key == "template" or term.key in _UNANSWERED:
            return None
        return self._metadata(term, described, group)

    def _by_streams(self, described: RowGroup) -> Answer:
        hits = self._hits
        if hits is None or not described.streams:
            return None
        if described.streams <= hits:
            return True
        return False if described.streams.isdisjoint(hits) else None

    def _by_ids(self, described: RowGroup) -> Answer:
        """False where none of the lines can be here: the index knows each stream's seq ranges."""
        term = self._term
        assert isinstance(term, q.Field)
        if term.op != ":" or not all(isinstance(value, q.Exact) for value in term.values):
            return None
        if self._ids is None:
            texts = [value.text for value in term.values if isinstance(value, q.Exact)]
            self._ids = list(_ids_here(self._facts.index, texts))
        bounds = described.bounds.get(schema.SEQ)
        for position, seq in self._ids:
            if described.streams and position not in described.streams:
                continue
            if bounds is None or bounds.low is None or bounds.high is None:
                return None
            if bounds.low <= seq <= bounds.high:
                return None
        return False

    def _stream_hits(self) -> frozenset[int] | None:
        """Streams whose lines have it; None where the stream does not say."""
        term = self._term
        if isinstance(term, q.NearSet):
            return None
        if term.key == "rank":
            if tables_of(self._facts.index).ranked:
                return None
        elif term.key not in STREAM_FIELDS:
            return None
        if self._facts.engine(term) is None:
            return None
        return self._facts.streams.hits(term, self._facts.index)

    @cached_property
    def _columns(self) -> dict[str, str] | None:
        """Metadata columns of the term's key in the segment, by type; None: some values have none."""
        assert isinstance(self._term, q.Field)
        head, key = self._facts.index.head, self._term.key
        names = {t: schema.metadata_column(t, key) for t in schema.METADATA_TYPES}
        if any(name in head.overflow for name in names.values()):
            return None
        return {t: name for t, name in names.items() if name in head.columns}

    def _metadata(self, term: q.Field, described: RowGroup, group: int) -> Answer:
        there = self._columns
        if there is None:
            return None
        numbers = [described.bounds.get(name) for t, name in there.items() if t != "str"]
        return any_of(
            self._metadata_value(term, value, there, numbers, group) for value in term.values
        )

    def _metadata_value(
        self,
        term: q.Field,
        value: q.Value,
        there: Collection[str],
        numbers: Sequence[Bounds | None],
        group: int,
    ) -> Answer:
        if isinstance(value, (q.Null, q.Present)):
            present = presence("str" in there, numbers)
            if isinstance(value, q.Present):
                return present if term.op == ":" else False
            if term.op == "!=":
                return present
            return None if present is None else not present
        if isinstance(value, (q.Number, q.Range)):
            return any_of(None if b is None else compare(b, term.op, value) for b in numbers)
        if "str" not in there:
            return False
        exact = isinstance(value, q.Exact) and term.op == ":"
        if exact and len(value.text.encode("utf-8", "surrogatepass")) <= TOKEN_BYTES_MAX:  # type: ignore[union-attr]
            index = self._facts.index
            return None if index.bloom_may_contain_value(group, term.key, value.text) else False  # type: ignore[union-attr]
        return None

    def _templates(self) -> tuple[int, int]:
        """(might, surely) by template, where templates or their call sites say it."""
        term = self._term
        if isinstance(term, q.NearSet):
            return self._all, 0
        engine = self._facts.engine(term)
        if engine is None:
            return self._all, 0
        if term.key == "template":
            texts = [None, *map(template_text, self._facts.index.templates[1:])]
            held = sum(1 << tid for tid, hit in enumerate(texts_hold(term, texts, engine)) if hit)
            return held, held
        table = self._facts.sites if term.key in SITE_FIELDS else None
        if table is None:
            return self._all, 0

        held = self._facts.sites_hold(term) or 0
        might = table.templates(held)
        return might, might & ~table.templates(table.all & ~held)


def _ids_here(index: SegmentIndex, texts: Iterable[str]) -> Iterator[tuple[int, int]]:
    """(stream's position, seq) of those lines, by `<stream id>:<seq>`, that the segment holds."""
    positions = tables_of(index).positions
    for text in texts:
        stream, _, number = text.rpartition(":")
        position, seq = positions.get(stream), int(number) if number.isdecimal() else -1
        if position is not None:
            ranges = index.head.streams[position].ranges
            if any(low <= seq < high for low, high in ranges):
                yield position, seq


def _sites_hold(term: q.Field, sites: Sequence[SiteCount], engine: Regexes) -> list[bool]:
    if term.key == "level":
        return numbers_hold(term, [site.level for site in sites])
    if term.key != "call_site":
        names = [SITE_FIELDS[term.key](site) for site in sites]
        return texts_hold(term, [None if n is None else str(n) for n in names], engine)
    found: dict[str | None, bool] = {}
    for site in sites:
        if site.call_site not in found:
            found[site.call_site] = call_site_holds(term, site.call_site, engine)
    return [found[site.call_site] for site in sites]


def call_site_holds(term: q.Field, site: str | None, engine: Regexes) -> bool:
    """`trainer.py:88` and `trainer.py` hold for every path that ends in `/trainer.py`."""
    if site is None:
        return term.op == ":" and any(isinstance(value, q.Null) for value in term.values)
    held = any(_call_site_value_holds(value, site, engine) for value in term.values)
    return not held if term.op == "!=" else held


def _call_site_value_holds(value: q.Value, site: str, engine: Regexes) -> bool:
    if isinstance(value, q.RegexValue):
        return engine(value.pattern, value.flags, [site])[0]
    if isinstance(value, q.Exact):
        shown, body = value.text, re.escape(value.text)
    elif isinstance(value, q.Glob):
        shown, body = value.source, value.pattern.removeprefix("(?s)^").removesuffix("$")
    else:
        return isinstance(value, q.Present)
    line = "" if re.search(r":[0-9*?]+$", shown) else "(?::[0-9]+)?"
    return re.search(rf"(?s)(?:^|/){body}{line}\Z", site) is not None


def _near(term: q.NearSet, described: RowGroup) -> Answer:
    """Whether any interval meets the row group."""
    columns = {"time": schema.TS, "seq": schema.SEQ}
    bounds = described.bounds.get(columns.get(term.axis, schema.ITERATION))
    # a line without an iteration may carry one
    if bounds is None or bounds.low is None or bounds.high is None or bounds.has_null:
        return None if term.groups else False
    low, high = bounds.low, bounds.high
    near = any(start <= high and end > low for _, spans in term.groups for start, end in spans)
    return None if near else False
