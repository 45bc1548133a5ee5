"""What can end a run by itself: faults that lines name, crashes, exceptions, exit codes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from ranklog.limits import SECOND_NS
from ranklog.model.answer import Line
from ranklog.spmd.triage.facts import Facts
from ranklog.spmd.triage.kills import Kill
from ranklog.spmd.triage.links import judge_links
from ranklog.spmd.triage.progress import CLOCKS_NS, KERNEL_CLOCKS_NS
from ranklog.spmd.triage.read import Sign
from ranklog.spmd.triage.rules import FAULT_OF, TELEMETRY_MODULES, VICTIM_EXCEPTIONS
from ranklog.spmd.triage.suspects import Suspect, everybody, of_host, of_ranks

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
    "file_system": 0.91,
    "no_module": 0.9,
    "bad_argument": 0.89,
    "no_file": 0.88,
    "crash": 0.86,
}
_EXCEPTION, _EXIT = 0.75, 0.7
_CRASHES = frozenset([-11, -7, -8, -4])
_SYMPTOMS = ("peer_gone", "gloo_timeout", "watchdog", "barrier")
# The same fault on so many ranks is on all: those that are missing were ended before they met it.
_ALL_SHARE, _ALL_SHARE_AT_START = 0.5, 0.3
# Late iterations after a fault are its cause's, too; a kill's exceptions come within.
_KILL_NS = 2 * SECOND_NS
_LINES_MAX = 6
# A process that starts again writes so much before it can fail again.
_LAUNCH_LINES = 50


@dataclass(slots=True)
class Cause:
    """One explanation: a class and whom it blames."""

    fault: str
    score: float
    why: str
    suspect: Suspect
    first_ns: int


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
        found += _before_restart(facts)
    found += _of_exceptions(signs, facts)
    if until is None:
        found += _of_codes(facts)
    return sorted(found, key=lambda cause: (-cause.score, cause.first_ns))


def _counts(sign: Sign, facts: Facts, until: int | None) -> bool:
    if sign.kind not in FAULT_OF and sign.kind != "exception":
        return False
    if until is not None and sign.ts_ns > until:
        return False
    if facts.ended_well or not (facts.failed or facts.success_ns is None):
        return False
    latest = facts.timing.latest(sign.line)
    if facts.success_ns is not None and latest >= facts.success_ns - SECOND_NS:
        return False
    margin = KERNEL_CLOCKS_NS if sign.line.rank is None else CLOCKS_NS
    return not facts.progress.went_on(latest, margin)


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
    if kind in ("no_file", "no_module", "file_system", "bad_argument", "nan_check"):
        signs = [sign for sign in signs if not sign.handled]
    if kind == "oom_host":
        return _oom_host(score, signs, facts)
    if kind == "crash":
        return _crash(score, signs, facts)
    if kind in ("xid", "machine", "node_failure", "gpu_fault"):
        return _hardware(kind, score, signs, facts)
    if not signs:
        return None
    suspect, all_of_them = _whom(signs, facts, score)
    if kind == "no_file" and facts.progress.began and not all_of_them:
        fault = "storage"
    if kind == "file_system" and suspect.ranks != "all" and len(_ranks(signs)) > 1:
        host = facts.places.host_of(_ranks(signs))
        if host is not None and facts.places.nodes > 1:
            suspect = of_host(facts.places, host, score, suspect.why, suspect.lines)
    return Cause(fault, score, suspect.why, suspect, signs[0].ts_ns)


def _ranks(signs: Sequence[Sign]) -> frozenset[int]:
    return frozenset(rank for sign in signs for rank in sign.ranks)


def _whom(signs: Sequence[Sign], facts: Facts, score: float) -> tuple[Suspect, bool]:
    """All alike, or the ranks that say it."""
    ranks = _ranks(signs)
    nobody = [sign for sign in signs if not sign.ranks]
    lines = _samples(signs)
    words = signs[0].line.text[signs[0].line.body_at :].strip()[:160]
    share = _ALL_SHARE if facts.progress.began else _ALL_SHARE_AT_START
    alike = len(ranks) > 1 and len(ranks) >= share * facts.world
    alike = alike and facts.places.whole_host(ranks) is None
    if alike or (not ranks and _repeated(nobody)):
        return everybody(score, words, lines), True
    if ranks:
        return of_ranks(facts.places, ranks, score, words, lines), False
    hosts = {sign.host for sign in signs if sign.host is not None}
    left = _by_codes(facts)
    if left is not None:
        return of_ranks(facts.places, left, score * 0.9, words, lines), False
    if len(hosts) == 1:
        return of_host(facts.places, hosts.pop(), score * 0.9, words, lines), False
    return everybody(score * 0.8, words, lines), True


def _repeated(signs: Sequence[Sign]) -> bool:
    """Whether several processes said it in a console without labels."""
    texts = sum(sign.line.text.count(sign.key[:24]) or 1 for sign in signs)
    return max(texts, len(signs)) > 2


def _by_codes(facts: Facts) -> frozenset[int] | None:
    """The ranks that ended by themselves, where the launcher ended the others."""
    codes = facts.codes()
    own = frozenset(rank for rank, code in codes.items() if code not in (0, -15))
    return own if own and len(own) * 4 <= max(4, len(codes)) else None


def _samples(signs: Sequence[Sign]) -> list[Line]:
    seen: dict[frozenset[int], Line] = {}
    for sign in signs:
        seen.setdefault(sign.ranks, sign.line)
    return list(seen.values())[:_LINES_MAX]


def _oom_host(score: float, signs: list[Sign], facts: Facts) -> Cause | None:
    """The kernel names a process or a host; exit codes tell which ranks it took."""
    words = "the host's memory was full: " + signs[0].line.text.strip()[:140]
    lines = _samples(signs)
    codes = facts.codes()
    forced = frozenset(r for s in facts.of("forced") for r in s.ranks)
    killed = frozenset(rank for rank, code in codes.items() if code == -9) - forced
    ranks = _ranks(signs)
    hosts = {sign.host for sign in signs if sign.host and sign.kind == "oom_host"}
    kernel = {s.host for s in signs if s.host and "Killed process" in s.line.text}
    if not ranks and killed:
        local = frozenset(r for host in kernel for r in facts.places.ranks_of(host)) & killed
        ranks = local or killed
    elif ranks and killed and ranks < killed and len(killed) <= 4:
        ranks = killed
    if ranks:
        suspect = of_ranks(facts.places, ranks, score, words, lines)
    elif len(hosts) == 1:
        suspect = of_host(facts.places, hosts.pop(), score, words, lines)
    else:
        suspect = everybody(score * 0.8, words, lines)
    return Cause("oom_host", score, words, suspect, signs[0].ts_ns)


def _crash(score: float, signs: list[Sign], facts: Facts) -> Cause:
    coded = frozenset(rank for rank, code in facts.codes().items() if code in _CRASHES)
    ranks = coded or _ranks(signs)
    if not coded:
        suspect, _ = _whom(signs, facts, score)
        return Cause("crash_signal", score, suspect.why, suspect, signs[0].ts_ns)
    return _crashed(score, ranks, signs[0].line.text.strip()[:160], _samples(signs), facts)


def _crashed(
    score: float, ranks: frozenset[int], words: str, lines: list[Line], facts: Facts
) -> Cause:
    share = _ALL_SHARE if facts.progress.began else _ALL_SHARE_AT_START
    several = len(ranks) > 1 and len(ranks) >= share * facts.world
    on_every_node = len({facts.places.hosts.get(r) for r in ranks}) == facts.places.nodes > 1
    if several or (on_every_node and not facts.progress.began and len(ranks) > 1):
        suspect = everybody(score, words, lines)
    else:
        suspect = of_ranks(facts.places, ranks, score, words, lines)
    first = lines[0].ts_ns if lines else 0
    return Cause("crash_signal", score, words, suspect, first)


def _hardware(kind: str, score: float, signs: list[Sign], facts: Facts) -> Cause | None:
    """A process that names its GPU's fault is the suspect; else the host whose kernel does."""
    words = signs[0].line.text.strip()[:160]
    lines = _samples(signs)
    hosts = list(dict.fromkeys(sign.host for sign in signs if sign.host))
    device = [
        s
        for s in facts.signs
        if s.kind == "exception" and _is_device_error(s.line.text) and s.ranks
    ]
    ranks = _ranks(signs) if kind == "gpu_fault" else frozenset[int]()
    if not ranks and hosts:
        local = facts.places.ranks_of(hosts[0])
        ranks = frozenset(r for s in device for r in s.ranks) & (local or facts.places.ranks)
    if ranks and len(ranks) < max(2, facts.world / 2):
        suspect = of_ranks(facts.places, ranks, score, words, lines + [s.line for s in device][:2])
    elif hosts:
        suspect = of_host(facts.places, hosts[0], score, words, lines)
    elif ranks:
        suspect = everybody(score, words, lines)
    elif device or _ranks(signs):
        named = frozenset(r for s in device for r in s.ranks) or _ranks(signs)
        suspect = of_ranks(facts.places, named, score, words, lines)
    else:
        return None
    return Cause("hardware", score, words, suspect, signs[0].ts_ns)


