"""Who kept the others waiting: ranks that are missing from the reports, or behind, or elsewhere.

The first reporter of a time-out is usually a victim. Reports of one communicator are compared with
each other: the rank whose operation differs under the same number, whose last enqueued number is
below the one that timed out, or that says nothing while its peers report, is the suspect.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ranklog.limits import SECOND_NS
from ranklog.spmd.triage.case import RankState
from ranklog.spmd.triage.exits import Exit
from ranklog.spmd.triage.read import Sign, body_of

_GROUP = re.compile(r"\[PG (?:ID )?(\d+)")
_FINGERPRINT = re.compile(
    r"\b[Rr]ank (\d+) is running collective: CollectiveFingerPrint\((.*?)\)(?=[,.]? |[,.]?$|\.Collectives)"
)
_NUMBER = re.compile(r"SequenceNumber=\d+,? ?")
# Collectives that a rank can be behind in one communicator.
_NEAR = 1000
WAITING = ("watchdog", "gloo_timeout")


@dataclass(frozen=True, slots=True)
class Waiting:
    """`ranks`: suspects, empty where nobody can tell. `fault`: the class; `why`: in words."""

    fault: str
    ranks: frozenset[int]
    why: str
    signs: Sequence[Sign]
    sure: float = 1.0
    missing: frozenset[int] = frozenset()


@dataclass(slots=True)
class _Report:
    """What a rank's first time-out in a communicator says."""

    seq: int | None
    op: str
    sign: Sign


@dataclass(slots=True)
class _Told:
    """What the signs say, by communicator and rank."""

    reports: dict[str, dict[int, _Report]] = field(default_factory=lambda: defaultdict(dict))
    enqueued: dict[str, dict[int, tuple[int, int]]] = field(
        default_factory=lambda: defaultdict(dict)
    )  # and completed
    heard: set[int] = field(default_factory=set)


def judge_waiting(
    signs: Sequence[Sign], ranks: Mapping[int, RankState], exits: Iterable[Exit]
) -> Waiting | None:
    """None where no collective timed out and none is said to differ."""
    named = _named(signs)
    if named is not None:
        return named
    waiting = [sign for sign in signs if sign.kind in WAITING]
    if not waiting:
        return None
    told = _told(signs)
    return (
        _elsewhere(told)
        or _behind(told, ranks)
        or _missing(told, ranks, list(exits), signs)
        or Waiting(
            "collective_timeout", frozenset(), "every rank reports the same", waiting[:8], 0.3
        )
    )


def _named(signs: Sequence[Sign]) -> Waiting | None:
    """What an analysis of all ranks says: fingerprints, desync reports, a flight recorder's."""
    prints: dict[int, str] = {}
    for sign in signs:
        if sign.kind == "mismatch":
            for rank, text in _FINGERPRINT.findall(body_of(sign.line)):
                prints[int(rank)] = _NUMBER.sub("", text)
    odd = _minority(prints)
    mismatches = [sign for sign in signs if sign.kind == "mismatch"]
    if odd:
        return Waiting(
            "collective_mismatch", odd, "runs another collective than its peers", mismatches[:8]
        )
    culprits = [s for s in signs if s.kind == "trace_culprit"]
    ranks = frozenset(rank for sign in culprits for rank in sign.ranks)
    if culprits and ranks and any("MISMATCH" in s.line.text for s in culprits):
        return Waiting("collective_mismatch", ranks, "a flight recorder names it", culprits[:8])
    absent = _absent_tasks(signs)
    if absent is not None:
        return absent
    for kind in ("trace_absent", "desync_absent", "barrier"):
        found = [sign for sign in signs if sign.kind == kind]
        # ranks that come later to a collective wait for those that came to none of it
        low = min((int(s.data["done"]) for s in found if "done" in s.data), default=None)
        ranks = frozenset(
            rank for s in found if low is None or int(s.data["done"]) == low for rank in s.ranks
        )
        if ranks:
            return Waiting("collective_timeout", ranks, "did not join a collective", found[:8])
    if mismatches:
        return Waiting(
            "collective_mismatch", frozenset(), "collectives differ", mismatches[:8], 0.4
        )
    return None


def _absent_tasks(signs: Sequence[Sign]) -> Waiting | None:
    """What JAX's coordination service says: who did not come to a barrier, who sends no heartbeats."""
    reports = [sign for sign in signs if sign.kind == "task_absent"]
    named = [sign for sign in signs if sign.kind == "task_name"]
    if not reports:
        return None
    ranks = frozenset(rank for sign in named for rank in sign.ranks)
    if any("heartbeats" in sign.line.text for sign in reports):
        return Waiting("unknown", ranks, "its heartbeats stopped", [*reports[:4], *named[:4]])
    return Waiting(
        "collective_timeout", ranks, "did not come to a barrier", [*reports[:4], *named[:4]]
    )


