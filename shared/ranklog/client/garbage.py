"""Python's search for cycles of garbage waits while many objects are made that stay and are in no cycle.

Opening a thousand indexes and planning over them makes hundreds of thousands of objects. The collector looks through them
again and again as their number grows, which is two fifths of the CPU of the whole, and finds nothing.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_waiting = 0
_was_on = False


@contextmanager
def collector_waits() -> Iterator[None]:
    """The collector of the process is off until the last of all threads is through here; where it was
    off before, it stays so."""
    global _waiting, _was_on
    with _lock:
        if not _waiting:
            _was_on = gc.isenabled()
            gc.disable()
        _waiting += 1
    try:
        yield
    finally:
        with _lock:
            _waiting -= 1
            if not _waiting and _was_on:
                gc.enable()
