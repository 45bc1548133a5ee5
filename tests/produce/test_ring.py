"""The ring: what is put comes out, in order, whoever reads it and however the writer ends."""

from __future__ import annotations

import errno
import gc
import itertools
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ranklog
from ranklog.produce import ring_reader
from ranklog.produce.ring import (
    BODY,
    DROP_CLASSES,
    FIXED,
    FULL,
    HEAD,
    HEADER_BYTES,
    NO_ITERATION,
    TAKEN,
    TEXT,
    TOO_LARGE,
    Ring,
)
from ranklog.produce.ring_reader import RingReader

PACKAGE = str(Path(ranklog.__file__).parents[1])
SMALL = 4096


def _drained(reader: RingReader, *, final: bool = False) -> list[bytes]:
    bodies: list[bytes] = []
    while more := reader.read(final=final):
        bodies += more
    return bodies


@settings(max_examples=200, deadline=None)
@given(
    steps=st.lists(st.tuples(st.integers(0, 1024), st.booleans(), st.integers(1, 5000))),
    size=st.sampled_from([1024, 1032, 4096]),
)
def test_what_is_put_comes_out_in_order_through_any_number_of_laps(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, bool, int]], size: int
) -> None:
    ring = Ring.create(tmp_path_factory.mktemp("ring") / "r", size)
    reader = RingReader(ring.path)
    source = random.Random(1)
    kept, seen = [], []
    for length, read_now, bytes_max in steps:
        body = source.randbytes(length)
        if ring.put(body):
            kept.append(body)
        if read_now:
            seen += reader.read(bytes_max)
            reader.free(reader.cursor)
    seen += _drained(reader)

    assert seen == kept
    assert (reader.records, reader.cursor, reader.damaged) == (len(kept), reader.head, 0)
    reader.close()
    ring.close()