def _before_restart(facts: Facts) -> list[Cause]:
    """What a kernel said of an earlier attempt that failed, too."""
    if not facts.earlier:
        return []
    signs = list(facts.earlier)
    cause = _hardware(signs[0].kind, 0.84, [s for s in signs if s.kind == signs[0].kind], facts)
    return [] if cause is None else [cause]


def _is_device_error(text: str) -> bool:
    return any(word in text for word in ("CUDA error", "HIP error", "Cuda failure", "CUDA driver"))


def _of_links(by_kind: dict[str, list[Sign]], facts: Facts) -> list[Cause]:
    found = judge_links(
        by_kind["link_down"], by_kind["ib_error"] + by_kind["unreachable"], facts.places
    )
    if found is None:
        return []
    score = 0.87 if found.host else 0.81
    lines = _samples(found.signs)
    if found.host is None:
        suspect = Suspect(score, found.why, lines=lines)
    else:
        suspect = of_host(facts.places, found.host, score, found.why, lines)
    return [Cause("network", score, found.why, suspect, found.signs[0].ts_ns)]


def _of_exceptions(signs: Sequence[Sign], facts: Facts) -> list[Cause]:
    """Exceptions that nobody's absence explains."""
    explained = {
        (s.line.stream_id, s.line.seq)
        for s in facts.signs
        if s.kind in _SYMPTOMS or (s.kind in FAULT_OF and not s.handled)
    }
    codes = facts.codes()
    own = [
        s
        for s in signs
        if s.kind == "exception"
        and (s.data["module"] not in TELEMETRY_MODULES or {codes.get(r) for r in s.ranks} == {1})
        and not s.handled
        and s.data["name"] not in VICTIM_EXCEPTIONS
        and (s.line.stream_id, s.line.seq) not in explained
        and not _lived_on(s, facts)
    ]
    if not own:
        return []
    commonest, _ = Counter(s.key for s in reversed(own)).most_common(1)[0]
    alike = [s for s in own if s.key == commonest]
    suspect, all_of_them = _whom(alike, facts, _EXCEPTION)
    if not all_of_them:
        suspect, all_of_them = _whom(own, facts, _EXCEPTION)
    fault = "import_or_config" if all_of_them and not facts.progress.began else "unknown"
    return [Cause(fault, _EXCEPTION, suspect.why, suspect, own[0].ts_ns)]


