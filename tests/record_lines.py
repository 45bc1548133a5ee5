"""What a LINE record says, read plainly: what the agent's columns are compared with."""

from __future__ import annotations

from typing import Any

from ranklog.produce.records import TEXT_CHARACTERS_MAX, formatted


def line_text(fields: list[Any]) -> str:
    """The text, formatted, with its traceback below; cut at TEXT_CHARACTERS_MAX."""
    text: str = fields[6]
    if len(fields) > 9 and fields[9] is not None:
        text = formatted(text, tuple(fields[9]))[:TEXT_CHARACTERS_MAX]
    trace = fields[8] if len(fields) > 8 else None
    return text if trace is None else f"{text}\n{trace}"


def line_metadata(fields: list[Any]) -> dict[str, Any] | None:
    """What the line itself carries, without its context's."""
    return fields[7] if len(fields) > 7 else None
