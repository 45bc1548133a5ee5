"""A host's own logs become streams of the host: each line once, wherever the agent begins anew."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import pytest

from ranklog.agent.followed_command import CommandSource, parse_journal
from ranklog.agent.followed_files import FilesSource
from ranklog.agent.host_lines import HostLine, parse_nccl, parse_slurm
from ranklog.agent.host_logs import (
    HostLog,
    HostSource,
    Missing,
    nccl_pattern,
    open_host_logs,
    parse_host_logs,
)
from ranklog.agent.kernel_log import KMSG, KernelSource
from ranklog.agent.mask import Masker
from ranklog.agent.rows import Row, StreamState
from ranklog.errors import BadInput
from ranklog.model.levels import ERROR, INFO, WARNING
from ranklog.model.stream import Stream

SECOND = 1_000_000_000
WAIT_S = 20.0


def state_of(channel: str) -> StreamState:
    return StreamState(Stream("acme", "host", "boot", 0, "n0", None, None, channel, "ab"))


class Rows:
    """A framer that keeps what it is given."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.drops: list[tuple[int, str]] = []

    def add(self, state: StreamState, row: Row) -> int:
        self.rows.append(row)
        return len(self.rows) - 1

    def drop(self, state: StreamState, lines: int, reason: str) -> None:
        self.drops.append((lines, reason))

    @property
    def texts(self) -> list[str]:
        return [row.texts[0].decode() for row in self.rows]


def read(source: HostSource, rows: Rows, *, at_s: float = 0.0, final: bool = False) -> None:
    now_ns = time.time_ns() + int(at_s * SECOND)
    while source.read(rows, now_ns, final=final):  # type: ignore[arg-type]
        pass


def kept(saved: list[Any]) -> list[Any]:
    """What the agent's log makes of it."""
    found: list[Any] = msgpack.unpackb(msgpack.packb(saved))
    return found


# --- kernel ---------------------------------------------------------------------------------------
def records(*numbers: int) -> str:
    return "".join(f"4,{n},{n}000000,-;message {n}\n SUBSYSTEM=pci\n" for n in numbers)


@pytest.fixture
def kmsg(tmp_path: Path) -> Path:
    path = tmp_path / "kmsg"
    path.write_text(records(1, 2, 3))
    return path


def test_the_kernels_records_are_lines_with_level_and_time(kmsg: Path) -> None:
    rows = Rows()
    source = KernelSource(state_of("kernel"), Masker(), path=kmsg)
    read(source, rows)
    source.close()

    assert rows.texts == ["message 1", "message 2", "message 3"]
    assert {row.level for row in rows.rows} == {WARNING}
    assert rows.rows[0].metadata == {"subsystem": "pci"}
    assert rows.rows[2].ts_ns - rows.rows[0].ts_ns == 2 * SECOND


def test_an_agent_that_begins_anew_goes_on_behind_the_last_record(kmsg: Path) -> None:
    first, second = Rows(), Rows()
    source = KernelSource(state_of("kernel"), Masker(), path=kmsg)
    read(source, first)
    saved = kept(source.saved())
    source.close()
    kmsg.write_text(records(2, 3, 4))
    source = KernelSource(state_of("kernel"), Masker(), path=kmsg)
    source.restore(saved)
    read(source, second)
    source.close()

    assert second.texts == ["message 4"]
    assert second.drops == []


def test_records_that_the_kernel_overwrote_are_counted(kmsg: Path) -> None:
    rows = Rows()
    source = KernelSource(state_of("kernel"), Masker(), path=kmsg)
    read(source, rows)
    with kmsg.open("a") as file:
        file.write(records(8))
    read(source, rows)
    source.close()

    assert rows.drops == [(4, "overwritten in the kernel's log")]
    assert rows.texts[-1] == "message 8"


def test_a_saved_place_of_another_boot_means_nothing(kmsg: Path) -> None:
    rows = Rows()
    source = KernelSource(state_of("kernel"), Masker(), path=kmsg)
    source.restore(["another boot", 99, 5])
    read(source, rows)
    source.close()

    assert len(rows.texts) == 3


def test_old_records_are_passed_over_at_first(kmsg: Path) -> None:
    rows = Rows()
    boot = time.time_ns() - time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    since = boot + 2 * SECOND - SECOND // 2
    source = KernelSource(state_of("kernel"), Masker(), path=kmsg, since_ns=since)
    read(source, rows)
    source.close()

    assert rows.texts == ["message 2", "message 3"]


def test_the_real_kernel_can_be_read() -> None:
    if not os.access(KMSG, os.R_OK):
        pytest.skip("the kernel's log is not for us to read")
    rows = Rows()
    try:
        source = KernelSource(state_of("kernel"), Masker())
    except OSError:
        pytest.skip("the kernel's log is not for us to read")
    read(source, rows)
    source.close()

    assert rows.rows
    assert all(row.ts_ns <= time.time_ns() and row.level for row in rows.rows)


