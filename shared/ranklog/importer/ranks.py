"""The global rank of each line, from labels, heads and what lines say of themselves.

A label is not a rank: a task id may be a node's, a `[default3]:` is local. `RankRule` holds what the
evidence (ranks' own words, see `evidence`) allows; without evidence a line has no rank.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ranklog.importer.classify import Heads
from ranklog.importer.envelopes import NONE, Peeled
from ranklog.importer.lines import I64
from ranklog.importer.windows import extract, factorise, matches, to_integers
from ranklog.model.frame import STREAM_RANK
from ranklog.rules.heads import HEADS

I32 = npt.NDArray[np.int32]

_RANK = r"\b(?:RANK|rank)[=: ] ?(?P<rank>\d{1,7})\b"
_LOCAL = r"\b(?:LOCAL_RANK|local_rank)[=: ] ?(?P<local>\d{1,7})\b"
# What a process says of itself, with the global rank.
_OWN_WORDS = (
    r"GLOBAL_RANK: (?P<rank>\d{1,7}), MEMBER: \d+/\d+",
    _RANK + r".{0,400}?" + _LOCAL,
    _LOCAL + r".{0,400}?" + _RANK,
    r"^(?:\[[^\]]*\] )?\[[Rr]ank:? (?P<rank>\d{1,7})\]",
    r"\(default_pg\) Rank (?P<rank>\d{1,7})\]",
    r"\bRANK=(?P<rank>\d{1,7}) STAGE=",
    r"distributed init \(rank (?P<rank>\d{1,7})\)",
)
PROCESS = r"^(?:\[[^\]]*\] )?(?P<process>[\w.-]+:\d+):\d+ "
NCCL_HEADS = tuple(i for i, head in enumerate(HEADS) if head.name.startswith("nccl_"))


@dataclass(frozen=True, slots=True)
class RankRule:
    """How labels become ranks. `one_process`: the file is one process's, whatever its labels."""

    task_is_rank: bool = False
    per_task: int | None = None  # rank = task * per_task + local
    local_offset: int | None = None  # rank = local + offset
    processes: dict[bytes, int] = field(default_factory=dict)  # host:pid -> rank
    stream_rank: int | None = None
    one_process: bool = False


@dataclass(frozen=True, slots=True)
class LineRanks:
    """`rank` as frames hold it. Lines of one `lane` were written by one process."""

    rank: I32
    lane: I64


def line_ranks(bodies: Any, peeled: Peeled, heads: Heads, rule: RankRule) -> LineRanks:
    """Tags first, then labels as far as the rule goes, then what the line says."""
    rank = np.where(peeled.rank != NONE, peeled.rank, _from_labels(peeled, rule))
    rank = np.where(rank == NONE, heads.rank, rank)
    if not rule.one_process or rule.stream_rank is None:
        rank = _from_words(bodies, heads, rank, rule)
    known = (rank != NONE) & (rank != (NONE if rule.stream_rank is None else rule.stream_rank))
    lane = np.zeros(len(rank), np.int64) if rule.one_process else lanes(peeled)
    return LineRanks(np.where(known, rank, STREAM_RANK).astype(np.int32), lane)


def lanes(peeled: Peeled) -> I64:
    """A number per writing process, as far as labels tell: task and local rank, else the tag."""
    task, local, tag = (a.astype(np.int64) + 1 for a in (peeled.task, peeled.local, peeled.rank))
    labelled = (task << 24) + local
    lane: I64 = np.where(labelled > 0, labelled, -tag)
    return lane


def _from_labels(peeled: Peeled, rule: RankRule) -> I32:
    rank = np.full(len(peeled.task), NONE, np.int64)
    task, local = peeled.task.astype(np.int64), peeled.local.astype(np.int64)
    if rule.local_offset is not None:
        rank = np.where(local != NONE, local + rule.local_offset, rank)
    if rule.per_task is not None:
        rank = np.where((task != NONE) & (local != NONE), task * rule.per_task + local, rank)
    if rule.task_is_rank:
        rank = np.where(task != NONE, task, rank)
    return rank.astype(np.int32)


def _from_words(bodies: Any, heads: Heads, rank: I32, rule: RankRule) -> I32:
    """Lines that name their rank, or whose process is known, and have none yet."""
    rank = rank.copy()
    rows = np.flatnonzero(rank == NONE)
    if rule.processes and len(rows):
        nccl = rows[np.isin(heads.head[rows], NCCL_HEADS)]
        rank[nccl] = processes_of(bodies, nccl, rule.processes)
        rows = np.flatnonzero(rank == NONE)
    said_rows, said, _ = own_words(bodies, rows)
    rank[said_rows] = said
    return rank


def processes_of(bodies: Any, rows: I64, ranks: dict[bytes, int]) -> I32:
    """The rank of each NCCL line's process."""
    if not len(rows):
        return np.empty(0, np.int32)
    _, groups = extract(bodies.take(pa.array(rows)), PROCESS)
    codes, names = factorise(groups["process"])
    found = [NONE if name is None else ranks.get(name, NONE) for name in names]
    return np.array(found, np.int32)[codes]


def own_words(bodies: Any, rows: I64) -> tuple[I64, I32, I32]:
    """Among these lines those that say their own rank: (lines, rank, local rank or NONE)."""
    if not len(rows):
        return rows, np.empty(0, np.int32), np.empty(0, np.int32)
    rows = rows[matches(bodies.take(pa.array(rows)), "(?i)rank[=:( ]")]
    rank = np.full(len(rows), NONE, np.int32)
    local = np.full(len(rows), NONE, np.int32)
    for pattern in _OWN_WORDS:
        open_rows = np.flatnonzero(rank == NONE)
        if not len(open_rows):
            break
        matched, groups = extract(bodies.take(pa.array(rows[open_rows])), pattern)
        hit, mask = open_rows[matched], pa.array(matched)
        if not len(hit):
            continue
        rank[hit] = to_integers(groups["rank"].filter(mask), NONE)
        if "local" in groups:
            local[hit] = to_integers(groups["local"].filter(mask), NONE)
    said = rank != NONE
    return rows[said], rank[said], local[said]
