"""Disk blocks of files: taken before they are needed, and given back from within a file."""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path

from ranklog import limits

# Where there is no room for what is asked, less will do, down to this.
ALLOCATED_BYTES_MIN = 128 * limits.KIB
_KEEP_SIZE, _PUNCH_HOLE = 1, 2
_libc = ctypes.CDLL(None, use_errno=True)


def allocated(path: Path, size: int) -> int | None:
    """A new file with its disk blocks (fewer where there is little room), or None."""
    while size >= ALLOCATED_BYTES_MIN:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(fd, 0, size)
            return fd
        except OSError:
            os.close(fd)
            path.unlink()
            size //= 4
    return None


def write_whole(fd: int, data: bytes, at: int) -> None:
    """Write all of it. Raises OSError, also for a disk that takes only a part."""
    written = os.pwrite(fd, data, at)
    if written != len(data):
        rest = os.pwrite(fd, data[written:], at + written)
        if rest != len(data) - written:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def punch_hole(fd: int, at: int, length: int) -> bool:
    """Give disk blocks of a file back; whether the file system can."""
    if length <= 0:
        return True
    done = _libc.fallocate(
        ctypes.c_int(fd),
        ctypes.c_int(_KEEP_SIZE | _PUNCH_HOLE),
        ctypes.c_longlong(at),
        ctypes.c_longlong(length),
    )
    return bool(done == 0)


def disk_bytes(path: Path) -> int:
    """What a file takes on the disk; 0 where there is none."""
    try:
        return path.stat().st_blocks * 512
    except OSError:
        return 0
