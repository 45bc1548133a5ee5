"""A program that prints what it follows: `journalctl --follow`, `dmesg --follow`."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

from ranklog import limits
from ranklog.agent.framer import Framer
from ranklog.agent.host_lines import PRIORITIES, HostLine
from ranklog.agent.kernel_log import add_line
from ranklog.agent.mask import Masker
from ranklog.agent.rows import StreamState

READ_BYTES = 256 * limits.KIB
LINE_BYTES_MAX = 1 * limits.MIB
# A program that ends is started again, not sooner than this.
RESTART_NS = 10 * limits.SECOND_NS
STOP_S = 2.0

# The line, where to go on behind it ("" where it is not known), None for a line to pass over.
ParseOutput = Callable[[bytes], tuple[HostLine, str] | None]


class CommandSource:
    """Lines of a program's standard output. `command` takes where to go on ("": from now)."""

    def __init__(
        self,
        state: StreamState,
        masker: Masker,
        command: Callable[[str], Sequence[str]],
        parse: ParseOutput,
    ) -> None:
        self.state = state
        self.records = 0
        self.offset = 0
        self._masker = masker
        self._command = command
        self._parse = parse
        self._cursor = ""
        self._pending = b""
        self._process: subprocess.Popen[bytes] | None = None
        self._start_at_ns = 0

    def saved(self) -> list[Any]:
        """Where it stands, for the agent's log."""
        return [self._cursor, self.records]

    def restore(self, saved: Sequence[Any]) -> None:
        """Go on behind the last line."""
        self._cursor, self.records = saved[:2]

    def free(self, saved: Sequence[Any], *, upto: int | None = None) -> None:
        """Nothing of ours is kept."""

    def read(self, framer: Framer, now_ns: int, *, final: bool) -> bool:
        """Move some lines to the framer; whether there was any. Starts the program if need be."""
        if self._process is None and not final and now_ns >= self._start_at_ns:
            self._start(now_ns)
        chunk = self._read()
        *lines, self._pending = (self._pending + chunk).split(b"\n")
        if len(self._pending) > LINE_BYTES_MAX:
            framer.drop(self.state, 1, "too long")
            self._pending = b""
        for line in lines:
            found = self._parse(line)
            if found is None:
                continue
            self.records += 1
            self._cursor = found[1]
            add_line(framer, self.state, self._masker, found[0], now_ns)
        return bool(lines)

    def close(self) -> None:
        """End the program; one that does not is killed."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process = None

    def _start(self, now_ns: int) -> None:
        self._start_at_ns = now_ns + RESTART_NS
        with contextlib.suppress(OSError):
            self._process = subprocess.Popen(
                list(self._command(self._cursor)),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            assert self._process.stdout is not None
            os.set_blocking(self._process.stdout.fileno(), False)

    def _read(self) -> bytes:
        if self._process is None or self._process.stdout is None:
            return b""
        try:
            chunk = os.read(self._process.stdout.fileno(), READ_BYTES)
        except BlockingIOError:
            return b""
        if not chunk:  # it has ended
            self.close()
        self.offset += len(chunk)
        return chunk


def journal_command(*choice: str) -> Callable[[str], list[str]]:
    """`journalctl` following what is chosen (`-k`, `-u kubelet`), from now or behind a cursor."""

    def command(cursor: str) -> list[str]:
        begin = [f"--after-cursor={cursor}"] if cursor else ["--lines=0"]
        return ["journalctl", *choice, "--follow", "--output=json", "--no-pager", *begin]

    return command


def parse_journal(line: bytes) -> tuple[HostLine, str] | None:
    """An entry of `journalctl --output=json`."""
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    if not isinstance(entry, dict):
        return None
    message = entry.get("MESSAGE")
    if isinstance(message, list):  # bytes that are no text
        message = bytes(part & 0xFF for part in message if isinstance(part, int))
    text = message if isinstance(message, bytes) else str(message or "").encode("utf-8", "replace")
    priority, micros = str(entry.get("PRIORITY", "")), str(entry.get("__REALTIME_TIMESTAMP", ""))
    level = PRIORITIES[int(priority)] if priority in tuple("01234567") else None
    metadata = {}
    for key, name in (("SYSLOG_IDENTIFIER", "program"), ("_PID", "pid")):
        if isinstance(value := entry.get(key), str):
            metadata[name] = int(value) if value.isdecimal() else value
    ts_ns = int(micros) * 1_000 if micros.isdecimal() else None
    host_line = HostLine(text.replace(b"\n", b" "), ts_ns, level, None, metadata)
    return host_line, str(entry.get("__CURSOR", ""))
