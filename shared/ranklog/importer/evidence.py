"""What a file's beginning proves about ranks, and the rule that follows from it.

Proof is what processes say of themselves: `[rank3]:` tags, `GLOBAL_RANK: 3`, `RANK=3 … LOCAL_RANK=1`,
NCCL's `rank 3 nranks 16`, torchelastic's `rank : 3 (local_rank: 1)`; and a stated world size that
leaves one reading only. Contradictory proof proves nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from ranklog.importer.classify import Heads
from ranklog.importer.envelopes import NONE, Peeled
from ranklog.importer.paths import PathFacts
from ranklog.importer.ranks import NCCL_HEADS, PROCESS, RankRule, own_words
from ranklog.importer.windows import extract, to_integers

_WORLD = re.compile(
    rb"(?:\b(?:WORLD_SIZE|world_size)['\"]?[=: .]+|\bworld(?: size)?[=:] ?|MEMBER: \d+/|"
    rb"\[rank-\d+/)(\d{1,7})\b"
)
# A communicator's size: the world's, or a group's.
_COMMUNICATOR = re.compile(rb"\bn[rR]anks:? (\d{1,7})\b")
_NODES = re.compile(rb"\bn[rR]anks (\d{1,7}) nNodes (\d{1,6})\b")
_PER_NODE_LAUNCH = re.compile(
    rb"torchrun\b|torch\.distributed\.(?:run|launch)\b|--nproc[-_]per[-_]node|torchelastic"
)
_ONE_PER_NODE = re.compile(rb"\bsrun\b[^\n]* (?:-l|--label)\b[^\n]*--ntasks-per-node[= ]1\b")
_SUMMARY = re.compile(rb"\brank +: (\d{1,7}) \(local_rank: (\d{1,7})\)")
_NCCL_RANK = (
    r"^(?:\[[^\]]*\] )?(?P<process>[\w.-]+:\d+):.* rank (?P<rank>\d+) n[rR]anks (?P<world>\d+) "
)
# Statements that may be wrong (joined lines, a rank that speaks of others) before a rule fails.
_AGREEMENT_MIN = 0.98


@dataclass(slots=True)
class Evidence:
    """Counts of what was said. Labels are NONE where a line has none."""

    said: Counter[tuple[int, int, int]] = field(default_factory=Counter)  # task, local label, rank
    said_local: Counter[tuple[int, int]] = field(default_factory=Counter)  # said local rank, rank
    summary: Counter[tuple[int, int]] = field(default_factory=Counter)  # local rank, rank
    tasks: set[int] = field(default_factory=set)
    locals: set[int] = field(default_factory=set)
    stated_world: int | None = None
    world: int | None = None  # the same, or at least the largest communicator
    per_node_launch: bool = False
    one_task_per_node: bool = False
    processes: dict[bytes, int] = field(default_factory=dict)

    def local_pairs(self) -> Counter[tuple[int, int]]:
        """(local rank, rank), by whatever words."""
        pairs = Counter(self.summary) + self.said_local
        for (_, local, rank), count in self.said.items():
            if local != NONE:
                pairs[local, rank] += count
        return pairs


def gather_evidence(text: bytes, bodies: Any, peeled: Peeled, heads: Heads) -> Evidence:
    """What these lines say."""
    evidence = Evidence()
    evidence.tasks = _distinct(peeled.task)
    evidence.locals = _distinct(peeled.local)
    tagged = np.flatnonzero(peeled.rank != NONE)
    headed = np.flatnonzero(heads.rank != NONE)
    rows, rank, said_local = own_words(bodies, np.arange(len(peeled.task)))
    for lines, ranks in ((tagged, peeled.rank[tagged]), (headed, heads.rank[headed]), (rows, rank)):
        keys = np.stack([peeled.task[lines], peeled.local[lines], ranks], axis=1)
        _count(evidence.said, keys)
    with_local = said_local != NONE
    _count(evidence.said_local, np.stack([said_local[with_local], rank[with_local]], axis=1))
    for rank_text, local_text in _SUMMARY.findall(text):
        evidence.summary[int(local_text), int(rank_text)] += 1
    evidence.stated_world = max(map(int, _WORLD.findall(text)), default=None)
    largest = _largest_communicator(text, evidence.stated_world)
    evidence.world = evidence.stated_world if largest is None else largest
    evidence.per_node_launch = _PER_NODE_LAUNCH.search(text) is not None
    evidence.one_task_per_node = _ONE_PER_NODE.search(text) is not None
    if largest is not None:
        evidence.processes = _nccl_processes(bodies, heads, largest)
    return evidence


def _largest_communicator(text: bytes, stated: int | None) -> int | None:
    """The size of the largest communicator, if it can be the whole job's.

    It is a group's (tensor parallel ranks of one node, say) where the job is said to be larger, or
    where it lies on fewer nodes than another one.
    """
    largest = max(map(int, _COMMUNICATOR.findall(text)), default=None)
    spans = [(int(size), int(nodes)) for size, nodes in _NODES.findall(text)]
    most = max((nodes for _, nodes in spans), default=0)
    own = max((nodes for size, nodes in spans if size == largest), default=most)
    is_group = largest is not None and (largest < (stated or 0) or own < most)
    return None if is_group else largest


def _distinct(labels: np.ndarray) -> set[int]:
    return set(np.unique(labels[labels != NONE]).tolist())


def _count(counter: Counter[Any], keys: np.ndarray) -> None:
    distinct, counts = np.unique(keys, axis=0, return_counts=True)
    for key, count in zip(distinct.tolist(), counts.tolist(), strict=True):
        counter[tuple(key)] += count


def _nccl_processes(bodies: Any, heads: Heads, size: int) -> dict[bytes, int]:
    """host:pid -> rank in the largest communicator, if that can be the whole job's.

    Communicators of tensor- and pipeline-parallel groups have ranks of their own: the largest must
    hold every process that speaks, each with one rank, each rank once.
    """
    rows = np.flatnonzero(np.isin(heads.head, NCCL_HEADS))
    if not len(rows):
        return {}
    lines = bodies.take(pa.array(rows))
    matched, groups = extract(lines, _NCCL_RANK)
    if not matched.any():
        return {}
    mask = pa.array(matched)
    world = to_integers(groups["world"].filter(mask), 0)
    if world.max() < size:
        return {}
    largest = world == world.max()
    names = groups["process"].filter(mask).filter(pa.array(largest)).to_pylist()
    ranks = to_integers(groups["rank"].filter(mask), NONE)[largest].tolist()
    processes = dict(zip(names, ranks, strict=True))
    _, speakers = extract(lines, PROCESS)
    speaking = set(speakers["process"].drop_null().unique().to_pylist())
    consistent = len(set(zip(names, ranks, strict=True))) == len(processes)
    distinct = len(set(processes.values())) == len(processes)
    whole = len(speaking) <= int(world.max())
    return processes if consistent and distinct and whole else {}


# --- the rule -----------------------------------------------------------------------------------
def decide_rule(evidence: Evidence, note: list[str]) -> RankRule:
    """How a file's labels become ranks. `note` gets a sentence for each thing taken or left."""
    rule: dict[str, Any] = {"processes": evidence.processes}
    if evidence.tasks:
        rule |= _task_rule(evidence, note)
    if evidence.locals and not rule.get("task_is_rank"):
        rule |= _local_rule(evidence, note)
    return RankRule(**rule)


