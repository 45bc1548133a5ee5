"""What Arrow unpacked of segments, kept for the next question: columns of row groups, pages of text.

Who looks into a run asks of the same segments again and again, and unpacking is most of what a question
for few lines costs. A segment never changes under its key. Least recently used goes first; what takes more
than an eighth of the room is not kept.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

from ranklog.limits import DECODED_BYTES_MAX

_SHARE = 8
ENTRY_BYTES = 1_024  # what an array takes beside its values: many are of a few rows


class Decoded:
    """Arrow arrays by what they are of. Threads may share it."""

    def __init__(self, bytes_max: int = DECODED_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._kept: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Any | None:
        """The array, None where it is not kept."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, array: Any) -> None:
        """Keep it for now."""
        size = int(array.nbytes) + ENTRY_BYTES
        if size * _SHARE > self._bytes_max:
            return
        with self._lock:
            if key in self._kept:
                return
            self._kept[key] = (array, size)
            self._bytes += size
            while self._bytes > self._bytes_max:
                _, (_, gone) = self._kept.popitem(last=False)
                self._bytes -= gone


DECODED = Decoded()
