"""What hosts do to their ranks: kernels that take a process for its memory, hardware that fails."""

from __future__ import annotations

from ranklog.spmd.triage.blame import Cause, ranks_of, samples, shown_words
from ranklog.spmd.triage.facts import Facts
from ranklog.spmd.triage.read import Sign
from ranklog.spmd.triage.suspects import Suspect, everybody, of_host, of_ranks


def of_oom_killer(score: float, signs: list[Sign], facts: Facts) -> Cause | None:
    """The kernel names a process or a host; exit codes tell which ranks it took."""
    words = "the host's memory was full: " + shown_words(signs[0].line.text)
    lines = samples(signs)
    codes = facts.codes()
    forced = frozenset(r for s in facts.of("forced") for r in s.ranks)
    killed = frozenset(rank for rank, code in codes.items() if code == -9) - forced
    ranks = ranks_of(signs)
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


def of_hardware(kind: str, score: float, signs: list[Sign], facts: Facts) -> Cause | None:
    """A process that names its GPU's fault is the suspect; else the host whose kernel does."""
    words = shown_words(signs[0].line.text)
    lines = samples(signs)
    hosts = list(dict.fromkeys(sign.host for sign in signs if sign.host))
    device = [
        s
        for s in facts.signs
        if s.kind == "exception" and _is_device_error(s.line.text) and s.ranks
    ]
    ranks = ranks_of(signs) if kind == "gpu_fault" else frozenset[int]()
    if not ranks and hosts:
        local = facts.places.ranks_of(hosts[0])
        ranks = frozenset(r for s in device for r in s.ranks) & (local or facts.places.ranks)
    if ranks and len(ranks) < max(2, facts.world / 2):
        suspect = of_ranks(facts.places, ranks, score, words, lines + [s.line for s in device][:2])
    elif hosts:
        suspect = of_host(facts.places, hosts[0], score, words, lines)
    elif ranks:
        suspect = everybody(score, words, lines)
    elif device or ranks_of(signs):
        named = frozenset(r for s in device for r in s.ranks) or ranks_of(signs)
        suspect = of_ranks(facts.places, named, score, words, lines)
    else:
        suspect = Suspect(score, words, lines=lines)
    return Cause("hardware", score, words, suspect, signs[0].ts_ns)


def before_restart(facts: Facts) -> list[Cause]:
    """What a kernel said of an earlier attempt that failed, too."""
    if not facts.earlier:
        return []
    signs = list(facts.earlier)
    cause = of_hardware(signs[0].kind, 0.84, [s for s in signs if s.kind == signs[0].kind], facts)
    return [] if cause is None else [cause]


def _is_device_error(text: str) -> bool:
    return any(word in text for word in ("CUDA error", "HIP error", "Cuda failure", "CUDA driver"))