def test_a_full_ring_refuses_and_keeps_a_reserve_for_warnings(tmp_path: Path) -> None:
    ring = Ring.create(tmp_path / "r", SMALL)
    body = bytes(96)
    plain = 0
    while ring.put(body):
        plain += 1
    reserved = 0
    while ring.put(body, reserve=True):
        reserved += 1

    assert plain == (SMALL - SMALL // 8) // 128
    assert reserved == SMALL // 128 - plain
    assert ring.write(BODY, 0, 0, 0, body, True) == FULL
    assert ring.write(BODY, 0, 0, 0, bytes(SMALL), True) == TOO_LARGE

    reader = RingReader(ring.path)
    assert len(_drained(reader)) == plain + reserved
    reader.free(reader.cursor)
    assert ring.put(body)
    reader.close()
    ring.close()


def test_other_kinds_come_with_their_fixed_fields(tmp_path: Path) -> None:
    ring = Ring.create(tmp_path / "r", SMALL)
    assert ring.write(TEXT | 7 << 8, 1234, NO_ITERATION, 5, b"text", False) == TAKEN
    reader = RingReader(ring.path)
    (body,) = reader.read()

    assert int.from_bytes(body[:4], sys.byteorder) == TEXT | 7 << 8
    assert FIXED.unpack(bytes(4) + body[:28])[1:] == (1234, NO_ITERATION, 5)
    assert body[28:] == b"text"
    reader.close()
    ring.close()


def test_what_is_not_freed_is_read_again_by_the_next_reader(tmp_path: Path) -> None:
    ring = Ring.create(tmp_path / "r", SMALL)
    for n in range(4):
        ring.put(b"%d" % n)
    first = RingReader(ring.path)
    assert first.read(1) == [b"0"]
    assert first.read(1) == [b"1"]
    first.free(first.cursor)
    first.read()
    first.close()

    second = RingReader(ring.path)
    assert (second.records, second.tail) == (2, second.cursor)
    assert second.read() == [b"2", b"3"]
    at = second.cursor
    ring.put(b"4")
    assert second.read() == [b"4"]
    second.seek(at, 4)
    assert second.read() == [b"4"]
    assert second.records == 5
    second.close()
    ring.close()


def test_a_record_larger_than_what_is_read_at_once_comes_whole(tmp_path: Path) -> None:
    ring = Ring.create(tmp_path / "r", SMALL)
    ring.put(b"a")
    ring.put(bytes(1000))
    ring.put(b"b")
    reader = RingReader(ring.path)

    assert _drained(reader) == [b"a", bytes(1000), b"b"]
    reader.seek(0)
    assert [reader.read(64) for _ in range(4)] == [[b"a"], [bytes(1000)], [b"b"], []]
    reader.close()
    ring.close()


def test_what_is_not_published_is_not_read(tmp_path: Path) -> None:
    ring = Ring.create(tmp_path / "r", SMALL)
    ring.put(b"published")
    before = ring.head
    ring.put(b"copied")
    ring.words[HEAD] = before  # as if killed between copy and publication: nobody was told it is in
    reader = RingReader(tmp_path / "r")

    assert reader.read(final=True) == [b"published"]
    assert reader.read(final=True) == []
    assert (reader.records, reader.damaged) == (1, 0)
    reader.close()
    ring.close()


def test_an_earlier_laps_record_is_never_taken_for_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ring_reader, "PATIENCE_S", 0.0)
    ring = Ring.create(tmp_path / "r", 1024)
    reader = RingReader(ring.path)
    for n in range(1024 // 64):
        assert ring.put(b"%032d" % n, True)
        reader.read()
        reader.free(reader.cursor)
    assert ring.head == 1024
    ring.head += 64  # taken, and never filled
    ring.put(b"behind")
    ring.words[HEAD] = ring.head
    assert reader.read() == [b"behind"]
    assert (reader.damaged, reader.cursor) == (1, ring.head)

    reader.free(reader.cursor)
    ring.put(b"next")
    assert reader.read() == [b"next"]
    reader.close()
    ring.close()


def test_drops_are_counted_where_the_agent_sees_them(tmp_path: Path) -> None:
    ring = Ring.create(tmp_path / "r", SMALL)
    reader = RingReader(ring.path)
    assert reader.drops() == {}
    ring.count_drop(DROP_CLASSES.index("info"), 3)
    ring.count_drop(DROP_CLASSES.index("telemetry"))

    assert reader.drops() == {"info": 3, "telemetry": 1}
    reader.close()
    ring.close()


def test_a_file_that_is_no_ring_is_refused(tmp_path: Path) -> None:
    for name, data in (("empty", b""), ("other", b"x" * 8192)):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(ValueError, match="is no ring"):
            RingReader(tmp_path / name)


def test_without_room_no_file_is_left_and_no_second_ring_takes_its_place(tmp_path: Path) -> None:
    def full(fd: int, offset: int, length: int) -> None:
        raise OSError(errno.ENOSPC, "no room")

    with pytest.raises(OSError, match="no room"):
        Ring.create(tmp_path / "r", SMALL, full)
    assert list(tmp_path.iterdir()) == []
    Ring.create(tmp_path / "r", SMALL).close()
    with pytest.raises(FileExistsError):
        Ring.create(tmp_path / "r", SMALL)


def test_the_blocks_are_there_before_the_first_record(tmp_path: Path) -> None:
    ring = Ring.create(tmp_path / "r", 1 << 20)
    status = (tmp_path / "r").stat()

    assert status.st_blocks * 512 >= (1 << 20) + HEADER_BYTES
    assert status.st_mode & 0o777 == 0o600
    ring.close()


def test_threads_lose_nothing_and_tear_nothing(tmp_path: Path) -> None:
    ring = Ring.create(tmp_path / "r", 1 << 20)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def put(name: int) -> None:
        for n in range(500):
            ring.put(b"%d:%d" % (name, n))

    threads = [threading.Thread(target=put, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(before)
    reader = RingReader(ring.path)
    bodies = _drained(reader)

    for name in range(8):
        mine = [body for body in bodies if body.startswith(b"%d:" % name)]
        assert mine == [b"%d:%d" % (name, n) for n in range(500)]
    assert len(bodies) == ring.records == 4000
    reader.close()
    ring.close()


def test_a_signal_handler_that_logs_amid_a_record_neither_waits_nor_tears(tmp_path: Path) -> None:
    ring = Ring.create(tmp_path / "r", 1 << 22)
    numbers = itertools.count()

    def handler(*_: object) -> None:  # which the next signal may interrupt
        assert ring.put(b"handler %d" % next(numbers), reserve=True)

    before = signal.signal(signal.SIGPROF, handler)
    signal.setitimer(signal.ITIMER_PROF, 0.0005, 0.0005)
    try:
        put = 0
        while ring.put(b"line %d" % put):
            put += 1
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    reader = RingReader(ring.path)
    bodies = _drained(reader)

    handled = next(numbers)
    assert handled
    assert [x for x in bodies if x.startswith(b"line")] == [b"line %d" % n for n in range(put)]
    said = sorted(int(x.split()[1]) for x in bodies if x.startswith(b"handler"))
    assert said == list(range(handled))
    reader.close()
    ring.close()


def test_a_destructor_that_logs_amid_a_record_neither_waits_nor_tears(tmp_path: Path) -> None:
    ring = Ring.create(tmp_path / "r", SMALL)

    class Loud:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            ring.put(b"from a destructor")

    threshold = gc.get_threshold()
    gc.set_threshold(1)  # every object that is made may run a destructor
    try:
        for _ in range(20):
            Loud()
            ring.put(b"line")
    finally:
        gc.set_threshold(*threshold)
    gc.collect()
    reader = RingReader(ring.path)
    bodies = _drained(reader)

    assert sorted(bodies) == [b"from a destructor"] * 20 + [b"line"] * 20
    reader.close()
    ring.close()


WRITER = """
import sys
from pathlib import Path
from ranklog.produce.ring import Ring
ring = Ring.create(Path(sys.argv[1]), 65536)
n = 0
while True:
    if ring.put(b"%d " % n + b"x" * (n % 200)):
        n += 1
        if n % 1000 == 0:
            print(n, flush=True)
"""


@pytest.mark.parametrize("kills", range(8))
def test_a_writer_killed_amid_a_record_leaves_every_one_it_had_put(
    tmp_path: Path, kills: int
) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path / "r")],
        env={**os.environ, "PYTHONPATH": PACKAGE},
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    bodies: list[bytes] = []
    while not (tmp_path / "r").exists() or (tmp_path / "r").stat().st_size < 65536:
        pass
    while True:
        try:
            reader = RingReader(tmp_path / "r")
            break
        except ValueError:  # its first page is not written yet
            continue
    while len(bodies) < 3000 + 100 * kills:
        bodies += reader.read()
        reader.free(reader.cursor)
    child.send_signal(signal.SIGKILL)
    confirmed = child.stdout.read().split()
    child.wait()
    child.stdout.close()
    bodies += _drained(reader, final=True)

    assert bodies == [b"%d " % n + b"x" * (n % 200) for n in range(len(bodies))]
    assert len(bodies) >= (int(confirmed[-1]) if confirmed else 0)
    assert reader.damaged == 0
    reader.close()
