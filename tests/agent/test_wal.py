"""The log of the agent: what was appended is there, however the agent or the disk ended."""

from __future__ import annotations

import errno
import os
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranklog.agent import wal as wal_module
from ranklog.agent.wal import Wal
from ranklog.agent.wal_segment import WalFrame

KIB = 1024


def frame(n: int, size: int = 100, klass: int = 0) -> WalFrame:
    return WalFrame(klass, f"tenant/{n}", random.Random(n).randbytes(size))


def change(n: int) -> dict[str, dict[str, int | None]]:
    return {"at": {"ring": n}}


def waiting(wal: Wal) -> list[bytes]:
    return [pending.data for pending in wal.pending()]


def deliver_all(wal: Wal) -> list[bytes]:
    seen = []
    while pending := wal.pending():
        seen += [one.data for one in pending]
        wal.delivered(pending)
    return seen


def test_what_was_appended_waits_in_order_and_survives_the_agent(tmp_path: Path) -> None:
    wal = Wal(tmp_path)
    wal.append([frame(0), frame(1)], change(1))
    end = wal.append([frame(2)], change(2))
    wal.close()

    again = Wal(tmp_path)
    assert again.state == {"at": {"ring": 2}}
    assert again.end == end
    assert waiting(again) == [frame(n).data for n in range(3)]
    assert [pending.entry.key for pending in again.pending()] == [f"tenant/{n}" for n in range(3)]


def test_what_was_delivered_is_not_sent_again(tmp_path: Path) -> None:
    wal = Wal(tmp_path)
    wal.append([frame(0), frame(1)], change(1))
    wal.append([frame(2)], change(2))
    first, second, third = wal.pending()

    assert wal.delivered([first]) == []  # half a block: its state may not be told yet
    assert wal.front == (0, first.block.at)
    assert wal.delivered([second]) == [((0, first.block.end), change(1))]
    wal.close()

    again = Wal(tmp_path)
    assert waiting(again) == [third.data]
    assert again.delivered(again.pending()) == [(again.end, change(2))]
    assert again.front == again.end
    assert (again.unsent, again.unsent_bytes) == (0, 0)


def test_an_agent_that_sent_all_leaves_no_room_taken_and_the_next_one_takes_it_again(
    tmp_path: Path,
) -> None:
    wal = Wal(tmp_path, segment_bytes=1024 * KIB)
    room = wal.disk_bytes
    wal.append([frame(0)], change(1))
    wal.close()
    assert wal_module.disk_bytes(tmp_path / "spare") > 0  # a frame waits

    wal = Wal(tmp_path, segment_bytes=1024 * KIB)
    assert deliver_all(wal) == [frame(0).data]
    wal.close()
    assert sum(wal_module.disk_bytes(path) for path in tmp_path.iterdir()) <= 8 * KIB

    again = Wal(tmp_path, segment_bytes=1024 * KIB)
    assert (again.state, again.unsent, again.disk_bytes) == ({"at": {"ring": 1}}, 0, room)
    again.append([frame(1)], change(2))
    again.close()
    assert waiting(Wal(tmp_path)) == [frame(1).data]


def test_a_block_that_was_cut_short_is_not_there(tmp_path: Path) -> None:
    wal = Wal(tmp_path)
    wal.append([frame(0)], change(1))
    whole = wal.end[1]
    wal.append([frame(1, 5_000)], change(2))
    end = wal.end[1]
    wal.close()
    [path] = tmp_path.glob("*.wal")
    data = path.read_bytes()

    for cut in [whole, whole + 1, whole + 30, whole + 200, end - 1]:
        path.write_bytes(data[:cut] + bytes(len(data) - cut))
        again = Wal(tmp_path)
        assert again.state == change(1)
        assert waiting(again) == [frame(0).data]
        again.append([frame(7)], change(7))  # over what is left of the other
        again.close()
        third = Wal(tmp_path)
        assert waiting(third) == [frame(0).data, frame(7).data]
        third.close()


def test_delivered_files_are_dropped_from_the_front_and_the_state_stays(tmp_path: Path) -> None:
    wal = Wal(tmp_path, segment_bytes=128 * KIB)
    for n in range(20):
        wal.append([frame(n, 20 * KIB)], change(n))
    assert len(list(tmp_path.glob("*.wal"))) == 4
    assert deliver_all(wal) == [frame(n, 20 * KIB).data for n in range(20)]

    assert [path.name for path in tmp_path.glob("*.wal")] == ["00000003.wal"]
    wal.close()
    assert Wal(tmp_path, segment_bytes=128 * KIB).state == change(19)