# --- files ----------------------------------------------------------------------------------------
def follow(pattern: Path, **options: Any) -> FilesSource:
    return FilesSource(state_of("slurm"), Masker(), [str(pattern)], parse_slurm, **options)


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_a_log_is_followed_from_its_end(tmp_path: Path) -> None:
    log = tmp_path / "slurmd.log"
    append(log, "[2026-03-01T07:00:00.000] error: long ago\n")
    rows, source = Rows(), follow(log)
    read(source, rows)
    append(log, "[2026-03-01T07:00:00.000] error: now\nhalf")
    read(source, rows)
    append(log, " a line\n")
    read(source, rows)
    source.close()

    assert rows.texts == ["[2026-03-01T07:00:00.000] error: now", "half a line"]
    assert [row.level for row in rows.rows] == [ERROR, None]
    assert rows.rows[0].metadata == {"file": "slurmd.log"}


def test_a_rotated_log_is_read_to_its_end_and_the_new_one_from_its_start(tmp_path: Path) -> None:
    log = tmp_path / "slurmd.log"
    log.touch()
    rows, source = Rows(), follow(log)
    read(source, rows)
    append(log, "last of the old\n")
    log.rename(tmp_path / "slurmd.log.1")
    append(log, "first of the new\n")
    read(source, rows, at_s=2)
    source.close()

    assert rows.texts == ["last of the old", "first of the new"]


def test_a_truncated_log_is_read_from_its_start(tmp_path: Path) -> None:
    log = tmp_path / "slurmd.log"
    append(log, "x" * 100 + "\n")
    rows, source = Rows(), follow(log)
    read(source, rows)
    log.write_text("fresh\n")
    read(source, rows)
    source.close()

    assert rows.texts == ["fresh"]


def test_files_of_a_pattern_that_come_later_are_read_whole(tmp_path: Path) -> None:
    rows, source = Rows(), follow(tmp_path / "nccl.*")
    read(source, rows)
    append(tmp_path / "nccl.12", "a\n")
    append(tmp_path / "nccl.13", "b\n")
    append(tmp_path / "other", "c\n")
    read(source, rows, at_s=2)
    source.close()

    assert sorted(rows.texts) == ["a", "b"]


def test_recent_files_are_read_whole_where_that_is_asked(tmp_path: Path) -> None:
    for name, age_s in (("nccl.1", 3600), ("nccl.2", 5)):
        append(tmp_path / name, f"{name}\n")
        changed = time.time() - age_s
        os.utime(tmp_path / name, (changed, changed))
    since = time.time_ns() - 600 * SECOND
    rows, source = Rows(), follow(tmp_path / "nccl.*", whole=True, since_ns=since)
    read(source, rows)
    source.close()

    assert rows.texts == ["nccl.2"]


def test_an_agent_that_begins_anew_goes_on_in_every_file(tmp_path: Path) -> None:
    log = tmp_path / "slurmd.log"
    log.touch()
    rows, source = Rows(), follow(log)
    read(source, rows)
    append(log, "one\ntw")
    read(source, rows)
    saved = kept(source.saved())
    source.close()
    append(log, "o\nthree\n")
    source = follow(log)
    source.restore(saved)
    read(source, rows)
    source.close()

    assert rows.texts == ["one", "two", "three"]


def test_a_time_to_come_does_not_hold_up_later_lines(tmp_path: Path) -> None:
    log = tmp_path / "slurmd.log"
    log.touch()
    rows, source = Rows(), follow(log)
    read(source, rows)
    append(log, "[2099-01-01T00:00:00.000] error: wild\n")
    read(source, rows)
    source.close()

    assert rows.rows[0].ts_ns <= time.time_ns()


def test_secrets_are_masked(tmp_path: Path) -> None:
    log = tmp_path / "slurmd.log"
    log.touch()
    rows, source = Rows(), follow(log)
    read(source, rows)
    append(log, "launch with api_key=abcdef0123456789\n")
    read(source, rows)
    source.close()

    assert "abcdef0123456789" not in rows.texts[0]
    assert source.state.masked == 1


def test_what_no_line_feed_ended_is_a_line_at_the_end(tmp_path: Path) -> None:
    log = tmp_path / "slurmd.log"
    log.touch()
    rows, source = Rows(), follow(log)
    read(source, rows)
    append(log, "cut off")
    read(source, rows)
    assert rows.texts == []
    read(source, rows, final=True)
    source.close()

    assert rows.texts == ["cut off"]


# --- programs -------------------------------------------------------------------------------------
def lines_of(program: str) -> Callable[[str], list[str]]:
    return lambda cursor: [sys.executable, "-u", "-c", program, cursor]


def parsed(line: bytes) -> tuple[HostLine, str]:
    return HostLine(line), line.decode()