def _lived_on(sign: Sign, facts: Facts) -> bool:
    """Whether its process later waited for others, or lost them: it was there."""
    return any(
        other.kind in _SYMPTOMS
        and other.line.stream_id == sign.line.stream_id
        and other.line.rank == sign.line.rank
        and other.line.seq > sign.line.seq
        and other.line.group != sign.line.group
        for other in facts.signs
    )


def _of_codes(facts: Facts) -> list[Cause]:
    """Crashes and exits that only a code tells of."""
    codes = facts.codes()
    crashed = frozenset(rank for rank, code in codes.items() if code in _CRASHES)
    lines = [e.line for e in facts.exits if e.line is not None and e.rank in crashed][:_LINES_MAX]
    if crashed:
        number = -codes[min(crashed)]
        return [_crashed(0.85, crashed, f"ended by signal {number}", lines, facts)]
    lost = frozenset(r for s in facts.of(*_SYMPTOMS) for r in s.ranks)
    aborted = frozenset(rank for rank, code in codes.items() if code == -6) - lost
    waited = facts.of("watchdog", "gloo_timeout", "mismatch")
    if aborted and len(aborted) * 4 <= facts.world and not waited:
        lines = [e.line for e in facts.exits if e.line is not None and e.rank in aborted]
        return [_crashed(0.8, aborted, "ended by signal 6", lines[:_LINES_MAX], facts)]
    own = frozenset(rank for rank, code in codes.items() if code > 1)
    if not own:
        own = frozenset(rank for rank, code in codes.items() if code == 1) - lost
    if not own or waited or (len(own) > 1 and not lost and len(own) < facts.world):
        return []
    lines = [e.line for e in facts.exits if e.line is not None and e.rank in own][:_LINES_MAX]
    words = f"ended itself with exit code {codes[min(own)]}"
    if len(own) > 1 and len(own) >= _ALL_SHARE * facts.world:
        suspect = everybody(_EXIT, words, lines)
    else:
        suspect = of_ranks(facts.places, own, _EXIT, words, lines)
    return [Cause("unknown", _EXIT, words, suspect, lines[0].ts_ns if lines else 0)]
