"""The one thing the engine asks of a store. One contract test suite runs over all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """One listed object. `length` in bytes; `modified_ns`: when it was put, by the store's clock, None
    where the store can't say."""

    key: str
    length: int
    etag: str
    modified_ns: int | None = field(default=None, compare=False)


class Store(Protocol):
    """Objects under keys. A PUT is whole or not at all; a LIST sees every PUT that returned."""

    @property
    def url(self) -> str:
        """How a user names this store."""
        ...

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> str:
        """Store an object and return its etag ("" where there is none).

        Raises AlreadyExists if `if_absent` and the key is taken, StoreFull, Unavailable.
        """
        ...

    def get(self, key: str) -> bytes:
        """The whole object. Raises NotFound, Unavailable."""
        ...

    def get_range(self, key: str, start: int, length: int, *, if_match: str = "") -> bytes:
        """Exactly bytes [start, start + length). Raises NotFound, PreconditionFailed, Corrupt if short."""
        ...

    def list(self, prefix: str, *, start_after: str = "") -> Iterator[ObjectInfo]:
        """Objects whose key begins with `prefix`, in order of the key's UTF-8 bytes."""
        ...

    def list_folders(self, prefix: str) -> Iterator[str]:
        """Distinct `prefix…/` one level below a prefix that is "" or ends in `/`, in order."""
        ...

    def delete(self, key: str) -> None:
        """Remove an object; one that is not there is no error."""
        ...

    def local_path(self, key: str) -> Path | None:
        """A path where the object can be read in place, if this store has such."""
        ...
