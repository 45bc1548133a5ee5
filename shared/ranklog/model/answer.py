"""What comes back: lines, how complete they are, and what the answer cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Line:
    """One line of an answer. Absent is None. `metadata` values are int, float or str."""

    stream_id: str
    seq: int
    ts_ns: int
    run: str
    launch: str
    attempt: int
    rank: int | None
    local_rank: int | None
    host: str | None
    channel: str
    group: int | None  # seq of the group's first line
    level: int | None
    call_site: str | None
    function: str | None
    logger: str | None
    text: str
    iteration: int | None
    metadata: dict[str, int | float | str] = field(default_factory=dict)
    match: bool = True  # False: shown as context or as the rest of a group
    flags: int = 0
    raw: bytes | None = None
    copy: bool = False
    source: str | None = None
    tid: int = 0
    template: str | None = None
    superseded: bool = False  # its iteration was done again after a restart
    body_at: int = 0  # bytes of `text` that are envelopes

    @property
    def id(self) -> str:
        """Identity: stream and sequence number."""
        return f"{self.stream_id}:{self.seq}"

    @property
    def run_id(self) -> str:
        return f"{self.run}@{self.launch}"


@dataclass(slots=True)
class Completeness:
    """`state` is the worst that holds: partial > gaps > behind > complete."""

    state: str = "complete"
    certified: str = "none"  # producer | agent | import | none: the weakest in scope
    watermark_ns: int | None = None
    streams: int = 0
    absent: list[int] = field(default_factory=list)
    behind: list[dict[str, Any]] = field(default_factory=list)
    gaps: list[dict[str, Any]] = field(default_factory=list)
    dropped: list[dict[str, Any]] = field(default_factory=list)
    deleted: list[dict[str, Any]] = field(default_factory=list)
    conflicts: list[dict[str, Any]] = field(default_factory=list)
    waiting: list[dict[str, Any]] = field(default_factory=list)
    quiet: list[dict[str, Any]] = field(default_factory=list)
    since: list[dict[str, Any]] = field(default_factory=list)
    skipped_tasks: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class Report:
    """What an answer cost and what it looked at; the JSON member `report`."""

    from_ns: int | None = None
    to_ns: int | None = None
    defaulted: bool = False
    run_ids: list[str] = field(default_factory=list)
    segments_listed: int = 0
    segments_pruned: int = 0
    segments_scanned: int = 0
    row_groups_total: int = 0
    row_groups_pruned: int = 0
    row_groups_scanned: int = 0
    bytes_read: int = 0
    ms: dict[str, float] = field(default_factory=dict)  # list, plan, scan, merge
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
