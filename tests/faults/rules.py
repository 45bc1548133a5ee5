"""Three rules of thumb that a triage must beat: first error, torchelastic's root cause, most errors.

They are given more than logs hold: every line's rank. They name a rank, never a class's reason, and
have no word for "all", "undecidable" or a node; without any error they name nobody.
"""

from __future__ import annotations

import re
from collections import Counter

from tests.faults.job import Job

Verdict = tuple[str, list[int | frozenset[int] | str]]

_ERROR = re.compile(
    rb"Traceback \(most recent|\b\w*Error\b: |\[E\d{3,4} |\bERROR\b|NCCL WARN|Segmentation fault|"
    rb"Fatal Python error|\bnan\b"
)
_CLASSES: tuple[tuple[str, re.Pattern[bytes]], ...] = (
    ("oom_device", re.compile(rb"CUDA out of memory")),
    ("oom_host", re.compile(rb"oom[-_]kill")),
    ("collective_mismatch", re.compile(rb"mismatch between collectives")),
    ("collective_timeout", re.compile(rb"Watchdog caught collective|Timed out waiting")),
    ("hardware", re.compile(rb"Xid|ECC error|Node failure")),
    ("network", re.compile(rb"NET/IB.*Got completion|Connection (?:closed|reset) by")),
    ("data_loader", re.compile(rb"DataLoader worker")),
    (
        "import_or_config",
        re.compile(rb"ModuleNotFoundError|ImportError|FileNotFoundError|unrecognized"),
    ),
    ("crash_signal", re.compile(rb"SIGSEGV|SIGBUS|SIGABRT|Segmentation fault")),
    ("storage", re.compile(rb"OSError: \[Errno")),
    ("external_kill", re.compile(rb"CANCELLED AT|got signal: 15|SIGTERM|SIGKILL")),
    ("numeric", re.compile(rb"\bnan\b|NaN|non-finite")),
)
_ROOT = re.compile(
    rb"Root Cause \(first observed failure\):\n\[0\]:\n  time      : (\S+)\n[^\n]*\n  rank      : (\d+)"
)


def first_error(job: Job) -> Verdict:
    """The rank and the words of the earliest line that looks like an error."""
    first: tuple[int, int, bytes] | None = None
    for stream in job.processes:
        assert stream.rank is not None
        for ns, text, _ in stream.lines:
            if (first is None or ns < first[0]) and _ERROR.search(text):
                first = (ns, stream.rank, text)
                break
    if first is None:
        return _first_class(job), []
    own = [s for s in job.processes if s.rank == first[1]]
    text = b"\n".join(text for s in own for ns, text, _ in s.lines if ns >= first[0])
    return class_of(text), [first[1]]


def root_cause(job: Job) -> Verdict:
    """The rank of the earliest of torchelastic's tables; nobody where there is none."""
    found: list[tuple[bytes, int]] = []
    for stream in job.streams:
        if stream.rank is None:
            text = b"\n".join(text for _, text, _ in stream.lines)
            found += [(when, int(rank)) for when, rank in _ROOT.findall(text)]
    if not found:
        return _first_class(job), []
    rank = min(found)[1]
    own = b"\n".join(text for s in job.processes if s.rank == rank for _, text, _ in s.lines)
    return class_of(own), [rank]


def most_errors(job: Job) -> Verdict:
    """The rank with the most lines that look like errors."""
    counts: Counter[int] = Counter()
    for stream in job.processes:
        assert stream.rank is not None
        counts[stream.rank] += sum(1 for _, text, _ in stream.lines if _ERROR.search(text))
    if not counts or not max(counts.values()):
        return _first_class(job), []
    most = max(counts.values())
    rank = min(rank for rank, count in counts.items() if count == most)
    own = b"\n".join(text for s in job.processes if s.rank == rank for _, text, _ in s.lines)
    return class_of(own), [rank]


def class_of(text: bytes) -> str:
    """The class of the words that come first."""
    places = [(m.start(), name) for name, pattern in _CLASSES if (m := pattern.search(text))]
    return min(places)[1] if places else "unknown"


def _first_class(job: Job) -> str:
    text = b"\n".join(text for s in job.streams if s.rank is None for _, text, _ in s.lines)
    kind = class_of(text)
    return "none" if kind == "unknown" else kind


RULES = {"first error": first_error, "root cause": root_cause, "most errors": most_errors}
