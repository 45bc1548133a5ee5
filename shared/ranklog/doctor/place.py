"""Where lines wait: the spool, the rings' tmpfs, their room, and the limits of the process."""

from __future__ import annotations

import os
import re
import resource
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ranklog.agent.settings import parse_quota
from ranklog.doctor.check import NOTE, NOTHING, OK, PROBLEM, Check, size_text
from ranklog.errors import BadInput
from ranklog.limits import MIB
from ranklog.produce.rings import SHARED_BYTES_MAX, ring_bytes

NETWORK = frozenset(
    "nfs nfs4 cifs smb3 smbfs lustre gpfs beegfs ceph afs 9p wekafs pvfs2 orangefs glusterfs "
    "panfs ocfs2 virtiofs".split()
)
MEMORY = frozenset(["tmpfs", "ramfs"])
_FILES_MIN = 1024
_SHM = Path("/dev/shm")


def file_system_of(path: Path, mounts: str | None = None) -> tuple[str, str]:
    """(kind, type): kind is tmpfs, network, container or local. `mounts`: text of mountinfo."""
    if mounts is None:
        try:
            mounts = Path("/proc/self/mountinfo").read_text()
        except OSError:
            return "local", "unknown"
    best, found = "", "unknown"
    resolved = str(path.resolve())
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split()
        if len(fields) < 5 or not after:
            continue
        point = re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), fields[4])
        inside = resolved == point or resolved.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, found = point, after.split()[0]
    if found in NETWORK or found.startswith("fuse."):
        return "network", found
    if found in MEMORY:
        return "tmpfs", found
    return ("container" if found == "overlay" else "local"), found


def check_spool(folder: Path, environ: Mapping[str, str]) -> list[Check]:
    """Kind of file system, whether it can be written, room against the quota."""
    parent = next(p for p in (folder, *folder.parents) if p.exists())
    if why_not := _why_not_written(parent):
        do = "set RANKLOG_SPOOL to a folder of yours on a local disk"
        return [Check("spool", PROBLEM, f"{folder} can't be written by you: {why_not}", do)]
    if folder.exists() and folder.stat().st_uid != os.getuid():
        do = "set RANKLOG_SPOOL to a folder of your own"
        return [Check("spool", PROBLEM, f"{folder} belongs to another user", do)]
    kind, type_ = file_system_of(parent)
    facts = (("folder", str(folder)), ("file_system", type_), ("kind", kind))
    known = {
        "local": (OK, "a local disk", ""),
        "network": (
            PROBLEM,
            "a network file system: writing waits when the server does, and the agent's lock may "
            "not hold",
            "set RANKLOG_SPOOL to a folder on a local disk or tmpfs",
        ),
        "tmpfs": (
            NOTE,
            "memory: it counts against the job's limit, and ends with the host",
            "set RANKLOG_SPOOL to a local disk to keep what is not sent over a reboot",
        ),
        "container": (
            NOTE,
            "the container's own layer: what is not sent ends with the container",
            "mount an emptyDir or a folder of the host, and set RANKLOG_SPOOL to it",
        ),
    }
    state, what, do = known[kind]
    check = Check("spool", state, f"{folder} on {type_}, {what}", do or NOTHING, facts)
    return [check, _check_room(parent, environ)]


def _why_not_written(folder: Path) -> str:
    """Tried, as permissions alone tell little: not of read-only mounts, of /proc, to root."""
    try:
        with tempfile.TemporaryDirectory(prefix=".ranklog-doctor-", dir=folder):
            return ""
    except OSError as error:
        return error.strerror or str(error)


def _check_room(folder: Path, environ: Mapping[str, str]) -> Check:
    try:
        quota = parse_quota(environ.get("RANKLOG_SPOOL_QUOTA", ""))
    except BadInput as error:
        return Check("room", PROBLEM, error.message, error.hint or "mend RANKLOG_SPOOL_QUOTA")
    status = os.statvfs(folder)
    free = status.f_bavail * status.f_frsize
    facts = (("free_bytes", free), ("quota_bytes", quota))
    says = f"{size_text(free)} free, the spool may take {size_text(quota)}"
    if free < quota // 8:
        do = "free some of it, or set RANKLOG_SPOOL to a larger disk: lines will be dropped"
        return Check("room", PROBLEM, says, do, facts)
    if free < quota:
        do = "set RANKLOG_SPOOL_QUOTA below what is free, or free some"
        return Check("room", NOTE, says, do, facts)
    return Check("room", OK, says, facts=facts)


def check_shm(environ: Mapping[str, str], folder: Path = _SHM) -> Check:
    """Room for the rings of this host's ranks."""
    ranks = int(n) if (n := environ.get("LOCAL_WORLD_SIZE", "")).isdecimal() and n else 8
    needed = min(ranks * ring_bytes(environ), SHARED_BYTES_MAX)
    try:
        status = os.statvfs(folder)
    except OSError:
        do = "mount a tmpfs there; until then a line costs a write to the spool's disk"
        return Check("rings", NOTE, f"no {folder}: rings will be files of the spool", do)
    size, free = status.f_blocks * status.f_frsize, status.f_bavail * status.f_frsize
    facts = (("size_bytes", size), ("free_bytes", free), ("needed_bytes", needed))
    says = (
        f"{folder} has {size_text(free)} of {size_text(size)} free; {ranks} ranks take up to "
        f"{size_text(needed)}"
    )
    if free < ranks * MIB:
        do = "enlarge it (docker --shm-size=1g, an emptyDir of medium Memory); the spool is used till then"
        return Check("rings", NOTE, says, do, facts)
    if free < needed:
        do = "enlarge it (docker --shm-size=1g), or live with smaller rings: bursts may be dropped"
        return Check("rings", NOTE, says, do, facts)
    return Check("rings", OK, says, facts=facts)


def check_limits() -> Check:
    """Limits of the process that make logging fail."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    size, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    facts = (
        ("files", files),
        ("file_bytes", None if size == resource.RLIM_INFINITY else size),
    )
    if size != resource.RLIM_INFINITY:
        return Check(
            "limits",
            PROBLEM,
            f"files may have {size_text(size)} (ulimit -f): a rank that prints more is killed",
            "ulimit -f unlimited",
            facts,
        )
    if 0 <= files < _FILES_MIN:
        says = f"{files} open files (ulimit -n): a few of them are ours in every rank"
        return Check("limits", NOTE, says, f"ulimit -n {_FILES_MIN} or more", facts)
    return Check("limits", OK, f"{files} open files, files of any size", facts=facts)
