from __future__ import annotations

import os
from pathlib import Path

import pytest

from ranklog.model.stream import Stream
from ranklog.produce import spool
from ranklog.produce.identity import Identity
from ranklog.produce.spool import ProcessFiles

IDENTITY = Identity("default", "demo", "l1", 0, "n0", 3, 1, 8)
PROCESS = ProcessFiles(IDENTITY, "ab", 7, "99", {"logging": "ab.lines"}, True, {"a": 1.5})


def test_a_process_is_announced_whole(tmp_path: Path) -> None:
    spool.announce(tmp_path, PROCESS)

    assert list(spool.announced(tmp_path)) == [PROCESS]
    assert list(spool.announced(tmp_path, {"ab"})) == []


def test_files_that_are_no_announcement_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "a.process").write_text("{")
    (tmp_path / "b.process").write_text("[]")
    (tmp_path / "c.process").write_text('{"identity": {"tenant": "t"}}')
    (tmp_path / "d.process").mkdir()

    assert list(spool.announced(tmp_path)) == []


def test_the_streams_of_a_process_have_its_identity() -> None:
    expected = Stream("default", "demo", "l1", 0, "n0", 3, 1, "stdout", "ab", world_size=8)

    assert PROCESS.stream("stdout") == expected


def test_a_spool_is_for_its_owner_only(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "spool"
    spool.make_spool(folder)
    os.close(spool.open_append(folder / "x"))

    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "x").stat().st_mode & 0o777 == 0o600


def test_a_folder_that_was_open_to_others_is_closed(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    spool.make_spool(tmp_path)

    assert tmp_path.stat().st_mode & 0o777 == 0o700


def test_another_users_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 12345)

    with pytest.raises(PermissionError, match="another user"):
        spool.make_spool(tmp_path)


def test_one_collector_holds_the_lock(tmp_path: Path) -> None:
    assert not spool.has_collector(tmp_path)
    with spool.collector_lock(tmp_path) as first, spool.collector_lock(tmp_path) as second:
        assert (first, second) == (True, False)
        assert spool.has_collector(tmp_path)
    assert not spool.has_collector(tmp_path)


def test_an_acknowledgement_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "x.acked"
    assert spool.read_ack(path) == (0, 0)
    spool.write_ack(path, 10, 2)
    spool.write_ack(path, 2**40, 3)

    assert spool.read_ack(path) == (2**40, 3)
