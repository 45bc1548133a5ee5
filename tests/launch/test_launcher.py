from __future__ import annotations

import os
import sys
from pathlib import Path

from ranklog.launch.launcher import Launcher, Rank, ranks_of
from ranklog.model.frame import StreamEnd
from ranklog.produce.identity import Identity
from ranklog.stream.disk import DiskStream
from tests.agent.reading import Seen, lines_in, streams_in

IDENTITY = Identity("default", "demo", "l1", 2, "n0", None, None, None)


def launch(tmp_path: Path, *programs: str, grace_s: float = 0.5) -> dict[int, int]:
    """Each program is a rank; their frames are in `tmp_path/stream`."""
    launcher = Launcher(
        tmp_path / "spool", DiskStream(tmp_path / "stream", sync=False), grace_s=grace_s
    )
    ranks = ranks_of(IDENTITY, len(programs), [])
    for rank, program in zip(ranks, programs, strict=True):
        launcher.start(Rank(rank.identity, [sys.executable, "-c", program]), os.environ)
    return launcher.wait(30.0)


def said(tmp_path: Path) -> list[Seen]:
    """What the programs said, without what the agent says of them."""
    return [line for line in lines_in(tmp_path / "stream") if line.channel != "agent"]


def test_output_of_programs_that_know_no_ranklog_is_streams(tmp_path: Path) -> None:
    codes = launch(
        tmp_path, "print('out')", "import sys; print('err', file=sys.stderr); sys.exit(3)"
    )

    assert codes == {0: 0, 1: 3}
    lines = lines_in(tmp_path / "stream")
    assert sorted((x.rank, x.channel, x.text) for x in lines) == [
        (0, "agent", "rank 0 ended: exit code 0, last seq 0"),
        (0, "stdout", "out"),
        (1, "agent", "rank 1 ended: exit code 3, last seq 0"),
        (1, "stderr", "err"),
    ]
    streams = streams_in(tmp_path / "stream")
    assert {s.stream.attempt for s in streams} == {2}
    ends = {(s.stream.rank, s.stream.channel): s.end for s in streams if s.end}
    assert ends == {
        (0, "agent"): StreamEnd(1, 0),
        (0, "stdout"): StreamEnd(1, 0),
        (0, "stderr"): StreamEnd(0, 0),
        (1, "agent"): StreamEnd(1, 3),
        (1, "stdout"): StreamEnd(0, 3),
        (1, "stderr"): StreamEnd(1, 3),
    }


def test_a_signal_that_ended_a_rank_is_its_exit_code(tmp_path: Path) -> None:
    codes = launch(tmp_path, "print('last words'); import os; os.kill(os.getpid(), 9)")

    assert codes == {0: -9}
    assert [x.text for x in lines_in(tmp_path / "stream")] == [
        "last words",
        "rank 0 ended: signal SIGKILL, last seq 0",
    ]


def test_ranks_that_wait_for_a_failed_one_are_stopped(tmp_path: Path) -> None:
    up = str(tmp_path / "up")
    failing = (
        f"import os, sys, time\nwhile not os.path.exists({up!r}): time.sleep(0.01)\nsys.exit(1)"
    )
    stubborn = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"open({up!r}, 'w').close(); time.sleep(60)"
    )
    codes = launch(tmp_path, failing, "import time; time.sleep(60)", stubborn)

    assert codes == {0: 1, 1: -15, 2: -9}


def test_the_environment_is_what_torch_like_code_reads(tmp_path: Path) -> None:
    show = "import os; print(*(os.environ[k] for k in ('RANK', 'LOCAL_RANK', 'WORLD_SIZE')))"
    launch(tmp_path, show, show)

    assert sorted(x.text for x in said(tmp_path)) == ["0 0 2", "1 1 2"]
