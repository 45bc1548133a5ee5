"""The folder: what it refuses, what a crash or a full disk leaves, and order against memory."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ranklog.errors import (
    AlreadyExists,
    BadInput,
    Corrupt,
    NewerVersion,
    NotFound,
    RanklogError,
    StoreFull,
    Unavailable,
)
from ranklog.store import DiskStore, MemoryStore

# Neighbours whose order a folder walk gets wrong, and names too long for a file system.
NAME = st.sampled_from(
    ["a", "a-", "a.", "a0", "a=", "b", ".", "é", "~", "a" * 198, "a" * 199, "a" * 201, "\x01"]
)
COMPONENT = st.lists(NAME, min_size=1, max_size=2).map("".join)
KEY = st.lists(COMPONENT, min_size=1, max_size=3).map("/".join)


def files(folder: Path) -> set[str]:
    """All files below a folder."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(KEY, max_size=12), KEY, st.data())
def test_it_lists_as_a_sorted_list_does(
    tmp_path_factory: pytest.TempPathFactory, keys: list[str], other: str, data: st.DataObject
) -> None:
    disk = DiskStore(tmp_path_factory.mktemp("disk"), sync=False)
    memory = MemoryStore()
    for key in keys:
        try:
            memory.put(key, key.encode())
        except BadInput:
            continue
        disk.put(key, key.encode())
    for key in data.draw(st.lists(st.sampled_from(keys or ["x"]), max_size=2)):
        for store in (disk, memory):
            try:
                store.delete(key)
            except BadInput:
                continue
    some = data.draw(st.sampled_from([*keys, other]))
    for prefix in ("", some, some[: len(some) // 2], some.rpartition("/")[0] + "/"):
        for after in ("", other, some):
            expected = [
                (found.key, found.length) for found in memory.list(prefix, start_after=after)
            ]
            found = [(found.key, found.length) for found in disk.list(prefix, start_after=after)]
            assert found == expected
    for prefix in ("", some.rpartition("/")[0] + "/"):
        if prefix != "/":
            assert list(disk.list_folders(prefix)) == list(memory.list_folders(prefix))


@pytest.mark.parametrize(
    ("prepare", "error", "words"),
    [
        (lambda path: None, NotFound, "no store at"),
        (lambda path: path.mkdir(), BadInput, "not a ranklog store"),
        (lambda path: path.write_text("x"), BadInput, "is a file"),
        (lambda path: (path.mkdir(), (path / "notes.txt").write_text("x")), BadInput, "not a"),
        (
            lambda path: (path.mkdir(), (path / "ranklog-store.json").write_text("{}")),
            Corrupt,
            "does not say its version",
        ),
        (
            lambda path: (path.mkdir(), (path / "ranklog-store.json").write_text('{"version": 2}')),
            NewerVersion,
            "this ranklog knows 1",
        ),
    ],
)
def test_what_is_no_store_is_refused_untouched(
    tmp_path: Path, prepare: Callable[[Path], Any], error: type[RanklogError], words: str
) -> None:
    path = tmp_path / "store"
    prepare(path)
    before = files(tmp_path)
    with pytest.raises(error, match=words) as raised:
        DiskStore(path, create=False)
    assert files(tmp_path) == before
    assert raised.value.hint or error is Corrupt


def test_a_folder_with_other_things_is_never_made_a_store(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(BadInput, match="not a ranklog store"):
        DiskStore(tmp_path, create=True)
    assert files(tmp_path) == {"thesis.tex"}


def test_a_place_where_no_folder_can_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nothing" / "here")
    with pytest.raises(BadInput, match="no folder can be made at"):
        DiskStore(tmp_path / "link", create=True)


def test_a_new_folder_becomes_a_store_and_stays_one(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "store"
    DiskStore(path, create=True).put("k", b"x")
    assert (path / "ranklog-store.json").read_text() == '{"version": 1}\n'
    assert DiskStore(path, create=False).get("k") == b"x"
    assert DiskStore(path, create=True).get("k") == b"x"
    assert [found.key for found in DiskStore(path).list("")] == ["k"]


def test_a_folder_without_permission_is_refused_with_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(self: Path) -> bytes:
        raise PermissionError(errno.EACCES, "Permission denied", str(self))

    monkeypatch.setattr(Path, "read_bytes", denied)
    with pytest.raises(BadInput, match="Permission denied") as raised:
        DiskStore(tmp_path, create=False)
    assert raised.value.hint


@pytest.mark.parametrize("call", ["open", "write", "fsync", "link", "mkdir"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int
) -> None:
    store = DiskStore(tmp_path)
    store.put("a/first", b"x")
    before = files(tmp_path)

    def full(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        with pytest.raises(StoreFull, match=r"can't write b/second: .*"):
            store.put("b/second", b"y" * 10_000, if_absent=True)
    assert files(tmp_path) == before
    store.put("b/second", b"z", if_absent=True)
    assert store.get("b/second") == b"z"


def test_a_disk_that_fills_up_within_an_object_leaves_nothing(tmp_path: Path) -> None:
    """RLIMIT_FSIZE: the kernel writes the first 64 KiB, then refuses."""
    code = (
        "import resource, sys; from ranklog.store import DiskStore; from ranklog.errors import *\n"
        "store = DiskStore(sys.argv[1])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))\n"
        "try: store.put('k/big', b'x' * 1_000_000)\n"
        "except StoreFull: store.put('k/small', b'y'); print('full')\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert (run.stdout, run.stderr) == ("full\n", "")
    assert files(tmp_path) == {"ranklog-store.json", "k/small="}


def test_a_broken_disk_is_unavailable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = DiskStore(tmp_path)

    def broken(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(Unavailable):
        store.put("k", b"x")
    assert files(tmp_path) == {"ranklog-store.json"}


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    store = DiskStore(tmp_path)
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:7]))
    store.put("k", bytes(range(256)))
    assert store.get("k") == bytes(range(256))


def test_what_a_dead_writer_left_is_not_listed_and_goes_after_a_day(tmp_path: Path) -> None:
    store = DiskStore(tmp_path)
    store.put("k", b"x")
    old, new = tmp_path / ".tmp" / "1-old", tmp_path / ".tmp" / "1-new"
    for left in (old, new):
        left.write_bytes(b"half")
    os.utime(old, (time.time() - 90_000,) * 2)
    assert [found.key for found in store.list("")] == ["k"]
    DiskStore(tmp_path).put("k2", b"")
    assert files(tmp_path) == {"ranklog-store.json", ".tmp/1-new", "k=", "k2="}


def test_a_writer_killed_at_any_call_leaves_all_or_nothing(tmp_path: Path) -> None:
    """The process ends before its n-th call to the system; then the object is whole or absent."""
    code = (
        "import os, sys; from ranklog.store import DiskStore\n"
        "store = DiskStore(sys.argv[1]); left = [int(sys.argv[2])]\n"
        "def dying(call):\n"
        "    def wrapped(*args, **more):\n"
        "        left[0] -= 1\n"
        "        if left[0] < 0: os._exit(9)\n"
        "        return call(*args, **more)\n"
        "    return wrapped\n"
        "for name in 'open write fsync close link unlink mkdir'.split():\n"
        "    setattr(os, name, dying(getattr(os, name)))\n"
        "store.put('a/b/k', b'x' * 1000, if_absent=True)\n"
    )
    states = []
    for calls in range(40):
        path = tmp_path / str(calls)
        run = subprocess.run(
            [sys.executable, "-c", code, str(path), str(calls)],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        )
        store = DiskStore(path, create=False)
        states.append([(found.key, found.length) for found in store.list("")])
        if run.returncode == 0:
            break
        try:
            store.put("a/b/k", b"x" * 1000, if_absent=True)
        except AlreadyExists:
            assert states[-1] == [("a/b/k", 1000)]
    assert run.returncode == 0 and [] in states
    assert all(state in ([], [("a/b/k", 1000)]) for state in states)


def test_a_put_survives_that_its_folder_is_emptied_meanwhile(tmp_path: Path) -> None:
    """Deleting the last object of a folder removes the folder, under a writer's hands."""
    stores = [DiskStore(tmp_path, sync=False) for _ in range(4)]

    def churn(number: int) -> None:
        store = stores[number]
        for turn in range(60):
            key = f"a/b/c/{number}-{turn}"
            store.put(key, b"x", if_absent=True)
            assert store.get(key) == b"x"
            list(store.list("a/"))
            list(store.list_folders(""))
            store.delete(key)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(churn, range(4)))
    assert list(stores[0].list("")) == []
    assert {path.name for path in tmp_path.iterdir()} == {".tmp", "ranklog-store.json"}


def test_opening_a_new_store_from_many_threads_makes_one(tmp_path: Path) -> None:
    for turn in range(20):
        path = tmp_path / str(turn)
        with ThreadPoolExecutor(6) as pool:
            for store in pool.map(lambda n, path=path: DiskStore(path), range(6)):
                store.put("k", b"x")
        assert files(path) == {"ranklog-store.json", "k="}


@pytest.mark.parametrize(
    "away", [lambda path: path.write_text("a file"), lambda path: path.mkdir()]
)
def test_a_store_that_has_gone_is_away_and_not_empty(
    tmp_path: Path, away: Callable[[Path], Any]
) -> None:
    """An unmounted file system leaves its folder, in which nothing is to be found, nor written."""
    store = DiskStore(tmp_path / "store")
    store.put("acme/keys/1", b"x")
    (tmp_path / "store").rename(tmp_path / "moved")
    away(tmp_path / "store")
    for use in (
        lambda: store.get("acme/keys/1"),
        lambda: list(store.list("acme/")),
        lambda: list(store.list_folders("acme/")),
        lambda: store.put("acme/keys/2", b"y"),
    ):
        with pytest.raises(Unavailable, match="not there any more"):
            use()
    assert not list((tmp_path / "store").rglob("*"))
