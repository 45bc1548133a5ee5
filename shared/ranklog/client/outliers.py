"""All ranks of an attempt against their peers: fetch columns and few texts, let spmd judge them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ranklog.answer.render import line_json
from ranklog.answer.runs import StreamSum, sum_streams
from ranklog.client.line_table import fetch_table, fetch_texts
from ranklog.client.lineage import asks_for_superseded, surviving
from ranklog.client.neighbours import fetch
from ranklog.client.outliers_answer import OutliersAnswer
from ranklog.client.reader import Reader
from ranklog.client.search import Search, begin, timed
from ranklog.client.topology import topology_of
from ranklog.client.words import Restrictions, read_query
from ranklog.errors import BadInput, NotFound
from ranklog.model import query as q
from ranklog.model.answer import Line
from ranklog.plan.tree import all_of
from ranklog.spmd.outliers.evidence import Attempt, Evidence
from ranklog.spmd.outliers.heat import Heat, heat_of
from ranklog.spmd.outliers.values import Sample, wanted_rows
from ranklog.spmd.outliers.verdict import Outlier, Outliers, find_outliers
from ranklog.spmd.table import ABSENT, I64
from ranklog.spmd.variables import shown_template

# Ranks that the answer has evidence lines of, and lines per evidence.
_SHOWN_RANKS_MAX = 64
_LINES_PER_EVIDENCE = 3


def outliers_of(reader: Reader, query: str, given: Restrictions) -> OutliersAnswer:
    """One launch's last attempt, or the one that is named. Raises BadInput without a run."""
    if not given.get("run"):
        raise BadInput("outliers of which run?", hint="name it: run=… or --run NAME")
    words: Restrictions = {**given, "attempt": None}
    asked = read_query(query, words, now_ns=reader.now_ns())
    if given.get("attempt") in (None, "") and not asks_for_superseded(asked.expr):
        asked = replace(asked, expr=all_of([asked.expr, surviving()]))
    run = begin(reader, asked)
    if len(run.scope.run_ids) != 1:  # none: a term on runs, and no run
        raise BadInput(
            f"{len(run.scope.run_ids) or 'all'} launches",
            hint="outliers takes one: NAME, NAME@LAUNCH, NAME~1",
        )
    sums = [
        item
        for item in sum_streams(run.scope.entries(), gone=run.scope.gone())
        if not item.stream.copy
    ]
    number = _chosen(given.get("attempt"), [item.stream.attempt for item in sums])
    own = [item for item in sums if item.stream.attempt == number]
    table = fetch_table(run, _ranked(run, number))
    if not len(table):
        run.report.notes.append("no line says which rank it is of")
    ranks = set(np.unique(table.rank).tolist()) - {ABSENT}
    topology = topology_of(run, own, ranks, whole=not _is_restricted(given))
    attempt = Attempt(table, topology, _ended_well(own))
    with timed(run.report, "merge"):
        found = find_outliers(attempt, _samples(run, attempt, number))
        heat = heat_of(attempt, found)
        result = _answer(run, attempt, found, heat, number)
    return OutliersAnswer(*result, run.completeness(), run.report)


def _chosen(wanted: str | int | None, attempts: Sequence[int]) -> int:
    known = sorted(set(attempts)) or [0]
    if wanted is None or wanted == "":
        return known[-1]
    if not str(wanted).isdecimal() or int(wanted) not in known:
        has = ", ".join(map(str, known))
        raise NotFound(f"no attempt {wanted}", hint=f"one of {has}")
    return int(wanted)


def _is_restricted(given: Restrictions) -> bool:
    """Whether ranks are left out on purpose: then none is missing."""
    return any(given.get(name) not in (None, "") for name in ("rank", "host", "level"))


def _ranked(run: Search, attempt: int) -> q.Expr:
    copies = q.Field("copy", ":", (q.Exact("true"),))
    number = q.Field("attempt", ":", (q.Number(attempt, str(attempt)),))
    return all_of([run.expr(), number, q.Field("rank", ":", (q.Present(),)), q.Not(copies)])


def _ended_well(sums: Iterable[StreamSum]) -> frozenset[int]:
    ends = [(item.stream.rank, item.end.exit_code) for item in sums if item.end is not None]
    bad = {rank for rank, code in ends if code}
    return frozenset(rank for rank, code in ends if code == 0 and rank is not None) - bad