def _task_rule(evidence: Evidence, note: list[str]) -> dict[str, Any]:
    # Task 0 speaking for rank 0 is so wherever there are several ranks per task, too.
    said = {key: n for key, n in evidence.said.items() if key[0] > 0 or (key[0] == 0 and key[2])}
    tasks = max(evidence.tasks) + 1
    total = sum(said.values())
    if total:
        agreeing = sum(count for (task, _, rank), count in said.items() if task == rank)
        is_rank = agreeing >= _AGREEMENT_MIN * total
        why = f"{agreeing} of {total} lines that name their rank agree"
    elif evidence.locals or evidence.per_node_launch:
        is_rank, why = False, "a launcher starts several ranks per task"
    elif evidence.world is not None:
        # Not every task of a large job speaks early; a node's id is far below the world size.
        is_rank = evidence.world // 2 < tasks <= evidence.world
        why = f"{tasks} tasks, world size {evidence.world}"
    elif evidence.one_task_per_node:
        is_rank, why = False, "one task per node"
    else:
        is_rank, why = len(evidence.tasks) > 1, "nothing says otherwise"
    note.append(f"srun task ids are {'' if is_rank else 'not '}ranks: {why}")
    if is_rank:
        return {"task_is_rank": True}
    per_task = _ranks_per_task(said, evidence)
    return {} if per_task is None else {"per_task": per_task}