def _told(signs: Sequence[Sign]) -> _Told:
    told = _Told()
    for sign in signs:
        if sign.kind not in (*WAITING, "status", "peer_gone") or len(sign.ranks) != 1:
            continue
        (rank,) = sign.ranks
        group = _GROUP.search(sign.line.text)
        pg = group[1] if group else ""
        if sign.kind == "status":
            numbers = (int(sign.data["enqueued"]), int(sign.data["completed"]))
            told.enqueued[pg].setdefault(rank, numbers)
            continue
        told.heard.add(rank)
        if sign.kind == "watchdog":
            seq = sign.data.get("seq")
            op = sign.data["op"] + sign.data.get("shape", "")
            number = None if seq is None else int(seq)
            told.reports[pg].setdefault(rank, _Report(number, op, sign))
    return told


def _elsewhere(told: _Told) -> Waiting | None:
    """The rank whose operation or size differs under the number the others wait at."""
    for reports in told.reports.values():
        by_seq: dict[int | None, dict[int, str]] = defaultdict(dict)
        for rank, report in reports.items():
            by_seq[report.seq][rank] = report.op
        for seq, ops in by_seq.items():
            odd = _minority(ops)
            if seq is not None and odd:
                signs = [reports[rank].sign for rank in sorted(odd)]
                signs += [r.sign for rank, r in sorted(reports.items()) if rank not in odd][:3]
                why = f"waits in another operation than its peers under number {seq}"
                return Waiting("collective_mismatch", odd, why, signs)
    return None


def _minority(values: Mapping[int, str]) -> frozenset[int]:
    """Ranks that say what fewer say; empty where all agree or nobody is in the majority."""
    counts = Counter(values.values())
    if len(counts) < 2:
        return frozenset()
    (common, most), (_, second) = counts.most_common(2)
    if most == second:
        return frozenset()
    return frozenset(rank for rank, value in values.items() if value != common)


def _behind(told: _Told, ranks: Mapping[int, RankState]) -> Waiting | None:
    """Ranks that enqueued less than the number their peers time out at. Where texts name no
    communicators, numbers of one are near each other."""
    for pg, reports in told.reports.items():
        numbers = Counter(report.seq for report in reports.values() if report.seq is not None)
        for seq, _ in numbers.most_common():
            near = _NEAR if pg == "" else seq
            late = frozenset(
                rank
                for rank, (enqueued, completed) in told.enqueued.get(pg, {}).items()
                if seq - near <= enqueued < seq and (pg or enqueued == completed)
            )
            late = late - told.heard or frozenset(rank for rank in late if rank not in reports)
            if late and len(late) <= max(1, len(ranks) // 2):
                waiting = [r.sign for _, r in sorted(reports.items()) if r.seq == seq][:4]
                why = f"enqueued less than number {seq}, where all wait"
                return Waiting("collective_timeout", late, why, waiting)
    return None


def _missing(
    told: _Told, ranks: Mapping[int, RankState], exits: Sequence[Exit], signs: Sequence[Sign]
) -> Waiting | None:
    """Ranks that report nothing while the others wait; narrowed by who had to be killed, and by who
    stopped earlier."""
    waiting = [sign for sign in signs if sign.kind in WAITING]
    missing = frozenset(ranks) - told.heard
    if not told.heard or not missing:
        return None
    if len(missing) == 1:
        return Waiting(
            "collective_timeout", missing, "the only rank that reports no time-out", waiting[:4]
        )
    forced = frozenset(r for s in signs if s.kind == "forced" for r in s.ranks)
    killed = forced | {item.rank for item in exits if item.code == -9}
    if killed & missing and len(killed & missing) < len(missing):
        why = "reports nothing, and only SIGKILL ended it"
        return Waiting("collective_timeout", killed & missing, why, waiting[:4], 0.9)
    apart = _apart(missing, ranks)
    if apart is not None:
        return Waiting("collective_timeout", apart[0], apart[1], waiting[:4], 0.8)
    return Waiting(
        "collective_timeout",
        frozenset(),
        f"{len(missing)} ranks report nothing, and nothing tells them apart",
        waiting[:8],
        0.3,
        missing,
    )


def _apart(
    missing: frozenset[int], ranks: Mapping[int, RankState]
) -> tuple[frozenset[int], str] | None:
    """Who of the missing went on alone, stopped before the others, or said something after them."""
    last = {r: i for r in missing if (i := ranks[r].last_iteration) is not None}
    others = [
        i for r, s in ranks.items() if r not in missing and (i := s.last_iteration) is not None
    ]
    top = max((*last.values(), *others), default=0)
    if last and others and top > max(others):
        ahead = frozenset(rank for rank, iteration in last.items() if iteration == top)
        if len(ahead) * 2 < len(missing):
            return ahead, "went on without its peers"
    elif len(last) == len(missing):
        behind = frozenset(rank for rank, iteration in last.items() if iteration < top)
        if behind and len(behind) < len(missing):
            return behind, "stopped earlier"
    spoke = sorted((ns, r) for r in missing if (ns := ranks[r].last_ns) is not None)
    if len(spoke) == len(missing) and spoke[-1][0] - spoke[-2][0] > SECOND_NS:
        return frozenset([spoke[-1][1]]), "the only one that said something while others waited"
    return None
