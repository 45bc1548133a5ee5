"""Logs of the host are streams of the run that is on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ranklog.agent.collector import Collector, Options
from ranklog.agent.framer import Framer
from ranklog.agent.host import HostStreams
from ranklog.agent.host_logs import HostLog, Missing
from ranklog.agent.mask import Masker
from ranklog.agent.rows import Row, StreamState
from ranklog.produce import spool
from ranklog.produce.identity import Identity
from ranklog.produce.spool import ProcessFiles
from ranklog.stream.disk import DiskStream
from tests.agent.reading import lines_in, streams_in

IDENTITY = Identity("default", "demo", "l1", 0, "n0", 3, 3, 8)
KERNEL: list[bytes] = []


class Lines:
    """A source of the kernel's lines: those of KERNEL."""

    def __init__(self, state: StreamState) -> None:
        self.state = state
        self.records = 0

    def saved(self) -> list[Any]:
        return [self.records]

    def restore(self, saved: Sequence[Any]) -> None:
        self.records = saved[0]

    def free(self, saved: Sequence[Any], *, upto: int | None = None) -> None: ...

    def read(self, framer: Framer, now_ns: int, *, final: bool) -> bool:
        if self.records == len(KERNEL):
            return False
        framer.add(self.state, Row(now_ns, [KERNEL[self.records]]))
        self.records += 1
        return True

    def close(self) -> None: ...


def host() -> HostStreams:
    def opener(logs: Any, state_of: Any, *rest: Any) -> tuple[list[Any], list[Missing]]:
        return [Lines(state_of("kernel"))], [Missing("nccl", "no file")]

    return HostStreams([HostLog("kernel")], Masker(), {}, opener)


def announce(folder: Path, name: str, identity: Identity) -> None:
    spool.make_spool(folder)
    (folder / f"{name}.stdout").write_bytes(b"x\n")
    spool.announce(
        folder, ProcessFiles(identity, name, 2**22 - 1, "1", {"stdout": f"{name}.stdout"})
    )


def collector(tmp_path: Path) -> Collector:
    stream = DiskStream(tmp_path / "stream", sync=False)
    return Collector(tmp_path / "spool", stream, Options(host=host()))


def test_the_kernels_lines_are_of_the_run_that_came_last_and_are_read_once(tmp_path: Path) -> None:
    KERNEL[:] = [b"before anybody"]
    one = collector(tmp_path)
    one.poll(hurry=True)
    assert lines_in(tmp_path / "stream") == []

    announce(tmp_path / "spool", "a", IDENTITY)
    one.poll(hurry=True)
    KERNEL.append(b"Xid 79")
    one.poll(hurry=True)
    one.close()
    two = collector(tmp_path)  # the agent was killed
    announce(tmp_path / "spool", "b", replace(IDENTITY, launch="l2"))
    KERNEL.append(b"link down")
    two.poll(hurry=True)
    assert two.host_logs == {"kernel": "3 lines", "nccl": "no file"}
    two.finish(5.0)

    found = [line for line in lines_in(tmp_path / "stream") if line.channel == "kernel"]
    assert [line.text for line in found] == ["before anybody", "Xid 79", "link down"]
    assert [line.seq for line in found] == [0, 1, 0]
    named = [e for e in streams_in(tmp_path / "stream") if e.stream.channel == "kernel"]
    assert {(e.stream.launch, e.stream.rank, e.stream.certified) for e in named} == {
        ("l1", None, "agent"),
        ("l2", None, "agent"),
    }
    assert [e.end.end_seq for e in named if e.end] == [2, 1]
