"""Where rings are made, how large, and what becomes of those that nobody asks for."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from ranklog.limits import MIB
from ranklog.produce import rings, trouble
from ranklog.produce.ring import HEADER_BYTES, Ring


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "spool").mkdir()
    return tmp_path / "shared", tmp_path / "spool"


def _made(folders: tuple[Path, Path], name: str, size: int) -> tuple[Path, int] | None:
    made = rings.open_ring(*folders, name, size)
    if made is None:
        return None
    path = made.path
    made.close()
    return path, path.stat().st_size - HEADER_BYTES


def test_a_ring_lies_in_a_folder_of_its_spools_that_says_whose_it_is(
    folders: tuple[Path, Path],
) -> None:
    path, size = _made(folders, "a.ring", 2 * MIB) or (Path(), 0)

    assert (path.parent.parent, size) == (folders[0], 2 * MIB)
    assert (path.parent / "spool").read_text() == str(folders[1])
    assert folders[0].stat().st_mode & 0o777 == 0o700


def test_over_the_share_rings_are_smaller_and_at_last_on_the_spools_disk(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rings, "SHARED_BYTES_MAX", 7 * MIB)
    made = [_made(folders, f"{n}.ring", 4 * MIB) for n in range(4)]

    assert [found and (found[0].parent == folders[1], found[1] // MIB) for found in made] == [
        (False, 4),
        (False, 2),
        (True, 4),
        (True, 4),
    ]


def test_rings_that_nobody_will_ask_for_make_room(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rings, "SHARED_BYTES_MAX", 5 * MIB)
    paths = [(_made(folders, f"{n}.ring", MIB) or (Path(),))[0] for n in range(4)]
    (folders[1] / "0.process").touch()  # not delivered yet
    gone = folders[0] / f"gone-{paths[0].parent.name.rpartition('-')[2]}"
    gone.mkdir()
    (gone / "spool").write_text("/nonexistent/spool")
    Ring.create(gone / "x.ring", 8192).close()
    old = time.time() - 3600
    for path in [*paths[:3], gone / "x.ring"]:
        os.utime(path, (old, old))

    path, size = _made(folders, "new.ring", 2 * MIB) or (Path(), 0)
    assert (path.parent.parent, size) == (folders[0], 2 * MIB)
    assert sorted(x.name for x in folders[0].glob("*/*.ring")) == ["0.ring", "3.ring", "new.ring"]


def test_rings_of_a_container_whose_spool_is_not_seen_from_here_are_left(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rings, "SHARED_BYTES_MAX", 2 * MIB)
    with monkeypatch.context() as there:
        there.setattr(rings, "_namespace", lambda: "1")
        path, _ = _made(folders, "theirs.ring", MIB) or (Path(), 0)
    for age_s, is_there in ((3600, True), (31 * 86_400, False)):
        os.utime(path, (time.time() - age_s,) * 2)
        _made(folders, f"{age_s}.ring", 2 * MIB)
        assert path.exists() is is_there


def test_a_folder_that_is_named_from_here_is_the_same_elsewhere() -> None:
    assert rings.rings_folder({"RANKLOG_RINGS": "some/rings"}) == Path.cwd() / "some" / "rings"


def test_a_spools_folder_goes_with_its_last_ring(folders: tuple[Path, Path]) -> None:
    paths = [(_made(folders, f"{n}.ring", MIB) or (Path(),))[0] for n in range(2)]

    for path in paths:
        path.unlink()
        rings.forget_folder(path.parent)
        assert path.parent.exists() is (path == paths[0])
    assert _made(folders, "next.ring", MIB) == (paths[0].with_name("next.ring"), MIB)
    rings.forget_folder(folders[1])  # a spool itself, where its rings lie on disk
    assert folders[1].exists()


def test_with_room_nowhere_there_is_none_and_it_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(trouble, "once", lambda kind, message: told.append(kind))
    (tmp_path / "file").touch()
    nowhere = tmp_path / "file" / "x"

    assert _made((nowhere, nowhere), "a.ring", 2 * MIB) is None
    assert told == ["ring"]


@pytest.mark.parametrize(
    ("named", "size"), [("", 16), ("4", 4), ("0", 1), ("x", 16), ("99999", 16), ("-1", 16)]
)
def test_the_size_may_be_named(named: str, size: int) -> None:
    assert rings.ring_bytes({"RANKLOG_RING_MIB": named}) == size * MIB
