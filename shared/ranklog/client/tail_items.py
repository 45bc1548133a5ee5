"""What a tail shows: lines, holes, what can't be read; the same over a store and over an API."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ranklog.answer.render import line_json
from ranklog.client.follow import Hole
from ranklog.model.answer import Line
from ranklog.spmd.watch.news import StreamNews


@dataclass(frozen=True, slots=True)
class TailItem:
    """A line, `late` if later ones of its stream were shown before it; or a `hole` in a stream whose
    lines did not arrive in time; or something that can't be read: {"segment", "reason"}."""

    line: Line | None = None
    late: bool = False
    hole: Hole | None = None
    skipped: dict[str, str] | None = None

    def to_json(self) -> dict[str, Any]:
        """The line's object, with `late` where it is; `kind` is gap or skipped for the others."""
        if self.line is not None:
            return line_json(self.line) | ({"late": True} if self.late else {})
        if self.hole is not None:
            hole = self.hole
            named = {"stream": hole.stream_id, "run_id": hole.run_id, "rank": hole.rank}
            return {"kind": "gap", **named, "first_seq": hole.first, "last_seq": hole.end - 1}
        return {"kind": "skipped", **(self.skipped or {})}


@dataclass(frozen=True, slots=True)
class TailPage:
    """What became visible, and the cursor to go on with. `streams`, if asked for: what the same commits
    say of streams beside their lines: heartbeats, ends."""

    items: list[TailItem] = field(default_factory=list)
    next: str = ""
    streams: list[StreamNews] | None = None

    def to_json(self) -> dict[str, Any]:
        """The answer of `GET /v1/tail`."""
        said = None if self.streams is None else [news.to_json() for news in self.streams]
        streams = {} if said is None else {"streams": said}
        return {"items": [item.to_json() for item in self.items], **streams, "next": self.next}
