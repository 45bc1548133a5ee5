from __future__ import annotations

import tempfile
from pathlib import Path
from zlib import crc32

from hypothesis import given
from hypothesis import strategies as st

from ranklog.agent.copies import Copies
from ranklog.produce.console import NOTE

WRITES = st.lists(st.tuples(st.binary(min_size=1, max_size=9), st.booleans()), max_size=12)


def noted(path: Path, begin: int, data: bytes, *, channel: int = 2, crc: int | None = None) -> None:
    with path.open("ab") as file:
        file.write(NOTE.pack(channel, begin, len(data), crc32(data) if crc is None else crc))


@given(writes=WRITES, cut=st.integers(1, 20))
def test_what_was_noted_is_left_out_in_whatever_portions_the_file_is_read(
    writes: list[tuple[bytes, bool]], cut: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "i.copies"
        path.touch()
        whole, wanted = b"", b""
        for data, is_copy in writes:
            if is_copy:
                noted(path, len(whole), data)
            else:
                wanted += data
            whole += data
        copies = Copies(path, 2)
        got, at, size = b"", 0, cut
        while at < len(whole):
            assert copies.refresh()
            final = at + size >= len(whole)
            kept, decided = copies.split(whole[at : at + size], at, final=final)
            got, at = got + kept, at + decided
            size = cut if decided else size + 1
        assert got == wanted
        copies.close()


def test_a_note_that_is_not_what_the_file_has_there_is_not_believed(tmp_path: Path) -> None:
    noted(tmp_path / "i.copies", 0, b"copy", crc=1)
    copies = Copies(tmp_path / "i.copies", 2)
    copies.refresh()

    assert copies.split(b"copy\nrest", 0, final=True) == (b"copy\nrest", 9)


def test_notes_of_another_channel_and_a_process_without_notes_change_nothing(
    tmp_path: Path,
) -> None:
    noted(tmp_path / "i.copies", 0, b"copy", channel=1)
    copies = Copies(tmp_path / "i.copies", 2)

    assert copies.refresh()
    assert copies.split(b"copy", 0, final=True) == (b"copy", 4)
    assert not Copies(tmp_path / "none.copies", 2).refresh()


def test_a_reader_that_starts_anew_behind_a_note_passes_it_over(tmp_path: Path) -> None:
    noted(tmp_path / "i.copies", 0, b"copy")
    copies = Copies(tmp_path / "i.copies", 2)
    copies.refresh()

    assert copies.split(b"y\nrest", 3, final=False) == (b"y\nrest", 6)
