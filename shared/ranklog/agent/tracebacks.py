"""Which lines of an output are one traceback: a group, and an error, whoever printed it."""

from __future__ import annotations

from ranklog.agent.rows import Row
from ranklog.model.frame import LEVEL_INFERRED, LEVEL_INHERITED
from ranklog.model.levels import ERROR

BEGIN = b"Traceback (most recent call last)"
_CHAINED = (b"During handling of the above exception", b"The above exception was the direct cause")


class Tracebacks:
    """Looks at an output's lines in turn. `place` and `group` are part of the output's state."""

    def __init__(self, place: str = "", group: int | None = None) -> None:
        self.place = place  # "" in none, "frames", "message" (the next line may chain), "gap"
        self.group = group  # seq of its first line

    def follow(self, row: Row, body: bytes) -> None:
        """The next line: begins a group, continues it, or is none of it."""
        if body.lstrip(b" +|").startswith((BEGIN, b"Exception Group " + BEGIN)):
            if not self.place:
                row.starts_group = True
                row.flags |= LEVEL_INFERRED
                row.level = ERROR
                self.place = "frames"
                return
            self.place = "frames"
        elif self.place and body[:1].isspace():
            pass
        elif self.place == "frames":
            self.place = "message"
        elif self.place == "message" and not body:
            self.place = "gap"
        elif self.place == "gap" and (not body or body.startswith(_CHAINED)):
            pass
        else:
            self.place, self.group = "", None
        self.go_on(row)

    def go_on(self, row: Row) -> None:
        """Another piece of the line before, which is of the group if that was."""
        if self.place:
            row.group, row.level = self.group, ERROR
            row.flags |= LEVEL_INHERITED
