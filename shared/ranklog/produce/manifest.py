"""What a run says of itself: the first piece when it starts, a second one from a helper process.

    at once, by every rank     identity, command, groups; by one rank a host also configuration,
                               datasets, environment, owner, tags, versions of what is imported
    helper, one a host         git, packages, libraries, drivers, devices, container, files' hashes

A piece is a MANIFEST record of the process's defs file. The helper ends when it has written its
piece; it works at a low priority, and nothing in the training process waits for it but `close`.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranklog.errors import TooLarge
from ranklog.model.manifest import encode_piece
from ranklog.produce import detached, trouble
from ranklog.produce.identity import Identity
from ranklog.produce.journal import append, encode_record
from ranklog.produce.plain import plain
from ranklog.produce.records import MANIFEST
from ranklog.produce.secrets import kept_environment, mask_command
from ranklog.produce.spool import open_append

VERSION = 1
# In this order members of a piece that is too long are left out; it says which.
_LEFT_OUT_FIRST = ("packages", "environment", "files", "config", "datasets", "command", "tags")
_OWNERS = ("RANKLOG_OWNER", "SLURM_JOB_USER", "KUBEFLOW_USER", "USER", "LOGNAME")


@dataclass(frozen=True, slots=True)
class Given:
    """What the job was told to say. `groups`: dimension -> this rank's place, or (place, size)."""

    config: Any = None
    files: Sequence[str] = ()
    datasets: Any = None
    groups: Mapping[str, Any] | None = None
    owner: str | None = None
    tags: Any = None


class Capture:
    """The helper at work. `wait` is for the end of the process: what it has not told by then is lost."""

    def __init__(self, done_fd: int = -1) -> None:
        self._done_fd = done_fd

    def wait(self, timeout_s: float) -> None:
        """Until the helper has ended, or the time-out."""
        if self._done_fd >= 0:
            select.select([self._done_fd], [], [], max(0.0, timeout_s))
            os.close(self._done_fd)
            self._done_fd = -1


