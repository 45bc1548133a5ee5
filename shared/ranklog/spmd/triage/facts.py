"""Signs, exits, places and progress of the last attempt in one value."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ranklog.limits import SECOND_NS
from ranklog.model.answer import Line
from ranklog.spmd.triage.case import Case, RankState
from ranklog.spmd.triage.exits import Exit, read_exits
from ranklog.spmd.triage.places import Places
from ranklog.spmd.triage.progress import Progress, newest_attempt
from ranklog.spmd.triage.read import Sign, read_signs
from ranklog.spmd.triage.timing import Timing

_KERNEL = ("xid", "machine", "node_failure")
_FAILING = ("watchdog", "gloo_timeout", "agent_killed", "mismatch", "task_absent", "save_failed")


@dataclass(slots=True)
class Facts:
    """What is known of the last attempt. `failed`: it did not end as it should have."""

    signs: Sequence[Sign]
    exits: Sequence[Exit]
    places: Places
    progress: Progress
    ranks: Mapping[int, RankState]
    world: int
    success_ns: int | None
    failed: bool
    case: Case
    timing: Timing
    earlier: Sequence[Sign]  # what kernels said before the last restart

    @property
    def ended_well(self) -> bool:
        """It says that it is done, and nobody says otherwise."""
        return self.success_ns is not None and not self.bad_exits

    @property
    def bad_exits(self) -> list[Exit]:
        return [item for item in self.exits if item.code != 0]

    def of(self, *kinds: str) -> list[Sign]:
        """Signs of these kinds."""
        return [sign for sign in self.signs if sign.kind in kinds]

    def codes(self) -> dict[int, int]:
        """The last exit code of each rank: tables before streams."""
        found = {r: s.exit_code for r, s in self.ranks.items() if s.exit_code is not None}
        found |= {item.rank: item.code for item in self.exits if item.task}
        return found | {item.rank: item.code for item in self.exits if not item.task}

    def last_words(self) -> list[Line]:
        """Some of the last lines of ranks."""
        lines = [s.last_line for s in self.ranks.values() if s.last_line is not None]
        return sorted(lines, key=lambda line: line.ts_ns)[-5:]


def gather(case: Case) -> Facts:
    """Read a case; leave out what belongs to earlier attempts."""
    every_exit = read_exits(case.evidence)
    pids = _pids(every_exit)
    signs = read_signs(case.evidence, case.stream_hosts, pids)
    progress = Progress(case, signs)
    timing = Timing([*case.evidence, *case.steps])
    start = progress.cut_ns - SECOND_NS
    earlier = [s for s in signs if s.kind in _KERNEL and timing.latest(s.line) < start]
    newest = newest_attempt(case)
    signs = [
        sign
        for sign in signs
        if timing.latest(sign.line) >= start
        and (sign.line.attempt == newest or sign.line.stream_id not in case.own_streams)
    ]
    exits = [e for e in every_exit if e.line is None or timing.latest(e.line) >= start]
    exits += [
        Exit(rank, state.exit_code, state.host, None, None)
        for rank, state in case.ranks.items()
        if state.exit_code is not None
    ]
    exits = _ranks_only(exits, case)
    world = max(case.world_size or 0, len(case.ranks), 1 + max((e.rank for e in exits), default=-1))
    ranks = {rank: case.ranks.get(rank, RankState(rank)) for rank in range(world)}
    ranks |= case.ranks
    places = Places(ranks, exits, case.evidence, signs)
    signs = [_placed(sign, places) for sign in signs]
    earlier = [_placed(sign, places) for sign in earlier]
    successes = [sign.ts_ns for sign in signs if sign.kind == "success"]
    success = max(successes, default=None)
    facts = Facts(
        signs,
        exits,
        places,
        progress,
        ranks,
        world,
        success,
        False,
        case,
        timing,
        earlier,
    )
    facts.failed = _has_failed(facts)
    return facts


def _placed(sign: Sign, places: Places) -> Sign:
    """With the host that the file's path names, where it is one of the job's."""
    if sign.host is not None or sign.line.rank is not None:
        return sign
    parts = re.split(r"[/_.]", sign.line.channel)
    host = next((h for h in places.names if h.split(".", 1)[0] in parts), None)
    return sign if host is None else replace(sign, host=host)


def _pids(exits: Sequence[Exit]) -> dict[tuple[str | None, int], int]:
    """Ranks by (host, pid), and by pid alone where it is one rank's."""
    found: dict[tuple[str | None, int], int] = {}
    seen = Counter(item.pid for item in exits if item.pid is not None)
    for item in exits:
        if item.pid is not None:
            found[(item.host, item.pid)] = item.rank
            if seen[item.pid] == 1:
                found[(None, item.pid)] = item.rank
    return found


def _ranks_only(exits: Sequence[Exit], case: Case) -> list[Exit]:
    """Without tasks that are nodes: those of launchers that start several ranks."""
    tasks = {item.rank for item in exits if item.task}
    if not tasks or any(not item.task for item in exits if item.line is not None):
        return [item for item in exits if not item.task]
    hosts = {item.host for item in exits if item.task}
    known = max(case.world_size or 0, len(case.ranks))
    per_node = len(tasks) > len(hosts) or known <= 1 + max(tasks) or _labels_are_tasks(case)
    return list(exits) if per_node else [item for item in exits if not item.task]


def _labels_are_tasks(case: Case) -> bool:
    """Whether ranks are known by the labels of `srun -l`, which are its tasks."""
    ranked = [line for line in (*case.steps, *case.evidence) if line.rank is not None]
    labelled = [line for line in ranked if line.text.lstrip().startswith(f"{line.rank}: ")]
    return len(labelled) * 2 > len(ranked)


def _has_failed(facts: Facts) -> bool:
    if facts.bad_exits:
        return True
    done = facts.success_ns
    bad = [s for s in facts.signs if s.kind in _FAILING or _is_cancelled(s)]
    return any(done is None or sign.ts_ns < done for sign in bad)


def _is_cancelled(sign: Sign) -> bool:
    """Not a job that is put back into the queue to go on."""
    return sign.kind == "cancelled" and "REQUEUE" not in sign.data.get("why", "")
