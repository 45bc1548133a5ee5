"""Where a process's ring is made: on tmpfs, smaller where there is little room, else on the spool's disk.

tmpfs counts against a container's memory, so what all processes of a user have there is bounded; a
ring on disk outlives that too, but a write to it may meet the disk's own pace.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from zlib import crc32

from ranklog import limits
from ranklog.produce import trouble
from ranklog.produce.ring import HEADER_BYTES, Ring

# A rank's, and that of a process that a rank forked (a data loader's worker).
RING_BYTES, WORKER_RING_BYTES = 16 * limits.MIB, 1 * limits.MIB
RING_BYTES_MIN = 1 * limits.MIB
# Of all rings of this user on tmpfs; over it new ones are smaller, and at last on disk.
SHARED_BYTES_MAX = 256 * limits.MIB
# Between making a ring and announcing it pass milliseconds.
NEW_S = 60.0
# Containers may share tmpfs and not their spools: what another one left is nobody's only after this.
FOREIGN_S = 30 * 86_400.0
# An agent may remove a spool's empty folder just before a ring is made in it.
MAKE_TRIES = 4


def rings_folder(environ: Mapping[str, str]) -> Path:
    """`$RANKLOG_RINGS`, else a folder of this user on tmpfs."""
    if named := environ.get("RANKLOG_RINGS"):
        return Path(named).absolute()  # the agent may work elsewhere
    return Path(f"/dev/shm/ranklog-{os.getuid()}")


def ring_bytes(environ: Mapping[str, str]) -> int:
    """`$RANKLOG_RING_MIB`, at least the smallest; else a rank's."""
    named = environ.get("RANKLOG_RING_MIB", "")
    if named.isascii() and named.isdigit() and len(named) < 5:
        return max(int(named) * limits.MIB, RING_BYTES_MIN)
    return RING_BYTES


def open_ring(shared: Path, spool: Path, name: str, size: int) -> Ring | None:
    """A ring of at most `size` bytes, or None where not even the smallest can be made.

    On tmpfs it lies in `shared` (made if its parent is there) in a folder of its spool's; else in
    the spool itself.
    """
    for tried in _sizes(size):
        with contextlib.suppress(OSError):
            if _used(shared) + tried + HEADER_BYTES > SHARED_BYTES_MAX:
                _reclaim(shared)
            if _used(shared) + tried + HEADER_BYTES <= SHARED_BYTES_MAX:
                return _made(shared, spool, name, tried)
    for tried in _sizes(size):
        with contextlib.suppress(OSError):
            return Ring.create(spool / name, tried)
    trouble.once(
        "ring", f"no room for a ring in {shared} or {spool}: lines go to a file, one by one"
    )
    return None


def forget_folder(folder: Path) -> None:
    """Remove a spool's folder on tmpfs, if no ring is left in it."""
    mark = folder / "spool"
    try:
        spool = mark.read_bytes()
        if any(folder.glob("*.ring")):
            return
        mark.unlink()
    except OSError:
        return  # it is the spool itself, on disk; or another agent was first
    try:
        folder.rmdir()
    except OSError:  # a new ring came meanwhile
        with contextlib.suppress(OSError):
            mark.write_bytes(spool)


def _made(shared: Path, spool: Path, name: str, size: int) -> Ring:
    """Raises OSError."""
    for _ in range(MAKE_TRIES):
        with contextlib.suppress(FileNotFoundError):
            return Ring.create(_spools_folder(shared, spool) / name, size)
    return Ring.create(_spools_folder(shared, spool) / name, size)


def _sizes(size: int) -> Iterator[int]:
    while size >= RING_BYTES_MIN:
        yield size
        size //= 2


def _spools_folder(shared: Path, spool: Path) -> Path:
    """Where rings of a spool lie on tmpfs; a file says which spool it is, the name in whose files."""
    name = f"{crc32(os.fsencode(spool)):08x}-{_namespace()}"
    for folder in (shared, shared / name):
        folder.mkdir(mode=0o700, exist_ok=True)
        if folder.stat().st_uid != os.getuid():
            raise PermissionError(f"{folder} belongs to another user")
    if not (folder / "spool").exists():
        (folder / "spool").write_bytes(os.fsencode(spool))
    return folder


def _namespace() -> str:
    """Number of the mount namespace, in which a spool's path means something."""
    try:
        return str(os.stat("/proc/self/ns/mnt").st_ino)
    except OSError:
        return "0"


def _used(shared: Path) -> int:
    return sum(ring.stat().st_size for ring in shared.glob("*/*.ring"))


def _reclaim(shared: Path) -> None:
    """Remove rings that nobody will ever ask for: their spool is gone, or delivered them."""
    here = _namespace()
    for folder in shared.iterdir():
        grace_s = NEW_S if folder.name.rpartition("-")[2] == here else FOREIGN_S
        with contextlib.suppress(OSError):
            spool = Path(os.fsdecode((folder / "spool").read_bytes()))
            for ring in folder.glob("*.ring"):
                # A process announces itself after it has made its ring.
                is_new = time.time() - ring.stat().st_mtime < grace_s
                if not (is_new or (spool / f"{ring.stem}.process").exists()):
                    ring.unlink()
            if not spool.exists():
                forget_folder(folder)
