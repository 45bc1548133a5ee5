"""A request as it turned out: who asked which route, how long it took, what it read, how complete it was.

Neither words of the question nor lines of the answer are in it: it may be logged.
"""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from ranklog.access.grant import READ
from ranklog.api.scopes import SCOPE_OF
from ranklog.client import Client
from ranklog.objectives import names
from ranklog.objectives.measures import Measures

# Waits for lines: how long it took says nothing.
_WAITING = ("GET", "/v1/tail")
# About ranklog itself: no question of its users.
_OURS = ("GET", "/v1/slo")
_WORST = ("complete", "behind", "gaps", "partial")
_RUNS_MAX = 20


@dataclass(slots=True)
class Observed:
    """`route` is the rule, such as (GET, /v1/runs/<run>/streams); `state` the worst of its answers."""

    query_id: str
    tenant: str | None = None
    route: tuple[str, str] | None = None
    status: int = 0
    ms: float = 0.0
    runs: list[str] = field(default_factory=list)
    bytes_read: int = 0
    row_groups: int = 0
    row_groups_pruned: int = 0
    state: str | None = None

    @property
    def is_question(self) -> bool:
        """Whether it reads lines, rather than sends some or asks for the schema."""
        return self.route not in (None, _OURS) and SCOPE_OF.get(self.route or ("", "")) == READ

    def saw(self, answer: Any) -> None:
        """Take what an answer says of itself."""
        report = getattr(answer, "report", None)
        if report is not None:
            self.bytes_read += getattr(report, "bytes_read", 0)
            self.row_groups += getattr(report, "row_groups_total", 0)
            self.row_groups_pruned += getattr(report, "row_groups_pruned", 0)
            for run in getattr(report, "run_ids", ()):
                if run not in self.runs and len(self.runs) < _RUNS_MAX:
                    self.runs.append(run)
        state = getattr(getattr(answer, "completeness", None), "state", None)
        if state in _WORST:
            self.state = max(self.state or _WORST[0], state, key=_WORST.index)

    def measures(self) -> Measures:
        """What is measured of it; nothing where it was no question."""
        made = Measures()
        if not self.is_question:
            return made
        made.count(names.QUERIES)
        made.count(names.QUERIES_FAILED, int(self.status >= 500))
        if self.route != _WAITING and self.status < 500:
            made.took(names.QUERY_MS, self.ms)
        if self.state is not None:
            made.count(names.ANSWERS[self.state])
        made.count(names.BYTES_READ, self.bytes_read)
        made.count(names.ROW_GROUPS, self.row_groups)
        made.count(names.ROW_GROUPS_PRUNED, self.row_groups_pruned)
        return made


Observer = Callable[[Observed], None]


def begin(event: Mapping[str, Any], context: Any) -> Observed:
    """A request that came in. Its id is API Gateway's, else the invocation's, else a new one."""
    asked = (event.get("requestContext") or {}).get("requestId")
    invocation = getattr(context, "aws_request_id", None)
    return Observed(str(asked or invocation or uuid.uuid4().hex))


def watched(client: Client, observed: Observed) -> Client:
    """The same client to whoever asks it; what its answers say of themselves is seen."""
    return cast(Client, _Watched(client, observed))


class _Watched:
    def __init__(self, client: Client, observed: Observed) -> None:
        self._client = client
        self._observed = observed

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)
        return self._seen(found) if callable(found) else found

    def _seen(self, ask: Any) -> Any:
        @functools.wraps(ask)
        def asked(*words: Any, **options: Any) -> Any:
            answer = ask(*words, **options)
            self._observed.saw(answer)
            return answer

        return asked
