from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from ranklog.scan.filesystem import RangedFile


class Letters:
    """Stands where a RangedObject does: byte n is n."""

    length = 200

    def read(self, start: int, end: int) -> bytes:
        return bytes(range(start, min(end, self.length)))


def test_threads_that_share_a_file_read_where_each_has_sought() -> None:
    file = RangedFile(Letters())  # type: ignore[arg-type]
    turns = threading.Barrier(2)

    def read(at: int) -> bytes:
        turns.wait(10)
        file.seek(at)
        turns.wait(10)  # now both have sought
        if at:
            turns.wait(10)  # and the other has read
        found = file.read(5)
        if not at:
            turns.wait(10)
        return found

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(read, (0, 100))) == [bytes(range(5)), bytes(range(100, 105))]
    assert file.seek(-3, 2) == 197
    assert (file.read(), file.tell()) == (bytes([197, 198, 199]), 200)
