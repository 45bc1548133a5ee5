"""How processes ended, from torchelastic's failure tables, Slurm's task lines, and ends of streams."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ranklog.model.answer import Line
from ranklog.spmd.triage.rules_launch import LAUNCHER_RULES

_BY_KIND = {rule.kind: rule.pattern for rule in LAUNCHER_RULES}
_SIGNALS = {
    "Killed": -9,
    "Terminated": -15,
    "Aborted": -6,
    "Segmentation fault": -11,
    "Bus error": -7,
    "Floating point exception": -8,
    "Illegal instruction": -4,
    "Out Of Memory": -9,
}
_EXITED = re.compile(r"Exited with exit code (\d+)")
_ENVELOPE = re.compile(r"^(?:\s*\d+: ?)?")


@dataclass(frozen=True, slots=True)
class Exit:
    """`code` -N is signal N. `task`: a rank as Slurm counts, which may be a node where launchers run."""

    rank: int
    code: int
    host: str | None
    pid: int | None
    line: Line | None
    task: bool = False
    what: str = ""


def signal_code(code: int) -> int:
    """A shell's 128+N as -N."""
    return 128 - code if 128 < code < 160 else code


def read_exits(lines: Iterable[Line]) -> list[Exit]:
    """In the order of the lines."""
    found: list[Exit] = []
    first: dict[str, Exit] = {}
    blocks: dict[str, tuple[str | None, int | None]] = {}
    for line in lines:
        text = _ENVELOPE.sub("", line.text, count=1) if ": " in line.text[:8] else line.text
        if "srun: error: " in text:
            found += _tasks(line, text)
            continue
        if (named := _BY_KIND["mpi_signal"].search(text)) is not None:
            code, host = -int(named["signal"]), named["host"]
            found.append(Exit(int(named["rank"]), code, host, None, line))
            continue
        if (named := _BY_KIND["mpi_abort"].search(text)) is not None:
            found.append(Exit(int(named["rank"]), 1, None, None, line))
            continue
        if " : " not in text and ": " not in text:
            continue
        if (named := _BY_KIND["elastic_failed"].search(text)) is not None:
            local, pid = int(named["local"]), int(named["pid"])
            first[line.stream_id] = Exit(local, signal_code(int(named["code"])), None, pid, line)
            continue
        host, rank = blocks.get(line.stream_id, (None, None))
        if (named := _BY_KIND["elastic_host"].search(text)) is not None:
            blocks[line.stream_id] = (named["host"], None)
        elif (named := _BY_KIND["elastic_rank"].search(text)) is not None:
            blocks[line.stream_id] = (host, int(named["rank"]))
        elif (named := _BY_KIND["elastic_code"].search(text)) is not None and rank is not None:
            code = signal_code(int(named["code"]))
            found.append(Exit(rank, code, host, int(named["pid"]), line))
            blocks[line.stream_id] = (host, None)
    # a log that was cut before the table: on one node local ranks are ranks
    return found or (list(first.values()) if len(first) == 1 else [])


def _tasks(line: Line, text: str) -> list[Exit]:
    named = _BY_KIND["srun_tasks"].search(text)
    if named is None:
        return []
    what = named["what"].strip()
    exited = _EXITED.match(what)
    if exited is not None:
        code: int | None = signal_code(int(exited[1]))
    else:
        code = next((n for word, n in _SIGNALS.items() if what.startswith(word)), None)
    if code is None:
        return []
    return [
        Exit(task, code, named["host"], None, line, task=True, what=what)
        for task in expand(named["tasks"])
    ]


def expand(text: str) -> list[int]:
    """`0-2,5` as numbers."""
    numbers: list[int] = []
    for part in text.split(","):
        low, dash, high = part.partition("-")
        if low.isdecimal() and (not dash or high.isdecimal()):
            numbers += range(int(low), min(int(high or low), int(low) + 65_536) + 1)
    return numbers
