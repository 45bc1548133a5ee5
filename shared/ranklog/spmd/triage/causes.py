"""What can end a run by itself: faults that lines name, hosts, links, processes that died."""

from __future__ import annotations

from collections import defaultdict

from ranklog.limits import SECOND_NS
from ranklog.spmd.triage.blame import Cause, ranks_of, samples, whom
from ranklog.spmd.triage.deaths import of_codes, of_crash, of_exceptions
from ranklog.spmd.triage.facts import Facts
from ranklog.spmd.triage.hosts import before_restart, of_hardware, of_oom_killer
from ranklog.spmd.triage.kills import Kill
from ranklog.spmd.triage.links import judge_links
from ranklog.spmd.triage.progress import CLOCKS_NS, KERNEL_CLOCKS_NS
from ranklog.spmd.triage.read import Sign
from ranklog.spmd.triage.rules import FAULT_OF
from ranklog.spmd.triage.suspects import Suspect, of_host

# How surely a kind is a cause and not what follows from one.
_SCORES = {
    "xid": 0.95,
    "gpu_fault": 0.96,
    "machine": 0.94,
    "node_failure": 0.97,
    "data_loader": 0.95,
    "oom_host": 0.94,
    "oom_device": 0.93,
    "nan_check": 0.92,
    "save_failed": 0.915,
    "file_system": 0.91,
    "broken_file": 0.905,
    "pod_storage": 0.904,
    "no_module": 0.9,
    "bad_argument": 0.89,
    "bad_setup": 0.885,
    "no_file": 0.88,
    "crash": 0.86,
}
# What a program may say of an attempt that it lives without.
_REPORTED = frozenset(
    [
        *("no_file", "no_module", "file_system", "broken_file", "bad_argument"),
        "nan_check",
    ]
)
# Late iterations after a fault are its cause's, too; a kill's exceptions come within.
_KILL_NS = 2 * SECOND_NS
# A process that starts again writes so much before it can fail again.
_LAUNCH_LINES = 50
# Where no launcher and no exit code says that it failed, what is followed by more ended nothing.
_END_LINES = 500


def find_causes(facts: Facts, kill: Kill | None) -> list[Cause]:
    """The surest first. What the run survived, and what came after it was ended, is none."""
    until = None if kill is None else kill.ts_ns + _KILL_NS
    signs = [s for s in facts.signs if _counts(s, facts, until)]
    over = {(s.line.stream_id, s.line.group) for s in facts.of("teardown")}
    signs = [s for s in signs if (s.line.stream_id, s.line.group) not in over]
    signs = _of_last_launch(signs, facts)
    found: list[Cause] = []
    by_kind: dict[str, list[Sign]] = defaultdict(list)
    for sign in signs:
        by_kind[sign.kind].append(sign)
    for kind, score in _SCORES.items():
        if by_kind[kind]:
            cause = _of_kind(kind, score, by_kind[kind], facts)
            if cause is not None:
                found.append(cause)
    found += _of_links(by_kind, facts)
    if facts.failed and not any(cause.fault == "hardware" for cause in found):
        found += before_restart(facts)
    found += of_exceptions(signs, facts)
    if until is None:
        found += of_codes(facts)
    return sorted(found, key=lambda cause: (-cause.score, cause.first_ns))


def _counts(sign: Sign, facts: Facts, until: int | None) -> bool:
    if sign.kind not in FAULT_OF and sign.kind != "exception":
        return False
    if until is not None and sign.ts_ns > until:
        return False
    if facts.ended_well or not (facts.failed or facts.success_ns is None):
        return False
    if not facts.failed and not _near_end(sign, facts):
        return False
    latest = facts.timing.latest(sign.line)
    if facts.success_ns is not None and latest >= facts.success_ns - SECOND_NS:
        return False
    margin = KERNEL_CLOCKS_NS if sign.line.rank is None else CLOCKS_NS
    return not facts.progress.went_on(latest, margin)


def _near_end(sign: Sign, facts: Facts) -> bool:
    """What ends a process stands at the end of what it says, stacks and last warnings behind it."""
    lines = facts.case.stream_lines.get(sign.line.stream_id)
    return lines is None or lines - sign.line.seq <= _END_LINES


def _of_last_launch(signs: list[Sign], facts: Facts) -> list[Sign]:
    """An exception that nobody caught ends its process: lines after it in the process's own stream
    are another launch's, and its last one counts."""
    ends = {
        (s.line.stream_id, s.line.rank): s.line.seq
        for s in signs
        if s.kind == "exception" and not s.handled and s.line.stream_id in facts.case.own_streams
    }
    return [
        sign
        for sign in signs
        if sign.line.seq + _LAUNCH_LINES >= ends.get((sign.line.stream_id, sign.line.rank), 0)
    ]


def _of_kind(kind: str, score: float, signs: list[Sign], facts: Facts) -> Cause | None:
    fault = FAULT_OF[kind]
    if kind in _REPORTED:
        signs = [sign for sign in signs if not sign.handled]
    if kind == "oom_host":
        return of_oom_killer(score, signs, facts)
    if kind == "crash":
        return of_crash(score, signs, facts)
    if kind in ("xid", "machine", "node_failure", "gpu_fault"):
        return of_hardware(kind, score, signs, facts)
    if not signs:
        return None
    suspect, _ = whom(signs, facts, score)
    if kind == "no_file" and facts.progress.began:
        fault = "storage"
    if kind == "file_system" and suspect.ranks != "all" and len(ranks_of(signs)) > 1:
        host = facts.places.host_of(ranks_of(signs))
        if host is not None and facts.places.nodes > 1:
            suspect = of_host(facts.places, host, score, suspect.why, suspect.lines)
    return Cause(fault, score, suspect.why, suspect, signs[0].ts_ns)


def _of_links(by_kind: dict[str, list[Sign]], facts: Facts) -> list[Cause]:
    found = judge_links(
        by_kind["link_down"], by_kind["ib_error"] + by_kind["unreachable"], facts.places
    )
    if found is None:
        return []
    score = 0.87 if found.host else 0.81
    lines = samples(found.signs)
    if found.host is None:
        suspect = Suspect(score, found.why, lines=lines)
    else:
        suspect = of_host(facts.places, found.host, score, found.why, lines)
    return [Cause("network", score, found.why, suspect, found.signs[0].ts_ns)]
