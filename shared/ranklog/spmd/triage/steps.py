"""What to do next, by class: a question that shows the evidence, and the page that says more.

Each command that is given finds something in this run: its terms are those that hold for a line of the
evidence, its ranks and hosts those that lines name.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from ranklog.limits import SECOND_NS
from ranklog.model.answer import Line
from ranklog.model.levels import ERROR
from ranklog.spmd.triage.suspects import Suspect


@dataclass(frozen=True, slots=True)
class Step:
    """`command` None: nothing to type. `runbook`: a page below docs/runbooks."""

    text: str
    command: str | None
    runbook: str


@dataclass(frozen=True, slots=True)
class Shown:
    """What there is to look at. `lines` of the evidence, `ranks` and `hosts` that lines name, `series`
    that shows it, `stacks`: whether stacks were dumped; `attempt`: one that is not the newest."""

    lines: Sequence[Line] = ()
    ranks: Collection[int] = ()
    hosts: Collection[str] = ()
    series: str | None = None
    stacks: bool = False
    attempt: int | None = None


# Terms of queries that show the evidence of a class, as its runbook has them.
QUERIES: dict[str, tuple[str, ...]] = {
    "oom_device": ('"out of memory"', "OutOfMemoryError", "RESOURCE_EXHAUSTED"),
    "oom_host": ('"oom-killer"', '"Killed process"', "oom_kill", '"Out Of Memory"'),
    "collective_timeout": (
        '"Watchdog caught collective"',
        '"Timed out waiting"',
        '"last enqueued"',
        "flight:entry",
    ),
    "collective_mismatch": (
        '"running collective"',
        '"Watchdog caught collective"',
        "MISMATCH",
        "flight:entry",
    ),
    "hardware": (
        '"NVRM: Xid"',
        '"ECC error"',
        '"Hardware Error"',
        '"Node failure"',
        '"CUDA error"',
    ),
    "network": ('"Got completion from peer"', '"Link down"', '"No route to host"'),
    "numeric": ("level>=ERROR /(?i:nan|non-finite)/",),
    "data_loader": ('"DataLoader worker"', '"DataLoader timed out"'),
    "storage": ('"No space left"', '"Input/output error"', '"Stale file handle"', "heckpoint"),
    "import_or_config": ("level>=ERROR /Error: /",),
    "external_kill": ('"CANCELLED AT"', "SIGTERM", '"death signal"', "SIGKILL"),
    "crash_signal": ('"Segmentation fault"', '"Caught signal"', '"Fatal Python error"', "SIGSEGV"),
    "hang": ('"most recent call first"', r"/File .*, line \d+ in /", "flight:entry"),
    "slow": ("/(?i:step_time|elapsed time|Straggler|tps)/",),
    "unknown": ("level>=ERROR",),
}
_ADVICE = {
    "oom_device": "see who allocates, and what the iteration before it held",
    "oom_host": "see which host and which process the kernel took",
    "collective_timeout": "see who does not report, and what it last did",
    "collective_mismatch": "compare what the suspect runs with a peer, iteration by iteration",
    "hardware": "drain the host, then read what its kernel says",
    "network": "look at the link's counters on the host that others name",
    "numeric": "find the first iteration, then what changed before it",
    "data_loader": "see which worker and which shard",
    "storage": "look at the file system, then at who else writes to it",
    "import_or_config": "every rank says the same: look at the job, not at a rank",
    "external_kill": "nobody's fault: see when it was ended, and the last checkpoint",
    "crash_signal": "see the stack of the signal's handler",
    "hang": "see where ranks stand",
    "slow": "compare the suspect's own times with its peers'",
    "unknown": "read the errors from the first one on",
}
_PART = re.compile(r'"[^"]*"|/(?:\\.|[^/])*/|\S+')


def query_of(fault: str) -> str:
    """What shows a class in any run."""
    return " OR ".join(QUERIES[fault])


def next_steps(
    fault: str, run: str, suspects: Sequence[Suspect], shown: Shown | None = None
) -> list[Step]:
    """None for a healthy run."""
    if fault == "none":
        return []
    shown = shown or Shown()
    page = f"docs/runbooks/{fault}.md"
    name = shlex.quote(run)
    if shown.attempt is not None:
        name += f" --attempt {shown.attempt}"
    text, question = _question(fault, shown)
    found = [Step(text, f"ranklog {question} --run {name}", page)]
    if fault == "hang":
        stacks = _of_stacks(shown, name, page)
        found = [stacks] if shown.stacks else [stacks, *found]
    rank = next((s.rank for s in suspects if s.rank is not None), None)
    if rank is not None and rank in shown.ranks:
        text = f"read the last lines of rank {rank}"
        found.append(Step(text, f"ranklog search rank:{rank} --run {name} --limit 50", page))
        peer = min((r for r in shown.ranks if r != rank), default=None)
        if peer is not None:
            text = f"set rank {rank} beside a peer"
            command = f"ranklog compare --run {name} --ranks {rank},{peer}"
            found.append(Step(text, command, page))
    host = next((s.host for s in suspects if s.node and s.host), None)
    if host is not None:
        found.append(Step(f"read what host {host} says", _of_host(host, shown, name), page))
    return found


def _of_stacks(shown: Shown, name: str, page: str) -> Step:
    if shown.stacks:
        return Step("see who stands elsewhere", f"ranklog stacks --run {name}", page)
    return Step("dump the stacks of all ranks and group the equal ones", None, page)


def _of_host(host: str, shown: Shown, name: str) -> str | None:
    if host in shown.hosts:
        return f"ranklog search {shlex.quote(f'host:{host}')} --run {name}"
    if any(host in line.text for line in shown.lines):
        quoted = shlex.quote(f'"{host}"')
        return f"ranklog search {quoted} --run {name}"
    return None


def _question(fault: str, shown: Shown) -> tuple[str, str]:
    """(advice, a command that prints the evidence, or lines around it)."""
    if shown.series is not None:
        plain = re.fullmatch(r"[A-Za-z_][\w/.-]*", shown.series)
        asked = shown.series if plain else f'series:"{shown.series}"'
        return _ADVICE[fault], f"series {shlex.quote(asked)}"
    terms = [term for term in QUERIES[fault] if any(_holds(term, x) for x in shown.lines)]
    if terms:
        return _ADVICE[fault], f"search {shlex.quote(' OR '.join(terms))}"
    if not shown.lines:
        return "read what was said last", "search '' --limit 50"
    times = [line.ts_ns for line in shown.lines]
    since, until = _time(min(times)), _time(max(times) + SECOND_NS)
    return "read what was said then", f"search '' --since {since} --until {until}"


def _holds(term: str, line: Line) -> bool:
    return all(_is_said(part, line) for part in _PART.findall(term))


def _is_said(part: str, line: Line) -> bool:
    if part == "level>=ERROR":
        return line.level is not None and line.level >= ERROR
    if part.startswith("flight:"):
        return line.metadata.get("flight") == part.removeprefix("flight:")
    if part.startswith("/"):
        return re.search(part[1:-1], line.text) is not None
    return part.strip('"') in line.text


def _time(ts_ns: int) -> str:
    return datetime.fromtimestamp(ts_ns // SECOND_NS, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
