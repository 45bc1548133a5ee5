"""Indexes kept as files: right or not there, shared among processes, never over their size."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ranklog.client import Client
from ranklog.client.index_files import IndexFiles, index_files_of
from ranklog.store.disk import DiskStore
from ranklog.store.memory import MemoryStore
from tests.client.test_search import put
from tests.ingest.frames import Row

ROOT = Path(__file__).parents[2]
LARGE = 1 << 20


class Far(MemoryStore):
    """A store that is at some service; counts what is fetched."""

    identity = "https://s3.example s3://bucket"

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []

    def get(self, key: str) -> bytes:
        self.fetched.append(key)
        return super().get(key)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "ranklog" / "indexes"


def files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_the_next_process_fetches_nothing(cache: Path) -> None:
    store = Far()
    put(store, "1", [Row("a")])
    for fetched in (1, 0):
        store.fetched.clear()
        assert Client(store=store, tenant="acme").count("a", run="llama").count == 1
        assert len(store.fetched) == fetched
    [path] = files_below(cache)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(cache.stat().st_mode) & 0o077 == 0


@pytest.mark.parametrize("damage", [b"", b"RLIF", b"x" * 500])
def test_a_damaged_file_is_fetched_again(cache: Path, damage: bytes) -> None:
    store = Far()
    put(store, "1", [Row("a")])
    Client(store=store, tenant="acme").count("a", run="llama")
    [path] = files_below(cache)
    good = path.read_bytes()
    path.write_bytes(damage or good[:-1] + b"\x00")
    answer = Client(store=store, tenant="acme").count("a", run="llama")
    assert (answer.count, answer.completeness.skipped_tasks) == (1, [])
    assert path.read_bytes() == good


def test_one_key_of_two_stores_is_two_files(tmp_path: Path) -> None:
    one, two = (IndexFiles(tmp_path, name, LARGE) for name in ("one", "two"))
    one.put("k", b"1")
    assert (one.get("k"), two.get("k")) == (b"1", None)
    [path] = files_below(tmp_path)
    foreign = two._path("k")
    foreign.parent.mkdir(exist_ok=True)
    path.rename(foreign)
    assert two.get("k") is None


def test_a_damaged_index_is_not_kept(cache: Path) -> None:
    store = Far()
    put(store, "1", [Row("a")])
    [key] = [item.key for item in store.list("acme/index/")]
    store.put(key, b"broken")
    Client(store=store, tenant="acme").count("a", run="llama")
    assert files_below(cache) == []


def test_the_folder_stays_under_its_size_and_loses_what_was_not_used_longest(
    tmp_path: Path,
) -> None:
    files = IndexFiles(tmp_path, "s", 10_000)
    for number in range(40):
        files.put(f"k{number}", bytes(1_000))
        os.utime(files._path(f"k{number}"), (number, number))
        files.get("k0")  # used just now
    assert sum(path.stat().st_size for path in files_below(tmp_path)) <= 10_000 + 2_000
    assert files.get("k0") is not None
    assert files.get("k39") is not None
    assert files.get("k1") is None


def test_what_a_dead_writer_left_is_removed(tmp_path: Path) -> None:
    files = IndexFiles(tmp_path, "s", LARGE)
    left = files._path("k").parent / ".tmp-dead"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half")
    os.utime(left, (0, 0))
    files.put("k", b"1")
    assert not left.exists()


def test_processes_share_the_folder(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from ranklog.client.index_files import IndexFiles\n"
        "files = IndexFiles(Path(sys.argv[1]), 's', 200_000)\n"
        "for i in range(300):\n"
        "    found = files.get(f'k{i % 40}')\n"
        "    assert found in (None, bytes([i % 40]) * 10_000), i\n"
        "    files.put(f'k{i % 40}', bytes([i % 40]) * 10_000)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "shared")}
    command = [sys.executable, "-c", code, str(tmp_path)]
    running = [subprocess.Popen(command, env=environment) for _ in range(3)]
    assert [process.wait(60) for process in running] == [0, 0, 0]


def test_a_folder_that_can_not_be_written_fails_nothing(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    files = IndexFiles(blocked, "s", LARGE)
    files.put("k", b"1")
    assert files.get("k") is None


def test_only_stores_at_a_service_have_files(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path)}
    assert index_files_of(MemoryStore(), home) is None
    assert index_files_of(DiskStore(tmp_path / "store"), home) is None
    assert index_files_of(Far(), {}) is None
    assert index_files_of(Far(), home) is not None
