"""Where a command's words go: results to stdout, notes and errors to stderr, colour to terminals."""

from __future__ import annotations

import json as jsons
import os
import re
import shutil
import sys
from typing import Any

from ranklog.errors import RanklogError

_CODES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
    "bright red": "1;31",
}
# One colour per rank, round and round, none of them red: red is for errors.
_RANK_COLOURS = ("cyan", "green", "magenta", "blue", "yellow")
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?)")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")


class Console:
    """Writes; knows whether people or programs read. `json`: one object a line."""

    def __init__(self, *, json: bool = False) -> None:
        self.json = json
        # A program that was started without them has nobody to tell anything.
        sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
        sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
        self.terminal = sys.stdout.isatty()
        self.colour = self.terminal and not os.environ.get("NO_COLOR") and not json
        # Text of any log goes out, whatever the locale's encoding is.
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")

    @property
    def width(self) -> int:
        """Columns of the terminal; generous where there is none."""
        return shutil.get_terminal_size((160, 40)).columns if self.terminal else 160

    def write(self, text: str) -> None:
        """Text as it is."""
        sys.stdout.write(text)

    def line(self, text: str = "") -> None:
        """One line of output."""
        sys.stdout.write(text + "\n")

    def object(self, item: dict[str, Any]) -> None:
        """One JSON object on its line."""
        sys.stdout.write(jsons.dumps(item, ensure_ascii=False, allow_nan=False) + "\n")

    def note(self, text: str) -> None:
        """A remark about the answer, on stderr: defaults, cuts, what is not complete."""
        sys.stdout.flush()
        sys.stderr.write(self.paint_error(text) + "\n")
        sys.stderr.flush()

    def error(self, error: RanklogError) -> None:
        """The one line of an error, or its JSON."""
        try:
            sys.stdout.flush()
        except OSError:
            self.abandon()
        if self.json:
            sys.stderr.write(jsons.dumps({"error": error.to_json()}, ensure_ascii=False) + "\n")
            return
        where = "" if error.position is None else f" (character {error.position + 1})"
        joint = " " if error.message.endswith(("?", "!")) and not where else "; "
        hint = f"{joint}{error.hint}" if error.hint else ""
        text = " ".join(f"ranklog: {error.message}{where}{hint}".split())
        sys.stderr.write(text + "\n")

    def paint(self, text: str, colour: str | None) -> str:
        """The text in a colour, on a terminal."""
        if not self.colour or colour is None:
            return text
        return f"\x1b[{_CODES[colour]}m{text}\x1b[0m"

    def paint_error(self, text: str) -> str:
        """Dim, where stderr is a terminal."""
        if sys.stderr.isatty() and not os.environ.get("NO_COLOR"):
            return f"\x1b[2m{text}\x1b[0m"
        return text

    def rank_colour(self, rank: int | None) -> str | None:
        """A rank's colour; the same rank has the same one everywhere."""
        return None if rank is None else _RANK_COLOURS[rank % len(_RANK_COLOURS)]

    def safe(self, text: str) -> str:
        """A log's text as a terminal may see it: no escape sequence or control character of its own.

        Into a pipe or a file it goes as it is.
        """
        if not self.terminal:
            return text
        text = _ESCAPES.sub("", text)
        return _CONTROL.sub(lambda found: f"\\x{ord(found.group()):02x}", text)

    def close(self) -> None:
        """Send what is buffered; a reader that has gone is no error."""
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            self.abandon()

    def abandon(self) -> None:
        """The reader has gone: keep the interpreter from complaining at exit."""
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
