"""Files that appear whole, and OSError in our words: what the disk store and the disk stream share."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ranklog.errors import AlreadyExists, BadInput, NotFound, StoreFull, Unavailable

# A concurrent delete may take an emptied folder away between its creation and the link.
_PLACE_ATTEMPTS = 50
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_UNUSABLE = frozenset(
    {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.ENOTSUP, errno.EXDEV}
)


def write_temporary(folder: Path, data: bytes, *, sync: bool) -> str:
    """A new file with the data; nothing is left of it on failure."""
    path = f"{folder}/{os.getpid()}-{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        file = os.open(path, flags, 0o666)
    except FileNotFoundError:
        folder.mkdir(exist_ok=True)
        file = os.open(path, flags, 0o666)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(file, view) :]
        if sync and data:
            os.fsync(file)
    except BaseException:
        os.close(file)
        os.unlink(path)
        raise
    os.close(file)
    return path


def place(temporary: str, target: Path, *, if_absent: bool, sync: bool) -> None:
    """Give a written file its name. Raises FileExistsError if `if_absent` and it is taken."""
    for _ in range(_PLACE_ATTEMPTS):
        try:
            if if_absent:
                os.link(temporary, target)
            else:
                os.replace(temporary, target)
            return
        except FileNotFoundError:
            _make_folders(target.parent, sync=sync)
    raise Unavailable(f"the folder {target.parent} vanishes each time it is made")


def _make_folders(folder: Path, *, sync: bool) -> None:
    """Best effort: a concurrent delete may take any of them away again, and `place` comes back."""
    try:
        folder.mkdir()
    except FileExistsError:
        return
    except FileNotFoundError:
        _make_folders(folder.parent, sync=sync)
        with suppress(FileNotFoundError, FileExistsError):
            folder.mkdir()
    if sync:
        with suppress(FileNotFoundError):
            sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


@contextmanager
def translated(what: str) -> Iterator[None]:
    """OSError in our words. `what`: a key or a path."""
    try:
        yield
    except FileExistsError as error:
        raise AlreadyExists(f"the object {what} is there already") from error
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        raise NotFound(f"no object {what}") from error
    except OSError as error:
        if error.errno in _FULL:
            raise StoreFull(
                f"can't write {what}: {error.strerror}", hint="free space, then repeat the command"
            ) from error
        if error.errno in _UNUSABLE:
            raise BadInput(
                f"can't use {what}: {error.strerror}",
                hint="the store's folder must be readable, to write also writable, "
                "on a file system with hard links",
            ) from error
        raise Unavailable(f"{what}: {error}", hint="check the disk") from error
