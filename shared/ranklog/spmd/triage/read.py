"""Lines into signs: which rule holds, which ranks or host the line speaks of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ranklog.model.answer import Line
from ranklog.model.levels import ERROR, INFO
from ranklog.spmd.exceptions import EXCEPTION, TRACEBACK_END
from ranklog.spmd.triage.rule import Rule
from ranklog.spmd.triage.rules import RULES
from ranklog.spmd.triage.rules_device import SEVERE_XIDS

_ENVELOPE = re.compile(r"^(?:\s*\d+: ?)?(?:\[(?!rank)[a-z]+\d+\]:)?(?:\[rank\d+\]: ?)?")
_RANK_WORDS = (
    re.compile(r"\[(?:PG [^\]]*)?[Rr]ank (\d+)\]"),
    re.compile(r"\b[Rr]ank:? ?(\d+)(?:\]|:| :|,| has| is| found)"),
    re.compile(r"\bon rank (\d+)\b"),
)
_NUMBERS = re.compile(r"0x[0-9a-fA-F]+|\d+")
_NCCL = re.compile(r"^(?P<host>[\w.-]+):(?P<pid>\d+):\d+ \[\d+\] ")
_CAUGHT = re.compile(r"^\[(?P<host>[\w.-]+):(?P<pid>\d+) *:")


@dataclass(frozen=True, slots=True)
class Sign:
    """One piece of evidence. `ranks`: whom the line speaks of or who wrote it; `key`: what is alike
    where others say the same; `handled`: the program itself reported it and could go on."""

    kind: str
    line: Line
    ranks: frozenset[int] = frozenset()
    host: str | None = None
    key: str = ""
    handled: bool = False
    data: Mapping[str, str] = field(default_factory=dict)

    @property
    def ts_ns(self) -> int:
        return self.line.ts_ns


def body_of(line: Line) -> str:
    """The text without what stands around it."""
    body = line.text[line.body_at :] if line.body_at else line.text
    return _ENVELOPE.sub("", body, count=1)


def read_signs(
    lines: Iterable[Line],
    stream_hosts: Mapping[str, str],
    pids: Mapping[tuple[str | None, int], int],
) -> list[Sign]:
    """Signs in the order of their lines. `pids`: ranks of processes, by (host, pid) and (None, pid)."""
    lines = list(lines)
    heads = {(line.stream_id, line.seq): line for line in lines}
    signs: list[Sign] = []
    for line in lines:
        body = body_of(line)
        handled = _is_handled(line, heads)
        source = line.group not in (None, line.seq) and body.startswith("    ")
        host = line.host or stream_hosts.get(line.stream_id)
        for rule in RULES:
            # source code in a traceback names what it raises
            found = None if source and rule.fault else _match(rule, line, body)
            if found is None:
                continue
            data = {k: v for k, v in found.groupdict().items() if v is not None}
            if rule.kind == "xid" and int(data["xid"]) not in SEVERE_XIDS:
                continue
            ranks = _ranks(rule, line, body, data, host, pids)
            where = data.get("host") or host
            signs.append(Sign(rule.kind, line, ranks, where, key_of(body), handled, data))
        exception = EXCEPTION.match(body) or (
            TRACEBACK_END.match(body) if _in_traceback(line, heads) else None
        )
        if exception is not None and (line.level is None or line.level >= ERROR):
            ranks = frozenset() if line.rank is None else frozenset([line.rank])
            module, _, name = exception["name"].rpartition(".")
            data = {"name": name, "module": module.partition(".")[0]}
            signs.append(Sign("exception", line, ranks, host, key_of(body), handled, data))
    return signs


def _match(rule: Rule, line: Line, body: str) -> re.Match[str] | None:
    if any(literal in line.text for literal in rule.literals):
        return rule.pattern.search(body)
    # errors speak of numbers in words that ordinary lines have, too
    if rule.kind == "nan_check" and (line.level or 0) >= ERROR:
        return rule.pattern.search(body)
    return None


def _is_handled(line: Line, heads: Mapping[tuple[str, int], Line]) -> bool:
    """Whether the record that it stands in is a log entry below ERROR, or one that reports a traceback."""
    if line.level is not None and line.level < ERROR:
        return line.level >= INFO
    if line.group is None or line.group == line.seq:
        return False
    head = heads.get((line.stream_id, line.group))
    if head is None:
        return False
    text = body_of(head)
    return "Traceback (most recent call last)" not in text and EXCEPTION.match(text) is None


def _in_traceback(line: Line, heads: Mapping[tuple[str, int], Line]) -> bool:
    if line.group is None or line.group == line.seq:
        return False
    head = heads.get((line.stream_id, line.group))
    return head is not None and "Traceback (most recent call last)" in head.text


def key_of(body: str) -> str:
    """What ranks that meet the same fault have in common: words without numbers."""
    return _NUMBERS.sub("#", body.strip())[:160]


def _ranks(
    rule: Rule,
    line: Line,
    body: str,
    data: Mapping[str, str],
    host: str | None,
    pids: Mapping[tuple[str | None, int], int],
) -> frozenset[int]:
    if data.get("ranks"):
        return frozenset(int(word) for word in re.findall(r"\d+", data["ranks"]))
    if data.get("rank") and rule.kind in ("elastic_rank", "rank_time"):
        return frozenset([int(data["rank"])])
    for pattern in _RANK_WORDS if rule.kind in ("nan_check", "watchdog", "status") else ():
        named = pattern.search(body)
        if named is not None and line.rank is None:
            return frozenset([int(named[1])])
        if named is not None and rule.kind == "nan_check":
            return frozenset([int(named[1])])
    if line.rank is not None:
        return frozenset([line.rank])
    pid = data.get("pid") or data.get("pid2")
    process = _NCCL.match(body) or _CAUGHT.match(body)
    if process is not None:
        host, pid = process["host"], process["pid"]
    if pid is not None:
        rank = pids.get((host, int(pid)), pids.get((None, int(pid))))
        if rank is not None:
            return frozenset([rank])
    return frozenset()
