"""What goes in comes back byte for byte, once."""

from __future__ import annotations

import gzip
import io
import os
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ranklog.errors import BadInput, Corrupt
from ranklog.importer import lines
from ranklog.model.frame import INVALID_UTF8, NO_LF, TS_ARRIVAL
from tests.importer.imported import NOW_NS, Imports

# content -> physical lines
CONTENTS = {
    "plain": (b"a\nb\n", 2),
    "no final line feed": (b"a\nb", 2),
    "empty": (b"", 0),
    "one line feed": (b"\n", 1),
    "blank lines": (b"\n\n\n", 3),
    "NUL": (b"a\0b\n\0\0\n\0", 3),
    "CR": (b" 10%|#|\r 20%|##|\r\n", 1),
    "CRLF": (b"a\r\nb\r\n", 2),
    "other separators": ("a\x0bb\x0cc\x1cd\x85e\u2028f\n".encode(), 1),
    "invalid UTF-8": (b"ok\n\xff\xfe bad \xe4\xb8\n\xf0\x9f\n", 3),
    "replacement characters": ("\ufffd\n".encode() + b"\xff\xef\xbf\xbd\n", 2),
    "surrogates": (b"\xed\xa0\x80\n", 1),
    "latin-1": ("Größe\n".encode("latin-1") * 3, 3),
    "long line": (b"x" * 100_000 + b"\ny\n", 2),
    "colours": (b"\x1b[32mgreen\x1b[0m\n", 1),
    "byte order mark": (b"\xef\xbb\xbfa\n", 1),
}


@pytest.mark.parametrize("name", CONTENTS)
def test_a_file_comes_back_byte_for_byte(name: str, imports: Imports, tmp_path: Path) -> None:
    content, count = CONTENTS[name]
    (tmp_path / "a.log").write_bytes(content)
    report = imports.run(tmp_path / "a.log")
    stored = imports.only()
    assert (stored.content, len(stored.rows)) == (content, count)
    (file,) = report.files
    assert (file.lines, file.stored, file.known, file.bytes, file.error) == (
        count,
        count,
        0,
        len(content),
        None,
    )


@pytest.mark.parametrize("name", CONTENTS)
@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress], ids=["gz", "zst"])
def test_a_compressed_file_is_known_by_its_bytes(
    name: str, pack: object, imports: Imports, tmp_path: Path
) -> None:
    content, count = CONTENTS[name]
    (tmp_path / "a.log").write_bytes(pack(content))  # type: ignore[operator]
    assert imports.run(tmp_path / "a.log").lines == count
    assert imports.only().content == content


def test_standard_input_is_read_to_its_end(imports: Imports) -> None:
    report = imports.run("-", stdin=io.BytesIO(b"a\nb"))
    assert (report.lines, imports.only().content) == (2, b"a\nb")
    assert imports.run("-", stdin=io.BytesIO(b"a\nb")).stored == 0
    assert imports.run("-", stdin=io.BytesIO(b"a\nbc\n")).stored == 1
    assert imports.only().content == b"a\nbc\n"


def test_standard_input_that_is_closed_is_an_error_of_the_report(imports: Imports) -> None:
    assert imports.run("-").files[0].error == "-: standard input is closed"


# --- in chunks ----------------------------------------------------------------------------------
_LINES = st.lists(
    st.one_of(
        st.sampled_from(
            [b"", b"x", b"\r", b"\0", b"\xff", "é日".encode(), b"0: a", b"[rank1]: b", b"y" * 70]
        ),
        st.binary(max_size=20).map(lambda b: b.replace(b"\n", b"")),
        st.sampled_from(
            [
                b"2024-01-02 03:04:05,678 INFO m - hello",
                b"Traceback (most recent call last):",
                b'  File "a.py", line 3, in f',
                b"ValueError: bad",
                b"[E1003 22:26:03.467156987 ProcessGroupNCCL.cpp:633] x",
                b"frame #0: y",
            ]
        ),
    ),
    max_size=30,
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    parts=_LINES,
    last=st.booleans(),
    chunk=st.integers(1, 200),
    giant=st.integers(8, 100),
)
def test_any_bytes_come_back_however_they_are_cut(
    parts: list[bytes],
    last: bool,
    chunk: int,
    giant: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    content = b"\n".join(parts) + (b"\n" if last and parts else b"")
    path = tmp_path_factory.mktemp("any") / "a.log"
    path.write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "CHUNK_BYTES", chunk)
        patch.setattr(lines, "LINE_BYTES_MAX", giant)
        patch.setattr("ranklog.importer.sources.BLOCK_BYTES", 7)
        imports = Imports(patch)
        report = imports.run(path)
    if report.files[0].error is not None:
        packed = content.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd"))
        assert packed or "not a log" in report.files[0].error
        return
    assert imports.only().content == content
    assert report.lines == content.count(b"\n") + (not content.endswith(b"\n") and content != b"")


