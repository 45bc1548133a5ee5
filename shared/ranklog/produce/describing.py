"""What a process says of its run while it logs: its manifest, and the files it attaches."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from ranklog.model.levels import INFO, WARNING
from ranklog.produce import spool, trouble
from ranklog.produce.attach import Lookout, reference, wrong_with
from ranklog.produce.context import STREAM_RANK, current, current_iteration
from ranklog.produce.manifest import VERSION, Capture, append_piece, write
from ranklog.produce.manifest import Given as Given
from ranklog.produce.producer import Producer
from ranklog.produce.values import cut

# Of the time that the end has, so much may go to what is not told yet.
WAIT_S_MAX = 2.0


class Description:
    """Of the process of one producer; in a forked child, only of what that one attaches."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._capture = Capture()
        self._pid = os.getpid()
        self._lookout = Lookout(self._tell, self._warn)
        self._lookout_pid = self._pid

    def begin(self, given: Given) -> None:
        """The manifest's first piece, and a helper for the rest; a worker's rank said it all."""
        defs = self._defs()
        if defs is not None and self._producer.process.identity.role is None:
            self._capture = write(defs, self._producer.process.identity, given)

    def attach(self, path: str | os.PathLike[str], kind: str | None) -> None:
        """A line that names it now; the reference follows when the file was looked at, or a warning."""
        if wrong := wrong_with(path):
            self._warn({"path": repr(os.fspath(path)), "kind": kind or "file", "error": wrong})
            return
        found = reference(path, kind)
        overlay = current()
        own = self._producer.process.identity.rank
        found["rank"] = own if overlay.rank == STREAM_RANK else overlay.rank
        found["iteration"] = current_iteration()
        self._say(INFO, f"attaching {found['path']} ({found['kind']})", found)
        if self._lookout_pid != os.getpid():
            self._lookout.forked()
            self._lookout_pid = os.getpid()
        self._lookout.add(found)

    def finish(self, timeout_s: float) -> None:
        """What is being found out is told, or the time is up."""
        ends = time.monotonic() + min(timeout_s, WAIT_S_MAX)
        if self._lookout_pid == os.getpid():
            self._lookout.wait(ends - time.monotonic())
        if self._pid == os.getpid():
            self._capture.wait(ends - time.monotonic())

    def _say(self, level: int, text: str, found: dict[str, Any]) -> None:
        site = self._producer.site_number("ranklog/attach", 0, None, None)
        metadata = {"attachment": cut(found["path"]), "attachment_kind": cut(found["kind"])}
        self._producer.emit(level, site, text, metadata)

    def _warn(self, found: dict[str, Any]) -> None:
        """It is not there, or nobody may read it: said where the others are, and on stderr once."""
        text = f"not attached: {found['path']}: {found['error']}"
        self._say(WARNING, text, found)
        trouble.once("attach", text)

    def _tell(self, found: dict[str, Any]) -> None:
        defs = self._defs()
        if defs is not None:
            append_piece(defs, {"version": VERSION, "attachments": [found]})

    def _defs(self) -> Path | None:
        name = self._producer.process.files.get(spool.DEFS)
        return None if name is None else self._producer.folder / name
