"""The stream of local mode: a folder of records, in order, at least once, safe against crashes.

    records/<number:020d>     one record: magic, version, arrival time, partition key, data
    consumers/<name>.json     how far a consumer is
    consumers/<name>.lock     held by the process that consumes by that name
    identity                  drawn once: tells this stream's records from another's
    lock                      held while a record gets its number

A record appears whole under its number, numbers have no holes, and the newest record is never
removed, so that a number is never given twice. With `sync` a record is on the disk when `put`
returns.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from ranklog.errors import BadInput, Corrupt
from ranklog.model.record import Record
from ranklog.store.disk_files import place, sync_folder, translated, write_temporary
from ranklog.store.disk_names import MARKER

_MAGIC = b"RLDS"
_VERSION = 1
_HEAD = struct.Struct("<4sHHq")  # magic, version, bytes of the partition key, arrival in ns
_NAME_DIGITS = 20
# Between two looks at whether another consumer has ended.
LOCK_LOOK_S = 0.5


class DiskStream:
    """Records in the folder `path`; processes and threads may share it."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        sync: bool = True,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._root = Path(path).absolute()
        self._records = self._root / "records"
        self._consumers = self._root / "consumers"
        self._sync = sync
        self._clock_ns = clock_ns
        self._next = 0
        if (self._root / MARKER).exists():
            raise BadInput(
                f"{self._root} is a store, not a stream",
                hint="name another folder, and `ranklog ingest` it into the store",
            )
        with translated(str(self._root)):
            self._records.mkdir(parents=True, exist_ok=True)
            self._consumers.mkdir(exist_ok=True)

    @property
    def identity(self) -> str:
        """16 hex digits that no other stream has. Raises StoreFull, Unavailable."""
        path = self._root / "identity"
        with translated(str(path)):
            if not path.exists():
                drawn = secrets.token_hex(8).encode()
                temporary = write_temporary(self._root / ".tmp", drawn, sync=self._sync)
                with suppress(FileExistsError):  # another process drew it
                    place(temporary, path, if_absent=True, sync=self._sync)
                os.unlink(temporary)
            return path.read_text()

    def put(self, partition_key: str, data: bytes) -> str:
        """Append a record and return its sequence. Raises StoreFull, Unavailable."""
        key = partition_key.encode(errors="surrogatepass")
        head = _HEAD.pack(_MAGIC, _VERSION, len(key), self._clock_ns())
        with translated(str(self._root)):
            temporary = write_temporary(
                self._root / ".tmp", b"".join((head, key, data)), sync=self._sync
            )
            try:
                with self._locked():
                    number = self._free_number()
                    place(temporary, self._path(number), if_absent=True, sync=False)
                    self._next = number + 1
            finally:
                os.unlink(temporary)
            if self._sync:
                sync_folder(self._records)
        return _name(number)

    def read(self, after: str = "") -> Iterator[Record]:
        """Records past a sequence, oldest first, up to the newest there is at the call."""
        for name in [name for name in self._names() if name > after]:
            try:
                yield self._decode(name)
            except FileNotFoundError:
                continue  # trimmed meanwhile: every consumer has it

    def checkpoint(self, consumer: str) -> str:
        """The last sequence the consumer has committed; "" at the beginning. Raises Corrupt."""
        path = self._consumer_path(consumer)
        with translated(str(path)):
            return _committed(path) if path.exists() else ""

    def commit(self, consumer: str, sequence: str) -> None:
        """Remember that all up to `sequence` is done. It survives a crash right after."""
        path = self._consumer_path(consumer)
        data = json.dumps({"version": _VERSION, "sequence": sequence}).encode()
        with translated(str(path)):
            temporary = write_temporary(self._root / ".tmp", data, sync=self._sync)
            place(temporary, path, if_absent=False, sync=False)
            if self._sync:
                sync_folder(self._consumers)

    def waiting(self, consumer: str) -> tuple[int, int] | None:
        """When the oldest record that the consumer has not committed arrived, in ns since the epoch, and
        the bytes of all of them; None where there is none."""
        done = self.checkpoint(consumer)
        oldest_ns, held = None, 0
        for name in self._names():
            if name > done:
                with suppress(FileNotFoundError):
                    found = (self._records / name).stat()
                    oldest_ns = found.st_mtime_ns if oldest_ns is None else oldest_ns
                    held += found.st_size
        return None if oldest_ns is None else (oldest_ns, held)

    @contextmanager
    def consuming(self, consumer: str, stopping: Callable[[], bool]) -> Iterator[bool]:
        """Be the only process that consumes by that name; waits until it is, or returns False when it is
        time to stop."""
        file = os.open(
            self._consumer_path(consumer).with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o666
        )
        try:
            taken = False
            while not taken and not stopping():
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    taken = True
                except BlockingIOError:
                    time.sleep(LOCK_LOOK_S)
            yield taken
        finally:
            os.close(file)

    def trim(self) -> int:
        """Remove the records that all known consumers have committed; returns how many.

        Without a consumer nothing is removed, and the newest record never is.
        """
        with translated(str(self._root)), self._locked():
            done = [_committed(path) for path in self._consumers.glob("*.json")]
            if not done:
                return 0
            gone = [name for name in self._names()[:-1] if name <= min(done)]
            # Oldest first: a crash in between leaves numbers without holes.
            for name in gone:
                with suppress(FileNotFoundError):
                    os.unlink(self._records / name)
        return len(gone)

    def _names(self) -> list[str]:
        with translated(str(self._records)):
            names = os.listdir(self._records)
        return sorted(name for name in names if len(name) == _NAME_DIGITS and name.isdecimal())

    def _free_number(self) -> int:
        """The number after the newest; the folder is read only when others wrote."""
        last, free = self._path(self._next - 1), self._path(self._next)
        if self._next == 0 or free.exists() or not last.exists():
            names = self._names()
            return int(names[-1]) + 1 if names else 0
        return self._next

    def _decode(self, name: str) -> Record:
        path = self._records / name
        data = path.read_bytes()
        if len(data) >= _HEAD.size:
            magic, version, key_bytes, arrival_ns = _HEAD.unpack_from(data)
            if magic == _MAGIC and version <= _VERSION and len(data) >= _HEAD.size + key_bytes:
                return Record(data[_HEAD.size + key_bytes :], arrival_ns, name)
        # Not ours, or damaged: as it stands, so that ingest quarantines it and the rest goes on.
        return Record(data, path.stat().st_mtime_ns, name)

    def _path(self, number: int) -> Path:
        return self._records / _name(number)

    def _consumer_path(self, consumer: str) -> Path:
        return self._consumers / f"={quote(consumer, safe='')}.json"

    @contextmanager
    def _locked(self) -> Iterator[None]:
        # A file of its own per holder: flock is per open file, so threads exclude each other, too.
        file = os.open(self._root / "lock", os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
        finally:
            os.close(file)


def _name(number: int) -> str:
    return f"{number:0{_NAME_DIGITS}d}"


def _committed(path: Path) -> str:
    try:
        return str(json.loads(path.read_bytes())["sequence"])
    except (ValueError, KeyError, TypeError) as error:
        raise Corrupt(
            f"{path} holds no sequence", hint="remove it to read from the beginning"
        ) from error
