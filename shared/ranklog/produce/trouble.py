"""Errors of ours inside a training job: counted, the first of each kind printed once, never raised."""

from __future__ import annotations

import contextlib
import os
import sys
from collections import Counter

counts: Counter[str] = Counter()


def once(kind: str, message: str) -> None:
    """Count; the first time also one line on the process's stderr. Never raises."""
    counts[kind] += 1
    if counts[kind] > 1:
        return
    with contextlib.suppress(OSError):  # no stderr: nobody to tell
        os.write(2, f"ranklog: {message}\n".encode("utf-8", "replace"))


def tell_denied(folder: object, why: str) -> None:
    """That the destination refuses, where it does."""
    if why:
        once("denied", f"the destination refuses, lines wait in {folder}: {why}")


def swallow(doing: str) -> None:
    """For an `except Exception:` clause: count the error that is being handled, and tell once."""
    error = sys.exc_info()[1]
    once("internal", f"error while {doing}, further ones are only counted: {error!r:.300}")