def _samples(run: Search, attempt: Attempt, number: int) -> list[Sample]:
    """Texts of few keys. A search names the keys' templates, iterations the rest."""
    rows = wanted_rows(attempt)
    if not len(rows):
        return []
    table = attempt.table
    ids = {table.id_of(row): row for row in rows.tolist()}
    keys = [table.keys[key] for key in np.unique(table.key[rows]).tolist()]
    templates = q.Field(
        "template", ":", tuple(q.Exact(shown_template(key.template)) for key in keys)
    )
    terms: list[q.Expr] = [_ranked(run, number), templates]
    iterations = np.unique(table.iteration[rows])
    if iterations[0] >= 0 and len(iterations) < 2_000:
        wanted = tuple(q.Number(i, str(i)) for i in iterations.tolist())
        terms.append(q.Field("iteration", ":", wanted))
    found = []
    for stream_id, seq, text, body_at in fetch_texts(run, all_of(terms)):
        row = ids.get((stream_id, seq))
        if row is not None:
            body = text.encode("utf-8", "surrogatepass")[body_at:].decode("utf-8", "replace")
            found.append(Sample(row, body))
    return found


# --- the answer -----------------------------------------------------------------------------------
def _answer(
    run: Search, attempt: Attempt, found: Outliers, heat: Heat, number: int
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    shown = found.ranks[:_SHOWN_RANKS_MAX]
    witnesses = _Witnesses(attempt)
    ids = {id(item): witnesses.ids(item) for outlier in shown for item in outlier.evidence}
    lines = _lines(run, {line for found_ids in ids.values() for line in found_ids})
    rows = []
    for outlier in shown:
        evidence = [
            _evidence(attempt, item, [lines[i] for i in ids[id(item)] if i in lines])
            for item in outlier.evidence
        ]
        rows.append(
            {
                "rank": outlier.rank,
                "score": outlier.score,
                "odd": outlier.odd,
                "group": _group_of(outlier, found),
                "evidence": evidence,
            }
        )
    return rows, _summary(run, attempt, found, heat, number)


def _group_of(outlier: Outlier, found: Outliers) -> str | None:
    group = found.group
    return group.name if group and outlier.odd and outlier.rank in group.ranks else None


def _summary(
    run: Search, attempt: Attempt, found: Outliers, heat: Heat, number: int
) -> dict[str, Any]:
    group = found.group
    return {
        "run": run.scope.run_ids[0],
        "attempt": number,
        "ranks": attempt.count,
        "lines": len(attempt.table),
        "dimensions": list(attempt.topology.places),
        "odd": [outlier.rank for outlier in found.odd],
        "group": None
        if group is None
        else {
            "name": group.name,
            "ranks": list(group.ranks),
            "exceptions": list(group.exceptions),
            "others": list(group.others),
        },
        "heat": {
            "axis": heat.axis,
            "rows": [list(pair) for pair in heat.ranks],
            "edges": list(heat.edges),
            "cells": [[round(value, 3) for value in row] for row in heat.cells.tolist()],
        },
    }


class _Witnesses:
    """Finds lines that show evidence; rows of a key are looked for once."""

    def __init__(self, attempt: Attempt) -> None:
        self._table = attempt.table
        self._rows: dict[int, I64] = {}

    def ids(self, item: Evidence) -> tuple[tuple[str, int], ...]:
        """Its own, else the rank's lines of the key, or of what it lacks its peers'."""
        if item.ids or item.key == ABSENT:
            return item.ids
        table = self._table
        rows = self._rows.get(item.key)
        if rows is None:
            rows = self._rows[item.key] = np.flatnonzero(table.key == item.key)
        if item.iteration is not None:
            rows = rows[table.iteration[rows] == item.iteration]
        own = rows[table.rank[rows] == item.rank]
        rows = (own if len(own) else rows)[:_LINES_PER_EVIDENCE]
        return tuple(table.id_of(row) for row in rows.tolist())


def _lines(run: Search, ids: Iterable[tuple[str, int]]) -> dict[tuple[str, int], Line]:
    wanted: dict[str, list[tuple[int, int, int]]] = {}
    for stream_id, seq in ids:
        wanted.setdefault(stream_id, []).append((seq, seq + 1, -1))
    return {(x.stream_id, x.seq): replace(x, match=True) for x in fetch(run, wanted)}


def _evidence(attempt: Attempt, item: Evidence, lines: Sequence[Line]) -> dict[str, Any]:
    key = None if item.key == ABSENT else attempt.table.keys[item.key]
    return {
        "kind": item.kind,
        "weight": round(item.weight, 3),
        "iteration": item.iteration,
        "call_site": None if key is None else key.call_site,
        "template": None if key is None or not key.template else shown_template(key.template),
        "name": item.name,
        "expected": item.expected,
        "got": item.got,
        "lines": [line_json(line) for line in lines],
    }
