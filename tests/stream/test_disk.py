"""The stream of local mode: order, crashes, several writers, checkpoints."""

from __future__ import annotations

import errno
import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ranklog.errors import Corrupt, StoreFull
from ranklog.model.record import Record
from ranklog.stream.disk import DiskStream


def sequence(number: int) -> str:
    return f"{number:020d}"


def test_records_come_back_in_order_with_their_arrival(tmp_path: Path) -> None:
    ticks = iter([100, 200, 300])
    stream = DiskStream(tmp_path, clock_ns=lambda: next(ticks))
    for data in (b"one", b"", b"\x00three"):
        stream.put("t/run/hôst", data)
    expected = [
        Record(b"one", 100, sequence(0)),
        Record(b"", 200, sequence(1)),
        Record(b"\x00three", 300, sequence(2)),
    ]
    assert list(stream.read()) == expected
    assert list(DiskStream(tmp_path).read(after=sequence(0))) == expected[1:]
    assert list(stream.read(after=sequence(2))) == []


def test_writers_share_the_numbers_without_holes(tmp_path: Path) -> None:
    streams = [DiskStream(tmp_path, sync=False) for _ in range(4)]
    with ThreadPoolExecutor(8) as pool:
        given = list(pool.map(lambda n: streams[n % 4].put("k", b"%d" % n), range(200)))
    assert sorted(given) == [sequence(number) for number in range(200)]
    read = {record.sequence: record.data for record in streams[0].read()}
    assert read == {name: b"%d" % number for number, name in enumerate(given)}


def _put_many(path: str, writer: int) -> None:
    stream = DiskStream(path, sync=False)
    for number in range(40):
        stream.put("k", b"%d-%d" % (writer, number))


def test_processes_share_the_numbers_and_keep_their_order(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_put_many, args=(str(tmp_path), n)) for n in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    read = [record.data for record in DiskStream(tmp_path).read()]
    for writer in range(2):
        own = [data for data in read if data.startswith(b"%d-" % writer)]
        assert own == [b"%d-%d" % (writer, number) for number in range(40)]


def test_a_consumer_goes_on_where_it_was(tmp_path: Path) -> None:
    stream = DiskStream(tmp_path)
    for number in range(3):
        stream.put("k", b"%d" % number)
    assert stream.checkpoint("../ingest") == ""
    stream.commit("../ingest", sequence(1))
    again = DiskStream(tmp_path)
    assert [record.data for record in again.read(again.checkpoint("../ingest"))] == [b"2"]
    assert again.checkpoint("other") == ""
    assert {path.parent.name for path in tmp_path.rglob("*.json")} == {"consumers"}


def test_what_all_have_is_trimmed_and_no_number_given_twice(tmp_path: Path) -> None:
    stream, other = DiskStream(tmp_path), DiskStream(tmp_path)
    for number in range(5):
        stream.put("k", b"%d" % number)
    assert stream.trim() == 0
    stream.commit("fast", sequence(4))
    stream.commit("slow", sequence(1))
    assert stream.trim() == 2
    assert [record.data for record in stream.read()] == [b"2", b"3", b"4"]
    stream.commit("slow", sequence(4))
    assert stream.trim() == 2
    assert other.put("k", b"5") == sequence(5)
    assert DiskStream(tmp_path).put("k", b"6") == sequence(6)
    assert stream.put("k", b"7") == sequence(7)


def test_a_damaged_record_comes_as_it_is_and_blocks_nothing(tmp_path: Path) -> None:
    stream = DiskStream(tmp_path)
    for data in (b"one", b"two"):
        stream.put("k", data)
    (tmp_path / "records" / sequence(0)).write_bytes(b"torn")
    assert [record.data for record in stream.read()] == [b"torn", b"two"]


def test_a_damaged_checkpoint_says_what_to_do(tmp_path: Path) -> None:
    stream = DiskStream(tmp_path)
    stream.commit("ingest", sequence(0))
    next((tmp_path / "consumers").iterdir()).write_text("{")
    with pytest.raises(Corrupt, match="remove it"):
        stream.checkpoint("ingest")
    with pytest.raises(Corrupt, match="remove it"):
        stream.trim()


@pytest.mark.parametrize("call", ["write", "link", "fsync"])
def test_a_full_disk_takes_no_half_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    stream = DiskStream(tmp_path)
    stream.put("k", b"one")

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        with pytest.raises(StoreFull):
            stream.put("k", b"two")
    assert stream.put("k", b"three") == sequence(1)
    assert [record.data for record in stream.read()] == [b"one", b"three"]
    assert list((tmp_path / ".tmp").iterdir()) == []


def test_a_writer_killed_at_any_call_leaves_all_or_nothing(tmp_path: Path) -> None:
    code = (
        "import os, sys; from ranklog.stream.disk import DiskStream\n"
        "stream = DiskStream(sys.argv[1]); left = [int(sys.argv[2])]\n"
        "def dying(call):\n"
        "    def wrapped(*args, **more):\n"
        "        left[0] -= 1\n"
        "        if left[0] < 0: os._exit(9)\n"
        "        return call(*args, **more)\n"
        "    return wrapped\n"
        "for name in 'open write fsync close link unlink'.split():\n"
        "    setattr(os, name, dying(getattr(os, name)))\n"
        "stream.put('k', b'x' * 100)\n"
    )
    for calls in range(40):
        path = tmp_path / str(calls)
        run = subprocess.run(
            [sys.executable, "-c", code, str(path), str(calls)],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        )
        stream = DiskStream(path)
        before = [record.data for record in stream.read()]
        assert before in ([], [b"x" * 100])
        stream.put("k", b"next")
        assert [record.data for record in stream.read()] == [*before, b"next"]
        if run.returncode == 0:
            break
    assert run.returncode == 0 and before
