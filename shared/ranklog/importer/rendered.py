"""Files that are no logs and have a form as text: which they are, and that text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import IO, Protocol

from ranklog.importer.event_files import is_event_file, render_events
from ranklog.importer.flights import is_flight, render_flight
from ranklog.importer.mlflow_store import SQLITE, metric_file, render_database, render_metric

_BLOCK_BYTES = 1 << 20


class File(Protocol):
    """A source of an import. `spool` is its content where it is no file on disk."""

    @property
    def name(self) -> str: ...
    @property
    def key(self) -> str: ...
    @property
    def relative(self) -> str: ...
    @property
    def mtime_ns(self) -> int: ...
    @property
    def spool(self) -> IO[bytes] | None: ...


def may_be_rendered(key: str, first: bytes) -> bool:
    """By its path and some first bytes: whether it is worth a look at more of them."""
    begins = first.startswith((b"\x80", SQLITE)) or first.lstrip()[:1] == b"{"
    return begins or is_event_file(first) or metric_file(key) is not None


def rendered(
    file: File, first: bytes, blocks: Callable[[], Iterator[bytes]]
) -> Iterator[bytes] | None:
    """The text of a file in pieces; None for one that is text itself.

    `first` is its beginning, `blocks` gives all of it; both unpacked. Raises BadInput, also while pieces
    are taken.
    """
    on_disk = file.spool is None
    if first.startswith(SQLITE) and on_disk:
        return render_database(file.name)
    if is_event_file(first):
        return render_events(file.name, blocks())
    if (metric := metric_file(file.key)) is not None:
        return render_metric(file.name, *metric, blocks())
    if is_flight(file.relative, first):
        text = _Flight(file, blocks).text() if on_disk else render_flight(file.name, blocks())
        return (text[at : at + _BLOCK_BYTES] for at in range(0, len(text), _BLOCK_BYTES))
    return None


class _Flight:
    """A dump, by which file it is and when it was written."""

    def __init__(self, file: File, blocks: Callable[[], Iterator[bytes]]) -> None:
        self._file = file
        self._blocks = blocks
        self._words = (file.key, file.mtime_ns)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Flight) and self._words == other._words

    def __hash__(self) -> int:
        return hash(self._words)

    def text(self) -> bytes:
        return _flight_text(self)

    def read(self) -> bytes:
        return render_flight(self._file.name, self._blocks())


@lru_cache(maxsize=1)  # a file is read several times, one after the other
def _flight_text(flight: _Flight) -> bytes:
    return flight.read()