def _ranks_per_task(said: dict[tuple[int, int, int], int], evidence: Evidence) -> int | None:
    """rank = task * n + local, where every statement fits it and other tasks than 0 make some."""
    if not evidence.locals:
        return None
    size = max(evidence.locals) + 1
    pairs = [(task, local, rank) for task, local, rank in said if local != NONE]
    fits = all(task * size + local == rank for task, local, rank in pairs)
    return size if fits and any(task > 0 for task, _, _ in pairs) else None


def _local_rule(evidence: Evidence, note: list[str]) -> dict[str, Any]:
    """Local ranks of one node are ranks less a constant; a console may hold many nodes."""
    if evidence.tasks:
        return {}
    size = max(evidence.locals) + 1
    pairs = evidence.local_pairs()
    offset = common_offset(pairs)
    if offset is not None and _speaks_for_others(evidence, offset, size):
        note.append("local ranks are not taken for ranks: lines of other nodes stand among these")
        return {}
    if evidence.world == size and offset in (0, None) and (offset == 0 or not pairs):
        note.append(f"rank = local rank: world size {size}, one node")
        return {"local_offset": 0}
    speaking = {local for local, _ in pairs}
    if offset is not None and len(speaking) > 1 and 2 * len(speaking) >= size:
        note.append(f"rank = local rank + {offset}: {len(speaking)} of {size} say so")
        return {"local_offset": offset}
    note.append("local ranks are not taken for ranks: not enough evidence of which is which")
    return {}


def _speaks_for_others(evidence: Evidence, offset: int, size: int) -> bool:
    """Whether a rank speaks that is none of this node's."""
    return any(not offset <= rank < offset + size for _, _, rank in evidence.said)


def common_offset(pairs: Counter[tuple[int, int]]) -> int | None:
    """What (nearly) all statements say a rank is above its local rank; None without or against."""
    offsets: Counter[int] = Counter()
    for (local, rank), count in pairs.items():
        offsets[rank - local] += count
    if not offsets:
        return None
    offset, count = offsets.most_common(1)[0]
    return offset if offset >= 0 and count >= _AGREEMENT_MIN * sum(offsets.values()) else None


def decide_stream_rank(facts: PathFacts, evidence: Evidence) -> int | None:
    """The rank of a per-rank file whose path has a local rank, by the file's own words."""
    said = {rank for (_, _, rank) in evidence.said}
    said |= {rank for (local, rank) in evidence.said_local if local == facts.local_rank}
    return said.pop() if len(said) == 1 else None


def decide_tree_offset(files: list[tuple[PathFacts, Evidence]]) -> int | None:
    """For the files of one node's launcher: rank less local rank, if they prove it."""
    offsets: set[int] = set()
    for facts, evidence in files:
        rank = decide_stream_rank(facts, evidence)
        if rank is not None and facts.local_rank is not None:
            offsets.add(rank - facts.local_rank)
    if len(offsets) == 1:
        offset = offsets.pop()
        return offset if offset >= 0 else None
    if offsets:
        return None
    worlds = {evidence.world for _, evidence in files if evidence.world is not None}
    locals_ = {facts.local_rank for facts, _ in files if facts.local_rank is not None}
    is_one_node = worlds == {len(locals_)} and locals_ == set(range(len(locals_)))
    return 0 if is_one_node else None
