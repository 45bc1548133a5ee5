"""A line on the terminal that says how far long work is; nothing where stderr is a file."""

from __future__ import annotations

import shutil
import sys
import time

_EVERY_S = 0.1


class Progress:
    """Redraws at most ten times a second; `close` takes the line away."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._on = sys.stderr.isatty() and not quiet
        self._next = 0.0
        self._drawn = False

    def show(self, text: str) -> None:
        """Replace the line."""
        now = time.monotonic()
        if not self._on or now < self._next:
            return
        self._next = now + _EVERY_S
        self._drawn = True
        width = shutil.get_terminal_size().columns - 1
        sys.stderr.write(f"\r\x1b[2K{text[:width]}")
        sys.stderr.flush()

    def close(self) -> None:
        """Clear the line."""
        if self._drawn:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()
            self._drawn = False