def until(source: HostSource, rows: Rows, done: Callable[[], bool]) -> None:
    ends = time.monotonic() + WAIT_S
    while not done():
        assert time.monotonic() < ends, rows.texts
        read(source, rows)
        time.sleep(0.01)


def test_what_a_program_prints_is_followed_and_it_ends_with_the_source() -> None:
    program = "import time; print('one'); print('two'); time.sleep(600)"
    rows = Rows()
    source = CommandSource(state_of("kernel"), Masker(), lines_of(program), parsed)
    until(source, rows, lambda: len(rows.rows) == 2)
    assert source._process is not None
    pid = source._process.pid
    source.close()

    assert rows.texts == ["one", "two"]
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_program_begins_where_an_agent_before_stopped() -> None:
    rows = Rows()
    program = "import sys; print('after ' + sys.argv[1])"
    source = CommandSource(state_of("kernel"), Masker(), lines_of(program), parsed)
    source.restore(kept(["here", 3]))
    until(source, rows, lambda: bool(rows.rows))
    source.close()

    assert rows.texts == ["after here"]
    assert source.saved() == ["after here", 4]


def test_a_program_that_is_not_there_is_no_error() -> None:
    source = CommandSource(state_of("kernel"), Masker(), lambda cursor: ["/no/such"], parsed)

    assert source.read(Rows(), time.time_ns(), final=False) is False  # type: ignore[arg-type]
    source.close()


@pytest.mark.parametrize(
    ("entry", "line"),
    [
        (
            b'{"MESSAGE":"hi","PRIORITY":"3","__REALTIME_TIMESTAMP":"5","__CURSOR":"c","_PID":"7"}',
            (HostLine(b"hi", 5_000, ERROR, None, {"pid": 7}), "c"),
        ),
        (b'{"MESSAGE":[104,105],"PRIORITY":"6"}', (HostLine(b"hi", None, INFO), "")),
        (b'{"MESSAGE":null}', (HostLine(b"", None, None), "")),
        (b"{}", (HostLine(b""), "")),
        (b"[]", None),
        (b"oops", None),
    ],
)
def test_entries_of_the_journal(entry: bytes, line: tuple[HostLine, str] | None) -> None:
    assert parse_journal(entry) == line


# --- choosing -------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("words", "logs"),
    [
        (["kernel"], [HostLog("kernel")]),
        (["kernel,slurm=/a.log"], [HostLog("kernel"), HostLog("slurm", "/a.log")]),
        (["nccl=/tmp/nccl.%h.%p"], [HostLog("nccl", "/tmp/nccl.%h.%p")]),
        (["auto", "slurm=/a"], [HostLog(c) for c in ("kernel", "nccl")] + [HostLog("slurm", "/a"), HostLog("kubelet")]),
        ([""], []),
    ],
)  # fmt: skip
def test_words_choose_logs(words: list[str], logs: list[HostLog]) -> None:
    assert parse_host_logs(words) == logs


def test_another_word_is_refused() -> None:
    with pytest.raises(BadInput, match="no host log 'kernal'"):
        parse_host_logs(["kernal"])


def opened(
    tmp_path: Path, words: list[str], environ: dict[str, str] | None = None
) -> tuple[list[HostSource], list[Missing]]:
    now_ns = time.time_ns()
    return open_host_logs(
        parse_host_logs(words), state_of, Masker(), environ or {}, now_ns, tmp_path
    )


def test_what_is_here_is_followed_and_what_is_not_says_what_would_help(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "kmsg").write_text(records(1))
    (tmp_path / "var/log").mkdir(parents=True)
    (tmp_path / "var/log/slurmd.log").touch()
    sources, missing = opened(tmp_path, ["auto"])
    for source in sources:
        source.close()

    assert [source.state.stream.channel for source in sources] == ["kernel", "slurm"]
    assert [item.channel for item in missing] == ["nccl", "kubelet"]
    assert "NCCL_DEBUG_FILE" in missing[0].reason


def test_ncc_files_are_found_by_nccls_own_variable(tmp_path: Path) -> None:
    [source], _ = opened(tmp_path, ["nccl"], {"NCCL_DEBUG_FILE": str(tmp_path / "n.%h.%p")})
    rows = Rows()
    read(source, rows)
    host = os.uname().nodename
    append(tmp_path / f"n.{host}.99", f"{host}:99:101 [0] NCCL WARN call failed\n")
    read(source, rows, at_s=2)
    source.close()

    assert [row.level for row in rows.rows] == [WARNING]
    assert parse_nccl(b"x", 0).level is None


def test_nccls_placeholders_are_this_host_and_any_process() -> None:
    short = os.uname().nodename.partition(".")[0]

    assert nccl_pattern("/tmp/%h.%p.100%%") == f"/tmp/{short}*.*.100%"


def test_a_kernel_log_that_may_not_be_read_says_what_would_help(tmp_path: Path) -> None:
    _, [missing] = opened(tmp_path, [f"kernel={tmp_path}/none"])

    assert "no such file" in missing.reason
