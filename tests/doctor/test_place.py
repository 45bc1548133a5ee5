"""Where lines would wait."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from ranklog.doctor import place
from ranklog.doctor.check import NOTE, OK, PROBLEM, size_text
from ranklog.doctor.place import check_limits, check_shm, check_spool, file_system_of
from ranklog.produce.rings import RING_BYTES, SHARED_BYTES_MAX

MOUNTS = """\
1 0 8:1 / / rw - ext4 /dev/sda1 rw
2 1 0:1 / /dev/shm rw - tmpfs tmpfs rw
3 1 0:2 / /home rw - nfs4 server:/home rw
4 1 0:3 / /home/my\\040disk rw - xfs /dev/sdb rw
5 1 0:4 / /scratch rw - lustre a@tcp:/fs rw
6 1 0:5 / /s3 rw - fuse.s3fs s3fs rw
7 1 0:6 / /var/lib rw - overlay overlay rw
nonsense
"""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/tmp/ranklog-0", ("local", "ext4")),
        ("/dev/shm/x", ("tmpfs", "tmpfs")),
        ("/home/ada", ("network", "nfs4")),
        ("/home/my disk/spool", ("local", "xfs")),
        ("/homework", ("local", "ext4")),
        ("/scratch", ("network", "lustre")),
        ("/s3/x", ("network", "fuse.s3fs")),
        ("/var/lib/x", ("container", "overlay")),
    ],
)
def test_a_file_system_is_that_of_the_nearest_mount(path: str, expected: tuple[str, str]) -> None:
    assert file_system_of(Path(path), MOUNTS) == expected


@pytest.mark.parametrize(
    ("kind", "state"),
    [("local", OK), ("network", PROBLEM), ("tmpfs", NOTE), ("container", NOTE)],
)
def test_a_spool_is_judged_by_its_file_system(
    kind: str, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, "file_system_of", lambda path: (kind, "fs"))
    spool, room = check_spool(tmp_path / "spool", {})

    assert (spool.state, room.name) == (state, "room")
    assert (spool.do == "nothing to do") == (state == OK)
    assert not (tmp_path / "spool").exists()


def test_a_spool_below_a_file_can_not_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    [check] = check_spool(tmp_path / "file" / "spool", {})

    assert check.state == PROBLEM
    assert "RANKLOG_SPOOL" in check.do


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no /proc")
def test_a_spool_where_not_even_root_makes_folders_can_not_be_written() -> None:
    [check] = check_spool(Path("/proc/spool"), {})

    assert check.state == PROBLEM


def test_trying_a_spool_leaves_nothing_behind(tmp_path: Path) -> None:
    check_spool(tmp_path / "spool", {})

    assert not [*tmp_path.iterdir()]


def test_room_is_held_against_the_quota(tmp_path: Path) -> None:
    assert check_spool(tmp_path, {"RANKLOG_SPOOL_QUOTA": "64MiB"})[1].state == OK
    assert check_spool(tmp_path, {"RANKLOG_SPOOL_QUOTA": "900TiB"})[1].state == PROBLEM
    assert check_spool(tmp_path, {"RANKLOG_SPOOL_QUOTA": "much"})[1].state == PROBLEM


def test_rings_without_tmpfs_are_files(tmp_path: Path) -> None:
    assert check_shm({}, tmp_path / "none").state == NOTE
    enough = check_shm({"LOCAL_WORLD_SIZE": "1"}, tmp_path)
    assert (enough.state, dict(enough.facts)["needed_bytes"]) == (OK, RING_BYTES)
    many = check_shm({"LOCAL_WORLD_SIZE": "99999999"}, tmp_path)
    assert (many.state, dict(many.facts)["needed_bytes"]) == (NOTE, SHARED_BYTES_MAX)


def test_a_limit_on_the_size_of_files_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    infinite = resource.RLIM_INFINITY
    limits = {resource.RLIMIT_NOFILE: (4096, 4096), resource.RLIMIT_FSIZE: (1 << 20, infinite)}
    monkeypatch.setattr(resource, "getrlimit", lambda which: limits[which])
    assert (check_limits().state, check_limits().do) == (PROBLEM, "ulimit -f unlimited")
    limits[resource.RLIMIT_FSIZE] = (infinite, infinite)
    assert check_limits().state == OK
    limits[resource.RLIMIT_NOFILE] = (256, 256)
    assert check_limits().state == NOTE


@pytest.mark.parametrize(
    ("size", "text"), [(12, "12 B"), (1536, "1.5 KiB"), (16 << 20, "16 MiB"), (3 << 50, "3072 TiB")]
)
def test_sizes_are_told_shortly(size: int, text: str) -> None:
    assert size_text(size) == text


def test_this_very_folder_is_on_some_file_system(tmp_path: Path) -> None:
    assert file_system_of(tmp_path)[0] in ("local", "tmpfs", "network", "container")
    assert os.path.exists("/proc/self/mountinfo")
