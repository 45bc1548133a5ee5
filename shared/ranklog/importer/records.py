"""What an import remembers, so that the same file again stores nothing and a grown one its tail.

Objects `runs/<run>/<launch>/imports/<time>.<hash>.<begin|done>.json`, written once. `begin` is
written before the rows and fixes a file's incarnation, `done` after them and says how far the file
is stored: a crash in between leads the next import to the same incarnation and the same sequence
numbers, and rows that are there twice count once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from ranklog.errors import AlreadyExists
from ranklog.layout.import_record import BEGIN, DONE, Known, decode_record, encode_record
from ranklog.layout.keys import imports_prefix
from ranklog.store.protocol import Store

# A file that has only begun is known by its first bytes.
HEAD_BYTES = 64 * 1024


class Ledger:
    """The records of one launch."""

    def __init__(self, store: Store, tenant: str, run: str, launch: str) -> None:
        self._store = store
        self._prefix = imports_prefix(tenant, run, launch)
        self._known: dict[str, dict[str, Known]] = {}
        for info in store.list(self._prefix):
            for known in decode_record(store.get(info.key), info.key):
                self._remember(known)

    def incarnations(self, key: str) -> list[Known]:
        """What is known of a file, each incarnation as far as it is stored."""
        return list(self._known.get(key, {}).values())

    def begin(self, files: Iterable[Known], now_ns: int) -> None:
        """Fix new incarnations before their rows are stored."""
        new = [file for file in files if not self._has(file)]
        bare = [Known(file.key, file.stream, file.head_bytes, file.head_hash) for file in new]
        self._write(BEGIN, bare, now_ns)

    def done(self, files: Iterable[Known], now_ns: int) -> None:
        """The rows are stored."""
        self._write(DONE, list(files), now_ns)

    def _has(self, file: Known) -> bool:
        return file.stream.incarnation in self._known.get(file.key, {})

    def _write(self, kind: str, files: list[Known], now_ns: int) -> None:
        if not files:
            return
        data = encode_record(files)
        digest = hashlib.blake2b(data, digest_size=8).hexdigest()
        with suppress(AlreadyExists):
            key = f"{self._prefix}{now_ns:020d}.{digest}.{kind}.json"
            self._store.put(key, data, if_absent=True)
        for file in files:
            self._remember(file)

    def _remember(self, known: Known) -> None:
        incarnations = self._known.setdefault(known.key, {})
        before = incarnations.get(known.stream.incarnation)
        if before is None or before.bytes <= known.bytes:
            incarnations[known.stream.incarnation] = known


def new_incarnation(key: str, head: bytes, before: int) -> str:
    """Name of a file's incarnation: of where it is, how it begins, and how many there were."""
    digest = hashlib.blake2b(digest_size=8, person=b"ranklog.import")
    digest.update(f"{before} {key}\0".encode("utf-8", "surrogatepass"))
    digest.update(head[:HEAD_BYTES])
    return digest.hexdigest()


def hash_bytes(data: bytes = b"") -> Any:
    """The running hash that records name: blake2b-128."""
    return hashlib.blake2b(data, digest_size=16)


def find_incarnation(blocks: Iterable[bytes], candidates: list[Known]) -> Known | None:
    """The incarnation that the file continues, if any: the one of the longest equal beginning."""
    marks: dict[int, list[tuple[str, Known]]] = {}
    for known in candidates:
        size, digest = (
            (known.bytes, known.hash) if known.hash else (known.head_bytes, known.head_hash)
        )
        marks.setdefault(size, []).append((digest, known))
    found = None
    for size, digest in _hash_beginnings(blocks, sorted(marks)):
        for expected, known in marks[size]:
            if expected == digest and (found is None or known.bytes >= found.bytes):
                found = known
    return found


def _hash_beginnings(blocks: Iterable[bytes], sizes: list[int]) -> Iterator[tuple[int, str]]:
    """(size, hash of the first `size` bytes), for each size that the data has."""
    running, at, pending = hash_bytes(), 0, list(sizes)
    for block in _chain(blocks):
        start = 0
        while pending and pending[0] <= at + len(block) - start:
            stop = start + pending[0] - at
            running.update(block[start:stop])
            at, start = pending.pop(0), stop
            yield at, running.hexdigest()
        if not pending:
            return
        running.update(block[start:])
        at += len(block) - start


def _chain(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """A file may be empty; its beginning of no bytes is there all the same."""
    yield b""
    yield from blocks