def write(
    defs: Path,
    identity: Identity,
    given: Given,
    *,
    command: Sequence[str] | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Capture:
    """Append the first piece to a defs file (made if it is not there), and start the helper.

    `command`: the words of a program that a launcher starts; without them it is this process's own.
    Never raises; `RANKLOG_MANIFEST=0` makes it nothing.
    """
    if environ.get("RANKLOG_MANIFEST") == "0":
        return Capture()
    try:
        leads = identity.local_rank in (None, 0)
        words = list(sys.orig_argv if command is None else command)
        config_files = list(filter(None, environ.get("RANKLOG_CONFIG", "").split(os.pathsep)))
        piece = first_piece(identity, given, words, environ, whole=leads)
        append_piece(defs, piece)
        if not leads or not sys.executable:
            return Capture()
        return _start_helper(
            defs,
            {
                "cwd": os.getcwd(),
                "paths": [path or os.getcwd() for path in sys.path] if command is None else [],
                "config_files": config_files,
                "files": [*_script(command), *map(str, given.files)],
                "config": given.config is None,
            },
        )
    except Exception:
        trouble.swallow("describing the run; its manifest may lack something")
        return Capture()


def first_piece(
    identity: Identity,
    given: Given,
    words: Sequence[str],
    environ: Mapping[str, str],
    *,
    whole: bool,
) -> dict[str, Any]:
    """What is known at once; `whole`: also what is the same for all ranks of a host."""
    piece: dict[str, Any] = {
        "version": VERSION,
        "rank": identity.rank,
        "local_rank": identity.local_rank,
        "world_size": identity.world_size,
        "host": identity.host,
        "groups": _told("groups", lambda: _groups(given.groups)),
        "pid": os.getpid(),
        "started_ns": time.time_ns(),
    }
    if whole:
        piece |= {
            "command": mask_command(words),
            "cwd": os.getcwd(),
            "python": sys.version.split()[0],
            "owner": given.owner or next((environ[n] for n in _OWNERS if environ.get(n)), None),
            "tags": _told("tags", lambda: _tags(given.tags, environ.get("RANKLOG_TAGS", ""))),
            "datasets": _told("datasets", lambda: _datasets(given.datasets)),
            "environment": kept_environment(environ),
            "imported": _imported(),
        }
        if given.config is not None:
            piece["config"] = _told("config", lambda: plain(given.config))
    return {key: value for key, value in piece.items() if value not in (None, {}, [])}


def _told(name: str, value: Callable[[], Any]) -> Any:
    """What the job was told to say of one thing, or None: nonsense there costs nothing else."""
    try:
        return value()
    except Exception:
        trouble.swallow(f"reading {name}=; the run's manifest lacks it")
        return None


def append_piece(defs: Path, piece: dict[str, Any]) -> None:
    """One record more in the file; what is too long for one is left out, and named."""
    data = _fitting(piece)
    fd = open_append(defs)
    try:
        append(fd, encode_record([MANIFEST, data]))
    finally:
        os.close(fd)


def _fitting(piece: dict[str, Any]) -> bytes:
    left_out: list[str] = []
    for name in _LEFT_OUT_FIRST:
        with contextlib.suppress(TooLarge):
            return encode_piece(piece | {"left_out": left_out} if left_out else piece)
        if piece.get(name):
            left_out.append(name)
            piece = {key: value for key, value in piece.items() if key != name}
    return encode_piece(piece | {"left_out": left_out})


def _start_helper(defs: Path, order: dict[str, Any]) -> Capture:
    done, theirs = os.pipe()
    try:
        command = detached.python_command(
            "ranklog.produce.describe", str(defs), json.dumps(order), str(theirs)
        )
        detached.start(command, keep=(theirs,))
    except OSError:
        os.close(done)
        raise
    finally:
        os.close(theirs)
    return Capture(done)


def _script(command: Sequence[str] | None) -> list[str]:
    """The program's own file, where there is one."""
    words = sys.argv[:1] if command is None else command
    return [word for word in words if word.endswith((".py", ".sh")) and os.path.isfile(word)][:1]


def _groups(groups: Mapping[str, Any] | None) -> dict[str, list[int | None]]:
    """Dimension -> [place, size or None]; what is neither is left out, and told once."""
    placed: dict[str, list[int | None]] = {}
    for name, value in (groups or {}).items():
        pair = tuple(value) if isinstance(value, (tuple, list)) else (value, None)
        try:
            place, size = (None if item is None else int(item) for item in pair)
        except (TypeError, ValueError, OverflowError):
            shown = f"{name}={value!r}"[:100]
            trouble.once(
                "groups", f"{shown} left out: a group is this rank's place, or (place, size)"
            )
            continue
        if place is not None:
            placed[str(name)] = [place, size]
    return placed


def _tags(tags: Any, variable: str) -> dict[str, Any]:
    """{"a": 1}, ["a"] or "a=1,b": tags without a value have the value ""."""
    if isinstance(tags, Mapping):
        found = {str(key): plain(value) for key, value in tags.items()}
    else:
        found = dict(
            str(tag).partition("=")[::2]
            for tag in ([tags] if isinstance(tags, str) else tags or ())
        )
    pairs = (part.strip().partition("=") for part in variable.split(",") if part.strip())
    return {name: value for name, _, value in pairs} | found


def _datasets(datasets: Any) -> dict[str, Any]:
    """Name -> version, or what else is said of it; a list of names has no versions."""
    if isinstance(datasets, Mapping):
        return {str(name): plain(said) for name, said in datasets.items()}
    names = [datasets] if isinstance(datasets, str) else datasets or ()
    return {str(name): "" for name in names}


def _imported() -> dict[str, str]:
    """Versions of libraries that the job has imported already; imports nothing."""
    versions: dict[str, str] = {}
    for name in ("torch", "numpy", "jax", "transformers", "lightning", "deepspeed", "accelerate"):
        version = getattr(sys.modules.get(name), "__version__", None)
        if isinstance(version, str):
            versions[name] = version
    built = sys.modules.get("torch.version")
    for name in ("cuda", "hip"):
        if value := getattr(built, name, None):
            versions[name] = str(value)
    nccl = sys.modules.get("torch.cuda.nccl")
    if nccl is not None:
        with contextlib.suppress(Exception):  # a torch without NCCL
            versions["nccl"] = ".".join(map(str, nccl.version()))
    return versions
