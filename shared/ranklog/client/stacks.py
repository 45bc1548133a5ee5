"""Where the ranks of a run stand: lines of stack dumps by one query, grouped by spmd."""

from __future__ import annotations

from typing import Any

from ranklog import limits
from ranklog.answer.render import render_time
from ranklog.client.reader import Reader
from ranklog.client.search import begin, scan_lines
from ranklog.client.stacks_answer import StacksAnswer
from ranklog.client.words import Restrictions, read_query
from ranklog.errors import BadInput
from ranklog.model import query as q
from ranklog.plan.tree import all_of
from ranklog.spmd.stacks import DUMP_LINES, Dump, StackGroup, group_stacks, newest_dumps, read_dumps

THREADS = ("main", "all")


def stacks_of(reader: Reader, query: str, given: Restrictions, *, thread: str) -> StacksAnswer:
    """The newest dump of each rank of one launch. Raises BadInput without a run."""
    if not given.get("run"):
        raise BadInput("stacks of which run?", hint="name it: run=… or --run NAME")
    if thread not in THREADS:
        raise BadInput(f"no thread {thread!r}", hint="main or all")
    run = begin(reader, read_query(query, given, now_ns=reader.now_ns()))
    if len(run.scope.run_ids) > 1:
        raise BadInput(
            f"{len(run.scope.run_ids)} launches",
            hint="stacks are of one: NAME, NAME@LAUNCH, NAME~1",
        )
    copies = q.Field("copy", ":", (q.Exact("true"),))
    expr = all_of([run.expr(), q.Not(copies), q.Matches(DUMP_LINES)])
    lines = scan_lines(run, expr, limit=limits.STACK_LINES_MAX + 1, newest=True).lines()
    if len(lines) > limits.STACK_LINES_MAX:
        lines = sorted(lines, key=lambda line: -line.ts_ns)[: limits.STACK_LINES_MAX]
        run.report.notes.append(
            f"of more lines than {limits.STACK_LINES_MAX}, the newest were read"
        )
    newest = max((line.attempt for line in lines), default=0)
    own = [line for line in lines if line.attempt == newest]
    dumps = newest_dumps(read_dumps(sorted(own, key=lambda line: (line.stream_id, line.seq))))
    groups = group_stacks(dumps, every_thread=thread == "all")
    ranks = {entry.stream.rank for entry in run.scope.entries()} - {None}
    missing = sorted(rank for rank in ranks if rank is not None and rank not in dumps)
    rows = [_row(group) for group in groups]
    return StacksAnswer(rows, missing if dumps else [], run.completeness(), run.report)


def _row(group: StackGroup) -> dict[str, Any]:
    first = group.dumps[0]
    return {
        "ranks": list(group.ranks),
        "count": len(group.ranks),
        "odd": group.odd,
        "waits": group.waits,
        "reason": first.reason,
        "dumped_ns": _last_ns(group.dumps),
        "dumped": render_time(_last_ns(group.dumps)),
        "threads": [
            {
                "name": thread.name,
                "main": thread is first.main,
                "frames": [
                    {"function": frame.function, "file": frame.file, "line": frame.line}
                    for frame in thread.frames
                ],
            }
            for thread in group.threads
        ],
        "query": f'rank:{first.rank} "Thread "',
    }


def _last_ns(dumps: tuple[Dump, ...]) -> int:
    return max(dump.first.ts_ns for dump in dumps)