def test_a_line_too_long_for_a_frame_is_stored_in_pieces(
    imports: Imports, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "CHUNK_BYTES", 1 << 20)
    monkeypatch.setattr(lines, "LINE_BYTES_MAX", 1 << 20)
    content = "é".encode() * (3 << 19) + b"\nshort\n"
    (tmp_path / "a.log").write_bytes(content)
    assert imports.run(tmp_path / "a.log").lines == 2
    stored = imports.only()
    assert stored.content == content
    assert not any(row.flags & INVALID_UTF8 for row in stored.rows)
    assert [bool(row.flags & NO_LF) for row in stored.rows][-2:] == [False, False]


# --- again --------------------------------------------------------------------------------------
def test_the_same_file_again_stores_nothing(imports: Imports, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b"a\nb")
    imports.run(tmp_path / "a.log")
    objects = [info.key for info in imports.store.list("")]
    report = imports.run(tmp_path, now_ns=NOW_NS + 1)
    assert (report.stored, report.known, report.lines) == (0, 2, 2)
    assert [info.key for info in imports.store.list("")] == objects


@pytest.mark.parametrize(
    ("before", "after", "stored", "count"),
    [
        (b"a\n", b"a\nb\n", 1, 2),
        (b"a\nb", b"a\nb\n", 1, 2),
        (b"a\nb", b"a\nbcd", 1, 2),
        (b"a\nb", b"a\nbcd\ne\n", 2, 3),
        (b"", b"a\n", 1, 1),
        (b"a\n\xe4\xb8", b"a\n\xe4\xb8\x80\n", 1, 2),
    ],
)
def test_a_file_that_grew_adds_its_tail(
    before: bytes, after: bytes, stored: int, count: int, imports: Imports, tmp_path: Path
) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(before)
    imports.run(path)
    path.write_bytes(after)
    report = imports.run(path, now_ns=NOW_NS + 1)
    assert (report.stored, report.lines) == (stored, count)
    assert imports.only().content == after
    assert imports.run(path, now_ns=NOW_NS + 2).stored == 0


