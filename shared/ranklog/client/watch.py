"""`watch_run`: what is wrong with a run while it goes on, told once and taken back when it is over."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranklog import limits
from ranklog.answer.render import render_time
from ranklog.client.point_reader import PointReader
from ranklog.client.tail_items import TailPage
from ranklog.client.words import Restrictions
from ranklog.errors import BadInput, NotFound, RanklogError
from ranklog.model.answer import Line
from ranklog.spmd.watch.alerts import Notice
from ranklog.spmd.watch.news import Patience, StreamNews
from ranklog.spmd.watch.watching import Watching

if TYPE_CHECKING:
    from ranklog.client.client import Client

EVERY_S = 10.0
# Pages of one round; what is left comes in the next one.
_PAGES_MAX = 64
# A run that failed may be started again by its launcher: it is watched for so long.
RESTART_S = 60.0
# A store or an API that does not answer is asked again for so many rounds.
_MISSED_MAX = 30


@dataclass(slots=True)
class Round:
    """What a look at the run brought. `state`: running, finished, failed, unknown."""

    notices: list[dict[str, Any]] = field(default_factory=list)
    state: str = "running"
    trouble: str | None = None  # the store or the API did not answer


def notice_json(notice: Notice, run_id: str) -> dict[str, Any]:
    """An alert as it is printed, given to commands and sent to webhooks."""
    return {
        "kind": "alert",
        "state": notice.state,
        "alert": notice.kind,
        "verdict": notice.verdict or None,
        "severity": notice.severity,
        "run": run_id,
        "subjects": list(notice.subjects),
        "ranks": list(notice.ranks),
        "message": notice.message,
        "since_ns": notice.since_ns,
        "since": render_time(notice.since_ns),
        "ts_ns": notice.ts_ns,
        "time": render_time(notice.ts_ns),
        "query": notice.query,
        "command": f"ranklog search {_quoted(notice.query)} --run {run_id}",
        "runbook": notice.runbook,
    }


def _quoted(query: str) -> str:
    import shlex

    return shlex.quote(query)


class Watch:
    """A watch of one launch, round by round. `state_file`: where it goes on after it was ended."""

    def __init__(
        self,
        client: Client,
        query: str,
        given: Restrictions,
        *,
        patience: Patience | None = None,
        state_file: Path | None = None,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        run = given.get("run")
        if not run:
            raise BadInput("watch which run?", hint="name it: run=… or --run NAME")
        self._client, self._query, self._now_ns = client, query, now_ns
        rows = client.runs(run=run).rows
        if not rows:
            raise NotFound(f"nothing of {run} is stored yet", hint="try again in a moment")
        if len(rows) != 1:
            raise BadInput(f"{len(rows)} launches", hint="a watch takes one: NAME, NAME@LAUNCH")
        self.run_id = str(rows[0]["run_id"])
        self._given: Restrictions = {**given, "run": self.run_id}
        self._patience = patience or Patience()
        self._watching = Watching(self._patience)
        self._state_file = state_file
        self._cursor: str | None = None
        self._known: set[str] = set()  # lines of the first page, which may come again
        self._missed = 0
        self._points = PointReader(client, query, self._given)
        if state_file is not None:
            self._load(state_file)

    def look(self, *, last: bool = False) -> Round:
        """Read what is new and judge it. `last`: no other look follows. Raises RanklogError for what
        does not pass by itself."""
        try:
            self._read()
            self._missed = 0
        except RanklogError as error:
            self._missed += 1
            if not error.retryable or self._missed > _MISSED_MAX:
                raise
            return Round(state=self._watching.state, trouble=str(error))
        found = self._watching.judge(self._now_ns(), last=last)
        if self._state_file is not None:
            self._save(self._state_file)
        notices = [notice_json(notice, self.run_id) for notice in found]
        return Round(notices, self._watching.state)

    @property
    def firing(self) -> int:
        """Alerts that have not ended."""
        return len(self._watching.alerts.fired)

    def _read(self) -> None:
        for _ in range(_PAGES_MAX):
            page = self._page()
            lines = [item.line for item in page.items if item.line is not None]
            holes = [item.hole.rank for item in page.items if item.hole is not None]
            self._take(lines, page.streams or [], [rank for rank in holes if rank is not None])
            first, self._cursor = self._cursor is None, page.next
            if first:
                self._known = {line.id for line in lines}
            elif not page.items:
                break
        self._watching.take_values(self._points.read())

    def _page(self) -> TailPage:
        try:
            return self._step(self._cursor)
        except BadInput:
            if self._cursor is None:
                raise
            self._cursor = None  # it is too old: begin with what is there now
            return self._step(None)

    def _step(self, cursor: str | None) -> TailPage:
        rows = limits.TAIL_PAGE_ROWS_MAX
        return self._client.tail_page(
            self._query, cursor=cursor, wait_s=0, rows=rows, watch=True, **self._given
        )

    def _take(self, lines: list[Line], news: list[StreamNews], holes: list[int]) -> None:
        new = [line for line in lines if line.id not in self._known]
        self._watching.take(new, news, self._now_ns(), holes)

    # --- state ----------------------------------------------------------------------------------
    def _load(self, path: Path) -> None:
        """Go on from a file of state, if it is of this launch."""
        try:
            said = json.loads(path.read_bytes())
        except FileNotFoundError:
            return
        except (OSError, ValueError) as error:
            raise BadInput(
                f"{path} is no state of a watch: {error}", hint="remove it, or name another --state"
            ) from error
        try:
            if said["run_id"] == self.run_id:
                self._watching = Watching.from_json(said["watching"], self._patience)
                self._cursor = said["cursor"]
                self._points.go_on(said.get("points_ns"))
        except (KeyError, TypeError, ValueError) as error:
            raise BadInput(
                f"{path} is no state of this version: {error}", hint="remove it"
            ) from error

    def _save(self, path: Path) -> None:
        said = {
            "run_id": self.run_id,
            "cursor": self._cursor,
            "points_ns": self._points.newest_ns,
            "watching": self._watching.to_json(),
        }
        beside = path.with_name(f"{path.name}.{os.getpid()}.new")
        try:
            beside.write_text(json.dumps(said))
            os.replace(beside, path)
        except OSError as error:
            raise BadInput(f"can't write {path}: {error.strerror}", hint="--state FILE") from error


def watch_rounds(
    watch: Watch,
    *,
    every_s: float = EVERY_S,
    once: bool = False,
    sleep: Callable[[float], object] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Round]:
    """Looks at a run until it has ended; one where `once`. A run that failed is looked at for a minute
    more, as its launcher may start it again."""
    failed_s: float | None = None
    while True:
        found = watch.look(last=once)
        yield found
        if once or found.state in ("finished", "unknown"):
            return
        if found.state == "failed":
            failed_s = clock() if failed_s is None else failed_s
            if clock() - failed_s >= RESTART_S:
                return
        else:
            failed_s = None
        sleep(every_s)
