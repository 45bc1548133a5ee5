"""Logs of the host itself, as streams of the host: kernel, NCCL, Slurm, kubelet.

A word chooses one: `kernel`, `nccl`, `slurm`, `kubelet`, each with `=` and where it is, if that is not
the usual place: a file, a pattern (`*`, or NCCL's %h and %p), or `journal` for systemd's. `auto` is all
that is here. What can't be read is no error: it is named, with what would help.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ranklog.agent.followed_command import CommandSource, journal_command, parse_journal
from ranklog.agent.followed_files import FilesSource
from ranklog.agent.framer import Framer
from ranklog.agent.host_lines import (
    ParseLine,
    parse_klog,
    parse_nccl,
    parse_raw_kernel,
    parse_slurm,
)
from ranklog.agent.kernel_log import BEFORE_NS, KMSG, KernelSource, boot_ns
from ranklog.agent.mask import Masker
from ranklog.agent.rows import StreamState
from ranklog.errors import BadInput
from ranklog.model.stream import Stream

CHANNELS = ("kernel", "nccl", "slurm", "kubelet")
AUTO = "auto"
JOURNAL = "journal"
_SLURM_LOGS = ("/var/log/slurm/slurmd.log", "/var/log/slurmd.log", "/var/log/slurm-llnl/slurmd.log")
_KUBELET_LOGS = ("/var/log/kubelet.log", "/var/log/kubernetes/kubelet.log")
_UNITS = {"slurm": "slurmd", "kubelet": "kubelet"}
_PARSERS: dict[str, ParseLine] = {"slurm": parse_slurm, "kubelet": parse_klog, "nccl": parse_nccl}

OpenState = Callable[[str], StreamState]


class HostSource(Protocol):
    """As the agent's other sources."""

    state: StreamState
    records: int

    def saved(self) -> list[Any]: ...

    def restore(self, saved: Sequence[Any]) -> None: ...

    def free(self, saved: Sequence[Any], *, upto: int | None = None) -> None: ...

    def read(self, framer: Framer, now_ns: int, *, final: bool) -> bool: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class HostLog:
    """One log to follow. `place`: a file, a pattern, `journal`, or "" for the usual place."""

    channel: str
    place: str = ""


@dataclass(frozen=True, slots=True)
class Missing:
    """A log that is not followed, and what would help."""

    channel: str
    reason: str


def parse_host_logs(words: Sequence[str]) -> list[HostLog]:
    """`kernel`, `slurm=/var/log/slurmd.log`, `auto`; each channel once. Raises BadInput."""
    chosen: dict[str, HostLog] = {}
    for word in ",".join(words).split(","):
        channel, _, place = word.strip().partition("=")
        if channel == AUTO:
            for name in CHANNELS:
                chosen.setdefault(name, HostLog(name))
        elif channel in CHANNELS:
            chosen[channel] = HostLog(channel, place)
        elif channel:
            raise BadInput(f"no host log {channel!r}", hint=f"{', '.join(CHANNELS)} or {AUTO}")
    return list(chosen.values())


def open_host_logs(
    logs: Sequence[HostLog],
    state_of: OpenState,
    masker: Masker,
    environ: Mapping[str, str],
    now_ns: int,
    root: Path = Path("/"),
) -> tuple[list[HostSource], list[Missing]]:
    """Sources by channel, and the logs that can't be followed. `state_of` opens a channel's stream."""
    sources: list[HostSource] = []
    missing: list[Missing] = []
    for log in logs:
        opener = _open_kernel if log.channel == "kernel" else _open_files
        found = opener(log, state_of, masker, environ, now_ns, root)
        if isinstance(found, Missing):
            missing.append(found)
        else:
            sources.append(found)
    return sources, missing


def find_host_logs(
    environ: Mapping[str, str], root: Path = Path("/")
) -> tuple[list[str], list[Missing]]:
    """Channels that could be followed here, and what would help for the others."""

    def state_of(channel: str) -> StreamState:
        return StreamState(Stream("", "", "", 0, None, None, None, channel, ""))

    logs = parse_host_logs([AUTO])
    sources, missing = open_host_logs(logs, state_of, Masker(), environ, 0, root)
    for source in sources:
        source.close()
    return [source.state.stream.channel for source in sources], missing