def test_a_file_that_was_replaced_is_another_incarnation(imports: Imports, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    for number, content in enumerate([b"a\nb\n", b"c\n", b"", b"a\nb\nd\n"]):
        path.write_bytes(content)
        imports.run(path, now_ns=NOW_NS + number)
    assert [stored.content for stored in imports.streams] == [b"a\nb\nd\n", b"c\n", b""]
    assert len({stored.stream.channel for stored in imports.streams}) == 1


def test_a_replaced_file_with_the_same_beginning_is_another_incarnation(
    imports: Imports, tmp_path: Path
) -> None:
    path = tmp_path / "a.log"
    beginning = b"x\n" * 40_000
    for number, end in enumerate([b"a\n", b"b\n"]):
        path.write_bytes(beginning + end)
        imports.run(path, now_ns=NOW_NS + number)
    assert [stored.content[-2:] for stored in imports.streams] == [b"a\n", b"b\n"]


def test_a_crash_before_the_record_doubles_no_line(imports: Imports, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b"a\nb\n")
    imports.crash = True
    with pytest.raises(KeyboardInterrupt):
        imports.run(tmp_path / "a.log")
    first, imports.frames, imports.crash = imports.frames, [], False
    assert imports.run(tmp_path / "a.log", now_ns=NOW_NS + 1).stored == 2
    assert imports.frames == first
    assert imports.run(tmp_path / "a.log", now_ns=NOW_NS + 2).stored == 0


def test_a_damaged_record_says_what_to_do(imports: Imports, tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_bytes(b"a\nb\n")
    imports.run(log)
    done = next(o.key for o in imports.store.list("t/runs/") if o.key.endswith(".done.json"))
    imports.store.put(done, b"")
    with pytest.raises(Corrupt, match="damaged import record") as raised:
        imports.run(log)
    assert done in raised.value.message and "remove it" in (raised.value.hint or "")
    imports.store.delete(done)
    imports.run(log)
    assert imports.only().content == b"a\nb\n"


def test_a_crash_before_a_file_grew_keeps_its_incarnation(imports: Imports, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b"a\nb\n")
    imports.crash = True
    with pytest.raises(KeyboardInterrupt):
        imports.run(tmp_path / "a.log")
    imports.crash = False
    (tmp_path / "a.log").write_bytes(b"a\nb\nc\n")
    imports.run(tmp_path / "a.log", now_ns=NOW_NS + 1)
    assert imports.only().content == b"a\nb\nc\n"


def test_a_second_launch_knows_nothing_of_the_first(imports: Imports, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b"a\n")
    imports.run(tmp_path / "a.log")
    assert imports.run(tmp_path / "a.log", launch="second").stored == 1


# --- many files ---------------------------------------------------------------------------------
def test_a_folder_is_read_in_order_and_each_file_once(imports: Imports, tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "x.log").write_bytes(b"1\n")
    (tmp_path / "a.log").write_bytes(b"2\n")
    (tmp_path / "link.log").symlink_to("a.log")
    report = imports.run(tmp_path, tmp_path / "a.log")
    assert [file.channel for file in report.files] == ["a.log", "b/x.log"]


def test_one_bad_file_does_not_stop_the_others(imports: Imports, tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(os.urandom(4096))
    (tmp_path / "b.gz").write_bytes(b"\x1f\x8b\x08" + b"?" * 50)
    (tmp_path / "c.png").write_bytes(b"\x89PNG\r\n\x1a\n....")
    (tmp_path / "d.gz").write_bytes(gzip.compress(b"".join(b"%d\n" % i for i in range(9999)))[:-9])
    (tmp_path / "e.zst").write_bytes(zstandard.compress(b"a\nb\n" * 999)[:-3])
    (tmp_path / "z.log").write_bytes(b"fine\n")
    report = imports.run(tmp_path, tmp_path / "missing.log")
    errors = {Path(file.path).name: file.error for file in report.files}
    assert {name for name, error in errors.items() if error} == {
        "a.bin",
        "b.gz",
        "c.png",
        "d.gz",
        "e.zst",
        "missing.log",
    }
    assert all(str(error).startswith(file.path) for file in report.errors if (error := file.error))
    assert imports.by_channel()["z.log"].content == b"fine\n"
    assert imports.by_channel()["d.gz"].content.startswith(b"0\n1\n2\n")


def test_an_unreadable_file_is_named(imports: Imports, tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root reads everything")
    (tmp_path / "a.log").write_bytes(b"a\n")
    (tmp_path / "a.log").chmod(0)
    assert imports.run(tmp_path).files[0].error == f"{tmp_path}/a.log: permission denied"


def test_small_files_share_a_batch(imports: Imports, tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"{number:02d}.log").write_bytes(b"a\n")
    imports.run(tmp_path)
    records = [info.key for info in imports.store.list("t/runs/")]
    assert len(records) == 2  # one begin, one done
    assert len(imports.streams) == 20


# --- options ------------------------------------------------------------------------------------
def test_lines_without_any_time_have_the_files(imports: Imports, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b"a\nb\n")
    os.utime(tmp_path / "a.log", ns=(10**18, 10**18))
    imports.run(tmp_path / "a.log")
    assert [(row.ts_ns, row.flags) for row in imports.only().rows] == [(10**18, TS_ARRIVAL)] * 2


def test_fences_cover_every_row_of_their_hour(imports: Imports, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(
        b"2024-01-01 00:59:59 INFO a\n2024-01-01 01:00:00 INFO b\n2024-01-01 00:10:00 INFO c\n"
    )
    imports.run(path)
    hour = 1_704_067_200 // 3600
    fences = {fence.hour: fence.ranges for fence in imports.only().fences}
    assert fences == {hour: ((0, 1), (2, 3)), hour + 1: ((1, 2),)}
    with path.open("ab") as file:
        file.write(b"2024-01-01 00:20:00 INFO d\n")
    imports.run(path, now_ns=NOW_NS + 1)
    fences = {fence.hour: fence.ranges for fence in imports.only().fences}
    assert fences[hour] == ((0, 1), (2, 4))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tz": "Mars/Olympus"}, "no time zone"),
        ({"date": "yesterday"}, "no day"),
        ({"rank_from": "("}, "--rank-from"),
        ({"rank_from": "node"}, "no group"),
        ({"preset": "nonsense"}, "no presets"),
    ],
)
def test_an_unusable_option_is_refused(
    options: dict[str, str], message: str, imports: Imports, tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match=message):
        imports.run(tmp_path, **options)


def test_standard_input_of_two_ranks_is_two_streams(imports: Imports) -> None:
    for number, rank in enumerate([0, 1, 1]):
        imports.run("-", stdin=io.BytesIO(b"hello\n"), rank=rank, now_ns=NOW_NS + number)
    assert [stored.stream.rank for stored in imports.streams] == [0, 1]


def test_a_known_file_keeps_its_rank(imports: Imports, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b"a\n")
    imports.run(tmp_path / "a.log", rank=3)
    report = imports.run(tmp_path / "a.log", rank=4, now_ns=NOW_NS + 1)
    assert (report.stored, report.files[0].rank) == (0, 3)
    assert report.files[0].notes == ["known from an earlier import, with rank 3"]
