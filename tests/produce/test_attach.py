"""References to attached files: told at once, looked at aside, and never in the caller's way."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path
from typing import Any

import pytest

from ranklog.agent.collector import Collector
from ranklog.produce import attach, trouble
from ranklog.produce.attach import Lookout, hash_file, kind_of, look_at, reference
from ranklog.produce.context import context
from ranklog.produce.describing import Description
from ranklog.produce.identity import Identity
from ranklog.produce.producer import Producer
from ranklog.stream.disk import DiskStream
from tests.agent.reading import lines_in

WAIT_S = 10.0


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("host_1.1699.pt.trace.json.gz", "profiler trace"),
        ("report1.nsys-rep", "profiler trace"),
        ("snapshot.pickle", "memory snapshot"),
        ("loss.PNG", "image"),
        ("nccl_trace_rank_3", "flight record"),
        ("step_100.safetensors", "checkpoint"),
        ("notes", "file"),
    ],
)
def test_a_kind_is_known_by_the_name(name: str, kind: str) -> None:
    assert kind_of(name) == kind


def test_a_file_has_size_and_hash(tmp_path: Path) -> None:
    (tmp_path / "loss.png").write_bytes(b"picture")
    found = look_at(reference(tmp_path / "loss.png", None))

    assert (found["path"], found["kind"]) == (str(tmp_path / "loss.png"), "image")
    assert found["bytes"] == 7
    assert found["blake2b"] == hashlib.blake2b(b"picture", digest_size=16).hexdigest()


def test_a_folder_has_the_size_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"123")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "b").write_bytes(b"45")

    assert (look_at(reference(tmp_path, "checkpoint"))["bytes"]) == 5


def test_a_large_file_is_hashed_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attach, "FILE_HASH_BYTES_MAX", 4)
    (tmp_path / "x").write_bytes(b"123456")
    found = look_at(reference(tmp_path / "x", None))

    assert (found["bytes"], found["hashed_bytes"]) == (6, 4)
    assert hash_file(tmp_path / "x", 4) == hashlib.blake2b(b"1234", digest_size=16).hexdigest()


def test_a_missing_file_is_referred_to_with_the_reason(tmp_path: Path) -> None:
    found = look_at(reference(tmp_path / "gone", None))

    assert found["error"] == "No such file or directory"


def test_all_files_are_looked_at_and_the_thread_ends(tmp_path: Path) -> None:
    told: list[dict[str, Any]] = []
    lookout = Lookout(told.append)
    for i in range(20):
        (tmp_path / str(i)).write_text("x" * i)
        lookout.add(reference(tmp_path / str(i), None))
    lookout.wait(WAIT_S)

    assert sorted(item["bytes"] for item in told) == list(range(20))
    assert not [thread for thread in threading.enumerate() if thread.name == "ranklog-attach"]


def test_what_a_hung_file_system_holds_up_is_told_without_hash() -> None:
    told: list[dict[str, Any]] = []
    held, release = threading.Event(), threading.Event()

    def tell(found: dict[str, Any]) -> None:
        told.append(found)
        held.set()
        release.wait(WAIT_S)

    lookout = Lookout(tell)
    lookout.add(reference("first", None))
    assert held.wait(WAIT_S)
    lookout.add(reference("second", None))
    release_soon = threading.Timer(0.05, release.set)
    release_soon.start()
    lookout.wait(0.0)
    release_soon.join()

    assert [Path(item["path"]).name for item in told] == ["first", "second"]
    assert "bytes" not in told[1]


def test_of_a_missing_file_nobody_claims_that_it_is_attached(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "there.json").write_text("{}")
    trouble.counts.clear()
    one = Producer(tmp_path / "spool", Identity("default", "demo", "l1", 0, "n0", 3, 3, 8))
    description = Description(one)
    with context(rank=5, phase="profile"):
        description.attach(tmp_path / "there.json", None)
        description.attach(tmp_path / "gone.json", None)
    description.attach(tmp_path / "gone.png", None)
    description.finish(WAIT_S)
    one.close()
    Collector(tmp_path / "spool", DiskStream(tmp_path / "out", sync=False)).finish(5.0)
    trouble.counts.clear()

    said = [
        (line.level, line.rank, line.text.replace(f"{tmp_path}/", ""))
        for line in lines_in(tmp_path / "out")
        if line.channel == "logging"
    ]
    assert sorted(said, key=str) == [
        (20, 3, "attaching gone.png (image)"),
        (20, 5, "attaching gone.json (file)"),
        (20, 5, "attaching there.json (file)"),
        (30, 3, "not attached: gone.png: No such file or directory"),
        (30, 5, "not attached: gone.json: No such file or directory"),
    ]
    told = capfd.readouterr().err
    assert told.count("ranklog: not attached: ") == 1


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("", "not attached: '': an empty path"),
        ("a\0b", r"not attached: 'a\x00b': a path with a NUL character"),
    ],
)
def test_a_path_that_can_be_none_is_a_warning_and_attaches_nothing(
    path: str, text: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    trouble.counts.clear()
    one = Producer(tmp_path / "spool", Identity("default", "demo", "l1", 0, "n0", 3, 3, 8))
    description = Description(one)
    description.attach(path, None)
    description.finish(WAIT_S)
    one.close()
    Collector(tmp_path / "spool", DiskStream(tmp_path / "out", sync=False)).finish(5.0)
    trouble.counts.clear()

    said = [(line.level, line.text) for line in lines_in(tmp_path / "out")]
    assert [item for item in said if "attach" in item[1]] == [(30, text)]
    assert f"ranklog: {text}" in capfd.readouterr().err
