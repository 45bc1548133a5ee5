"""The ring: what is put comes out, in order, whoever reads it and however the writer ends."""

from __future__ import annotations

import errno
import gc
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
from ranklog.produce import ring as ring_module
from ranklog.produce.ring import DROP_CLASSES, FULL, HEADER_BYTES, REENTERED, TOO_LARGE, Ring
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
    size=st.sampled_from([1024, 1031, 4096]),
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
    body = bytes(120)
    plain = 0
    while ring.put(body):
        plain += 1
    reserved = 0
    while ring.put(body, reserve=True):
        reserved += 1

    assert plain == (SMALL - SMALL // 8) // 128
    assert reserved == SMALL // 128 - plain
    assert ring.offer(body) == FULL
    assert ring.offer(bytes(SMALL), True) == TOO_LARGE

    reader = RingReader(ring.path)
    assert len(_drained(reader)) == plain + reserved
    reader.free(reader.cursor)
    assert ring.put(body)
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


def test_a_dead_writers_unpublished_record_is_salvaged_if_whole(tmp_path: Path) -> None:
    ring = Ring.create(tmp_path / "r", SMALL)
    ring.put(b"published")
    before = ring._head
    ring.put(b"copied")
    ring._words[ring_module.HEAD] = before  # as if killed between copy and publication
    ring.close()
    reader = RingReader(tmp_path / "r")

    assert reader.read() == [b"published"]
    assert reader.read() == []
    assert reader.read(final=True) == [b"copied"]
    assert reader.read(final=True) == []
    assert reader.records == 2
    reader.close()


def test_a_torn_tail_and_an_earlier_laps_records_are_not_salvaged(tmp_path: Path) -> None:
    ring = Ring.create(tmp_path / "r", 1024)
    reader = RingReader(ring.path)
    for n in range(1024 // 32):  # one lap exactly: the next record would lie on a whole old one
        assert ring.put(b"%024d" % n, True)
        reader.read()
        reader.free(reader.cursor)

    assert ring._head == 1024
    assert reader.read(final=True) == []
    ring._memory[HEADER_BYTES : HEADER_BYTES + 12] = b"\x20\0\0\0torn...."
    assert reader.read(final=True) == []
    assert reader.damaged == 0
    reader.close()
    ring.close()


def test_a_damaged_record_is_skipped_and_counted(tmp_path: Path) -> None:
    ring = Ring.create(tmp_path / "r", SMALL)
    for body in (b"one", b"two", b"three"):
        ring.put(body)
    at = HEADER_BYTES + 8 + 3 + 8  # the body of "two"
    ring._memory[at : at + 1] = b"T"
    reader = RingReader(ring.path)

    assert reader.read() == [b"one"]
    assert [reader.read() for _ in range(4)] == [[], [], [], [b"three"]]
    assert reader.damaged == 1
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


def test_a_signal_handler_amid_a_record_is_told_and_never_waits(tmp_path: Path) -> None:
    ring = Ring.create(tmp_path / "r", 1 << 20)
    answers: set[int] = set()
    inside = 0

    def handler(*_: object) -> None:
        nonlocal inside
        inside += 1
        answers.add(ring.offer(b"handler"))

    before = signal.signal(signal.SIGPROF, handler)
    signal.setitimer(signal.ITIMER_PROF, 0.0002, 0.0002)
    try:
        put = 0
        while REENTERED not in answers and put < 2_000_000:
            put += ring.put(b"line")
            if put % 20_000 == 0:
                with ring._lock:
                    ring._head = 0
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)

    assert inside
    assert REENTERED in answers
    assert ring.put(b"after")
    ring.close()


def test_a_destructor_amid_a_record_is_told(tmp_path: Path) -> None:
    ring = Ring.create(tmp_path / "r", SMALL)
    answers = []

    class Loud:
        def __del__(self) -> None:
            answers.append(ring.offer(b"from a destructor"))

    def copy_and_die(data: bytes, start: int) -> int:
        Loud()
        return original(data, start)

    original = ring_module.crc32
    ring_module.crc32 = copy_and_die
    try:
        assert ring.put(b"line")
    finally:
        ring_module.crc32 = original
    gc.collect()

    assert answers == [REENTERED]
    reader = RingReader(ring.path)
    assert reader.read() == [b"line"]
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