def test_a_file_that_was_just_begun_takes_nothing_with_it(tmp_path: Path) -> None:
    wal = Wal(tmp_path)
    wal.append([frame(0)], change(1))
    wal.close()
    (tmp_path / "00000001.wal").write_bytes(bytes(4096))

    again = Wal(tmp_path)
    assert again.state == change(1)
    assert waiting(again) == [frame(0).data]


def test_a_block_larger_than_a_file_is_whole(tmp_path: Path) -> None:
    wal = Wal(tmp_path, segment_bytes=128 * KIB)
    frames = [frame(n, 100 * KIB) for n in range(5)]
    wal.append([frame(9)], change(0))
    wal.append(frames, change(1))
    wal.append([frame(8)], change(2))
    wal.close()

    again = Wal(tmp_path, segment_bytes=128 * KIB)
    assert deliver_all(again) == [frame(9).data, *(f.data for f in frames), frame(8).data]
    assert again.state == change(2)


def test_a_full_disk_uses_the_spare_and_then_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wal = Wal(tmp_path, segment_bytes=128 * KIB)
    monkeypatch.setattr(wal_module, "allocated", lambda path, size: None)
    real_open = os.open

    def no_new_files(path: Path, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_CREAT:
            raise OSError(errno.ENOSPC, "no room")
        return real_open(path, flags, mode)

    wal.append([frame(0, 120 * KIB)], change(0))
    monkeypatch.setattr(wal_module.os, "open", no_new_files)
    wal.append([frame(1, 120 * KIB)], change(1))
    with pytest.raises(OSError, match="no room"):
        wal.append([frame(2, 120 * KIB)], change(2))

    assert wal.state == change(1)
    assert deliver_all(wal) == [frame(0, 120 * KIB).data, frame(1, 120 * KIB).data]


def test_a_dropped_frame_keeps_its_head_and_gives_its_disk_back(tmp_path: Path) -> None:
    wal = Wal(tmp_path)
    wal.append([frame(0, 200 * KIB, klass=1), frame(1, klass=2)], change(1))
    [(number, entry), (_, kept)] = wal.unsent_frames()
    before = wal.disk_bytes
    wal.drop(number, entry, keep_bytes=64)

    assert before - wal.disk_bytes > 180 * KIB
    assert waiting(wal) == [frame(1).data]
    assert (wal.unsent, kept.klass) == (1, 2)
    path = next(tmp_path.glob("*.wal"))
    assert path.read_bytes()[entry.at : entry.at + 64] == frame(0, 200 * KIB).data[:64]
    wal.close()
    assert waiting(Wal(tmp_path)) == [frame(1).data]


def test_frames_of_a_class_can_go_first(tmp_path: Path) -> None:
    wal = Wal(tmp_path)
    for n in range(4):
        wal.append([frame(n, klass=n % 2)], change(n))
    urgent = wal.pending(klass=1)
    assert [one.data for one in urgent] == [frame(1).data, frame(3).data]
    wal.delivered(urgent)

    assert deliver_all(wal) == [frame(0).data, frame(2).data]


def test_a_frame_that_the_disk_lost_is_counted_and_the_rest_is_sent(tmp_path: Path) -> None:
    wal = Wal(tmp_path)
    wal.append([frame(0), frame(1)], change(1))
    [(_, entry), _] = wal.unsent_frames()
    path = next(tmp_path.glob("*.wal"))
    with path.open("r+b") as file:
        file.seek(entry.at)
        file.write(b"\0\0\0")

    assert waiting(wal) == [frame(1).data]
    assert wal.damaged == 1


@settings(max_examples=60, deadline=None)
@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("append"), st.integers(0, 3), st.integers(0, 60_000)),
            st.tuples(st.just("deliver"), st.integers(1, 5), st.just(0)),
            st.tuples(st.just("reopen"), st.just(0), st.just(0)),
        ),
        max_size=30,
    )
)
def test_every_frame_is_handed_out_once_in_order_over_any_number_of_agents(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, int]]
) -> None:
    folder = tmp_path_factory.mktemp("wal")
    wal = Wal(folder, segment_bytes=128 * KIB)
    put: list[bytes] = []
    got: list[bytes] = []
    for number, (step, count, size) in enumerate(steps):
        if step == "append":
            frames = [frame(number * 10 + n, size) for n in range(count)]
            wal.append(frames, change(number))
            put += [one.data for one in frames]
        elif step == "deliver":
            pending = wal.pending()[:count]
            got += [one.data for one in pending]
            wal.delivered(pending)
        else:
            state = wal.state
            wal.close()
            wal = Wal(folder, segment_bytes=128 * KIB)
            assert wal.state == state
    got += deliver_all(wal)

    assert got == put
    wal.close()
