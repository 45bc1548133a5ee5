"""What a watch reads: a tail of the lines that it looks at, with what the same commits say of streams.

The first page has the newest of these lines and the state of every stream, so that what is usual for the
run is known at once; each one after it only what is new.
"""

from __future__ import annotations

from dataclasses import replace

from ranklog import limits
from ranklog.answer.runs import StreamSum, sum_streams
from ranklog.client.reader import Reader
from ranklog.client.search import begin, scan_lines
from ranklog.client.tail_cursor import tail_page
from ranklog.client.tail_items import TailItem, TailPage
from ranklog.client.triage import evidence_term
from ranklog.errors import BadInput
from ranklog.model import query as q
from ranklog.plan.tree import all_of, any_of
from ranklog.spmd.watch.news import StreamNews, news_of
from ranklog.spmd.watch.watching import BUSY

# Values that may stop being finite on lines that name no iteration.
_VALUES = ("loss", "grad_norm", "lm_loss", "train_loss")


def watch_page(
    reader: Reader,
    query: q.Query,
    cursor: str | None,
    *,
    wait_s: float,
    rows: int = limits.TAIL_PAGE_ROWS_MAX,
) -> TailPage:
    """One step of a watch of one launch. Raises BadInput without a run, and what a tail raises."""
    if query.run is None or query.run.launch == "*":
        raise BadInput("a watch of which run?", hint="name one launch: NAME, NAME@LAUNCH, NAME~1")
    asked = replace(query, expr=all_of([query.expr, watch_term()]))
    if cursor is not None:
        return tail_page(reader, asked, cursor, wait_s=wait_s, rows=rows, streams=True)
    begun = tail_page(reader, asked, None, wait_s=0)
    run = begin(reader, asked)
    lines = scan_lines(run, run.expr(), limit=rows, newest=True).lines()
    lines.sort(key=lambda line: (line.ts_ns, line.stream_id, line.seq))
    news = [_news(item) for item in sum_streams(run.scope.entries(), gone=run.scope.gone())]
    return TailPage([TailItem(line) for line in lines[-rows:]], begun.next, news)


def watch_term() -> q.Expr:
    """Lines that name an iteration or a value, or that a rule of triage might hold for."""
    present = [q.Field(key, ":", (q.Present(),)) for key in ("iteration", *_VALUES)]
    return any_of([*present, evidence_term(), q.Matches(BUSY.pattern)])


def _news(item: StreamSum) -> StreamNews:
    """All that is known of a stream, as if it were said at once."""
    said = [news_of(entry) for entry in item.entries]
    return replace(
        said[-1],
        last_ns=item.last_ns,
        alive_ns=max((one.alive_ns for one in said if one.alive_ns is not None), default=None),
        last_iteration=item.last_iteration,
        end=max(one.end for one in said),
        fenced=max(one.fenced for one in said),
        ended=item.end is not None,
        exit_code=None if item.end is None else item.end.exit_code,
    )
