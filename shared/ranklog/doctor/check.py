"""One thing that was looked at: how it stands, and what to do next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

OK, NOTE, PROBLEM = "ok", "note", "problem"
NOTHING = "nothing to do"


@dataclass(frozen=True, slots=True)
class Check:
    """`state`: ok; note: works, with a limit that one should know; problem: lines will be missing.

    `facts` are the same for programs.
    """

    name: str
    state: str
    says: str
    do: str = NOTHING
    facts: tuple[tuple[str, Any], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """One object."""
        known = {"check": self.name, "state": self.state, "says": self.says, "do": self.do}
        return known | dict(self.facts)


def size_text(size: float) -> str:
    """`1.5 GiB`."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            return f"{size:.0f} {unit}" if size >= 10 or unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    raise AssertionError(size)
