"""What a root tells the scan function beside a task: whose question it is. It travels in the task's JSON.

    {"_query": {"id": "…", "tenant": "…", "run": "…"}, "version": 1, …}

The scan function takes it out before it reads the task.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

MEMBER = "_query"


@dataclass(frozen=True, slots=True)
class Asked:
    """Names for a log; None where a root of an older release asks, or where there is none."""

    query_id: str | None = None
    tenant: str | None = None
    run: str | None = None


def tell_asked(task: bytes, asked: Asked) -> bytes:
    """The task, a JSON object, with whose it is in front."""
    said = {"id": asked.query_id, "tenant": asked.tenant, "run": asked.run}
    return b'{"%s":%s,' % (MEMBER.encode(), json.dumps(said).encode()) + task[1:]


def take_asked(event: dict[str, Any]) -> Asked:
    """Whose task it is; afterwards the event is the task alone."""
    said = event.pop(MEMBER, None)
    if not isinstance(said, dict):
        return Asked()
    values = (said.get(name) for name in ("id", "tenant", "run"))
    return Asked(*(value if isinstance(value, str) else None for value in values))


def run_of(runs: Sequence[str]) -> str | None:
    """The run that a line of a log is about; None where it is about several."""
    return runs[0] if len(runs) == 1 else None
