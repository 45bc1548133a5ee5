"""What is said before a query runs: patterns RE2 can't run, keys that nothing in scope has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ranklog.layout import schema
from ranklog.layout.index import SegmentIndex
from ranklog.model import query as q
from ranklog.model.answer import Report
from ranklog.plan.lexer import quote
from ranklog.plan.tables import tables_of
from ranklog.plan.tree import children
from ranklog.plan.values import Regexes


def terms(expr: q.Expr) -> Iterator[q.Expr]:
    """Every node of a tree."""
    yield expr
    for item in children(expr):
        yield from terms(item)


def check_patterns(expr: q.Expr, regexes: Regexes) -> None:
    """Raises BadQuery for a pattern that RE2 can't run, before anything is read."""
    patterns = set()
    for term in terms(expr):
        if isinstance(term, q.Matches):
            patterns.add((term.pattern, term.flags))
        elif isinstance(term, q.Field):
            values = (v for v in term.values if isinstance(v, q.RegexValue))
            patterns |= {(value.pattern, value.flags) for value in values}
    for pattern, flags in sorted(patterns):
        regexes(pattern, flags, [])


def warn_unknown_keys(expr: q.Expr, indexes: Iterable[SegmentIndex], report: Report) -> None:
    """A metadata key that no line in scope has is no error, but often a slip."""
    asked = {
        term.key: term
        for term in terms(expr)
        if isinstance(term, q.Field) and term.key not in q.BUILTIN_FIELDS
    }
    asked |= {term.series: None for term in terms(expr) if isinstance(term, q.Spike)}  # type: ignore[misc]
    if not asked:
        return
    known: dict[str, set[str]] = {}
    for index in indexes:
        for name in (*index.head.columns, *index.head.overflow):
            parsed = schema.parse_metadata_column(name)
            if parsed is not None:
                known.setdefault(parsed[1], set()).add(parsed[0])
    for key, term in asked.items():
        if key not in known:
            text = quote(f"{key}: …")
            report.warnings.append(f"no line in scope has the key {key}; for text write {text}")
        elif term is not None and known[key] == {"str"} and _only_numbers(term):
            shown = term.values[0].source if isinstance(term.values[0], q.Number) else "…"
            report.warnings.append(
                f"{key} holds strings in this scope, a bare number matches none; "
                f"write {key}{term.op}{quote(shown)}"
            )


def _only_numbers(term: q.Field) -> bool:
    return all(isinstance(value, (q.Number, q.Range)) for value in term.values)


def note_copies(expr: q.Expr, indexes: Iterable[SegmentIndex], report: Report) -> None:
    """Console copies of per-rank files are searched like everything, and say their lines twice."""
    if any(isinstance(term, q.Field) and term.key == "copy" for term in terms(expr)):
        return
    copies = frozenset().union(*(tables_of(index).copies for index in indexes))
    if copies:
        whose = "a console copy" if len(copies) == 1 else f"{len(copies)} console copies"
        report.notes.append(f"{whose} of per-rank files in scope: copy:false leaves them out")
