from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ranklog.produce.journal import RECORD, JournalReader, encode_record


def test_records_come_back_in_order_while_the_file_grows(tmp_path: Path) -> None:
    path = tmp_path / "j"
    path.touch()
    reader = JournalReader(path)
    whole = encode_record([2, "é\udc80"]) + encode_record([2, None, 1.5])
    seen = []
    for byte in range(len(whole)):
        with path.open("ab") as file:
            file.write(whole[byte : byte + 1])
        seen += list(reader.read())

    assert seen == [[2, "é\udc80"], [2, None, 1.5]]
    assert (reader.offset, reader.damaged) == (len(whole), 0)
    reader.close()


def test_a_record_that_a_full_disk_cut_damages_itself_only(tmp_path: Path) -> None:
    path = tmp_path / "j"
    cut = encode_record([2, "lost"])[:-3]
    path.write_bytes(encode_record([2, "before"]) + cut + encode_record([2, "after" * 100]))
    reader = JournalReader(path)

    assert list(reader.read()) == [[2, "before"], [2, "after" * 100]]
    assert reader.damaged >= 1
    reader.close()


def test_an_unfinished_record_is_waited_for_and_given_up_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "j"
    path.write_bytes(encode_record([2, "a"]) + encode_record([2, "b"])[:-1])
    reader = JournalReader(path)

    assert list(reader.read()) == [[2, "a"]]
    assert reader.damaged == 0
    assert list(reader.read(final=True)) == []
    assert reader.damaged >= 1
    reader.close()


@given(st.lists(st.binary(max_size=30), max_size=4), st.binary(max_size=30))
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_noise_between_records_never_raises_and_never_hides_one(
    tmp_path: Path, noises: list[bytes], tail: bytes
) -> None:
    marks: list[list[object]] = [[2, f"mark {n}", "x" * 40] for n in range(len(noises) + 1)]
    mixed = b"".join(n + encode_record(m) for n, m in zip([b"", *noises], marks, strict=True))
    (tmp_path / "j").write_bytes(mixed + tail + bytes(RECORD.size))
    reader = JournalReader(tmp_path / "j")
    seen = list(reader.read(final=True))
    reader.close()

    assert seen == marks