def _open_kernel(
    log: HostLog,
    state_of: OpenState,
    masker: Masker,
    environ: Mapping[str, str],
    now_ns: int,
    root: Path,
) -> HostSource | Missing:
    """/dev/kmsg, else what may read it for us."""
    path = Path(log.place) if log.place not in ("", JOURNAL) else root / KMSG.relative_to("/")
    if log.place != JOURNAL:
        try:
            os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
        except OSError as error:
            reason = os.strerror(error.errno or 0).lower()
        else:
            state = state_of("kernel")
            return KernelSource(state, masker, path=path, since_ns=now_ns - BEFORE_NS)
        if log.place:
            return Missing("kernel", f"{path}: {reason}")
    if _journal_is_readable(root):
        return CommandSource(state_of("kernel"), masker, journal_command("-k"), parse_journal)
    if log.place != JOURNAL and shutil.which("dmesg") and os.geteuid() == 0:
        start = boot_ns()
        command = ["dmesg", "--raw", "--follow-new"]
        return CommandSource(
            state_of("kernel"),
            masker,
            lambda cursor: command,
            lambda line: (parse_raw_kernel(line, start), "") if line else None,
        )
    return Missing(
        "kernel",
        f"{path} can't be read; run the agent with CAP_SYSLOG, as a member of the group "
        "systemd-journal, or set kernel.dmesg_restrict=0",
    )


def _open_files(
    log: HostLog,
    state_of: OpenState,
    masker: Masker,
    environ: Mapping[str, str],
    now_ns: int,
    root: Path,
) -> HostSource | Missing:
    patterns = _patterns(log, environ, root)
    if patterns:
        return FilesSource(
            state_of(log.channel),
            masker,
            patterns,
            _PARSERS[log.channel],
            whole=log.channel == "nccl",
            since_ns=now_ns - BEFORE_NS,
        )
    if log.channel == "nccl":
        return Missing(
            "nccl", "set NCCL_DEBUG=INFO and NCCL_DEBUG_FILE=/tmp/nccl.%h.%p for the job"
        )
    unit = _UNITS[log.channel]
    if log.place == JOURNAL or (_has_unit(unit, root) and _journal_is_readable(root)):
        command = journal_command("-u", unit)
        return CommandSource(state_of(log.channel), masker, command, parse_journal)
    return Missing(log.channel, f"no log of {unit} here; name it: {log.channel}=/path/of/the.log")


def _patterns(log: HostLog, environ: Mapping[str, str], root: Path) -> list[str]:
    """Patterns for glob; [] where nothing is known to be there."""
    if log.place == JOURNAL:
        return []
    if log.channel == "nccl":
        named = log.place or environ.get("NCCL_DEBUG_FILE", "")
        return [nccl_pattern(named)] if named and not named.startswith("/dev/") else []
    if log.place:
        return [log.place]
    usual = _SLURM_LOGS if log.channel == "slurm" else _KUBELET_LOGS
    places = [str(root / name.lstrip("/")) for name in usual]
    return [place for place in places if os.access(place, os.R_OK)][:1]


def nccl_pattern(named: str) -> str:
    """NCCL's own pattern as one for glob: %h is this host, %p any process."""
    host = socket.gethostname()
    known = {"%h": f"{host.partition('.')[0]}*", "%p": "*", "%%": "%"}
    return re.sub(r"%[hp%]", lambda found: known[found[0]], named)


def _has_unit(unit: str, root: Path) -> bool:
    folders = ("etc/systemd/system", "usr/lib/systemd/system", "lib/systemd/system")
    return any((root / folder / f"{unit}.service").exists() for folder in folders)


def _journal_is_readable(root: Path) -> bool:
    """Whether systemd keeps a journal here that we may read, and journalctl is there to do it."""
    folders = [root / name for name in ("run/log/journal", "var/log/journal")]
    return shutil.which("journalctl") is not None and any(
        os.access(entry, os.R_OK | os.X_OK)
        for folder in folders
        if os.access(folder, os.R_OK)
        for entry in folder.iterdir()
    )
