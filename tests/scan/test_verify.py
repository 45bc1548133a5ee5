"""A file is read for its checksums once; what was written again is read again."""

from __future__ import annotations

import os
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from ranklog.errors import Corrupt
from ranklog.plan.sums import pack_sums, unpack_sums
from ranklog.plan.tasks import SegmentScan
from ranklog.scan import verify
from ranklog.scan.verify import Checked, check_file

DATA = bytes(range(100))
PARTS = [(4, 20), (20, 30), (50, 80)]


def scan_of(parts: list[tuple[int, int]]) -> SegmentScan:
    sums = pack_sums(zlib.crc32(DATA[90:]), [(a, b, zlib.crc32(DATA[a:b])) for a, b in parts])
    spans = ((4, 30), (50, 80)) if len(parts) == 3 else tuple(parts)
    return SegmentScan(0, "k", 100, "", 10, 0, 0, small=spans[:1], late=spans[1:], sums=sums)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "x").write_bytes(DATA)
    return tmp_path / "x"


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Ranges that are read."""
    crc_at, found = verify._crc_at, []

    def watched(file: int, start: int, end: int) -> int | None:
        found.append((start, end))
        return crc_at(file, start, end)

    monkeypatch.setattr(verify, "_crc_at", watched)
    return found


def test_each_part_is_read_once(path: Path, reads: list[tuple[int, int]]) -> None:
    checked = Checked()
    check_file(path, path.stat(), scan_of(PARTS[:1]), checked)
    check_file(path, path.stat(), scan_of(PARTS), checked)
    check_file(path, path.stat(), scan_of(PARTS), checked)
    assert reads == [(90, 100), (4, 20), (20, 30), (50, 80)]


@pytest.mark.parametrize("at", [4, 19, 29, 50, 79, 90, 99])
def test_damage_is_corrupt_each_time(path: Path, at: int) -> None:
    path.write_bytes(DATA[:at] + b"\xff" + DATA[at + 1 :])
    checked = Checked()
    for _ in range(2):
        with pytest.raises(Corrupt, match="damaged: bytes"):
            check_file(path, path.stat(), scan_of(PARTS), checked)


def test_a_file_that_was_written_again_is_read_again(path: Path) -> None:
    checked = Checked()
    check_file(path, path.stat(), scan_of(PARTS), checked)
    path.write_bytes(b"\xff" * 100)
    os.utime(path, ns=(5, 5))
    with pytest.raises(Corrupt):
        check_file(path, path.stat(), scan_of(PARTS), checked)


def test_memory_is_bounded() -> None:
    checked = Checked(ranges_max=3)
    files = [(name, 1, 2, 3) for name in "abc"]
    for file in files:
        checked.add(file, [(0, 1), (1, 2), (5, 6)])
    assert [checked.of(file) for file in files] == [(), (), [(0, 2), (5, 6)]]


@pytest.mark.parametrize("ranges", [(), ((4, 29),), ((4, 31),), ((4, 30), (50, 80), (85, 86))])
def test_sums_that_do_not_fit_are_corrupt(ranges: tuple[tuple[int, int], ...]) -> None:
    with pytest.raises(Corrupt, match="do not fit"):
        unpack_sums(replace(scan_of(PARTS), small=ranges, late=()))


@pytest.mark.parametrize("sums", ["A", "AAAA", "é", "AAAAAAAA"])
def test_sums_that_are_none_are_corrupt(sums: str) -> None:
    with pytest.raises(Corrupt, match="do not fit"):
        unpack_sums(replace(scan_of(PARTS), sums=sums))
