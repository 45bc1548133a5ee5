from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranklog import limits
from ranklog.agent import pieces as cutting
from ranklog.agent import text_source as sources
from ranklog.agent.framer import Framer
from ranklog.agent.labels import Labels
from ranklog.agent.mask import Masker
from ranklog.agent.rows import StreamState
from ranklog.agent.text_source import TextSource
from ranklog.model.frame import (
    INVALID_UTF8,
    LEVEL_INFERRED,
    LEVEL_INHERITED,
    NO_LF,
    TS_ARRIVAL,
)
from ranklog.stream.frames import decode_frame
from tests.agent.reading import Seen, lines_of
from tests.stream.test_frames import stream

NOW_NS = 1_700_000_000_000_000_000
TRACE = b"""before
Traceback (most recent call last):
  File "a.py", line 1, in f
    g()
ValueError: x

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "a.py", line 3, in <module>
RuntimeError: y
after
"""


def read(
    tmp_path: Path, *portions: bytes, final: bool = True, labels: str = ""
) -> tuple[list[Seen], list[bytes]]:
    """What a source makes of bytes that arrive in portions: lines, and the rows' raw bytes."""
    path = tmp_path / "out"
    path.write_bytes(b"")
    framer = Framer("agent")
    form = Labels(labels) if labels else None
    source = TextSource(path, StreamState(stream(channel="stdout")), Masker(), labels=form)
    for portion in portions:
        with path.open("ab") as file:
            file.write(portion)
        while source.read(framer, NOW_NS, final=False):
            pass
    while source.read(framer, NOW_NS, final=final):
        pass
    frames, _ = framer.cut()
    source.close()
    decoded = [decode_frame(frame.data) for frame in frames]
    return [line for frame in decoded for line in lines_of(frame)], [f.raw for f in decoded]


def test_lines_are_joined_from_portions(tmp_path: Path) -> None:
    lines, _ = read(tmp_path, b"a", b"b\nc\r", b"\n", b"\n", b"last")

    assert [line.text for line in lines] == ["ab", "c\r", "", "last"]
    assert [line.flags for line in lines] == [TS_ARRIVAL] * 3 + [TS_ARRIVAL | NO_LF]


def test_a_partial_line_waits(tmp_path: Path) -> None:
    lines, _ = read(tmp_path, b"a\nb", final=False)

    assert [line.text for line in lines] == ["a"]


def test_invalid_utf8_is_kept_as_bytes(tmp_path: Path) -> None:
    lines, raws = read(tmp_path, b"ok\nbad \xff\xfe!\n")

    assert [line.text for line in lines] == ["ok", "bad ��!"]
    assert [bool(line.flags & INVALID_UTF8) for line in lines] == [False, True]
    assert raws == [b"bad \xff\xfe!"]


def test_a_progress_bar_keeps_its_last_state(tmp_path: Path) -> None:
    lines, _ = read(tmp_path, b"\r 10%\r 20%", b"\r 30%\nnext\n\rstill 1%\rstill 2%")

    assert [line.text for line in lines] == [" 30%", "next", "still 2%"]


def test_a_progress_bar_that_goes_on_is_a_line_now_and_then(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"")
    framer = Framer("agent")
    source = TextSource(path, StreamState(stream(channel="stderr")), Masker())
    steps = [(f"\r {n:2d}%", 5 * n) for n in range(8)] + [("\n", 36), ("next\n", 37)]
    for text, second in steps:
        with path.open("a") as file:
            file.write(text)
        source.read(framer, NOW_NS + second * limits.SECOND_NS, final=False)
    [frame] = framer.cut()[0]
    source.close()

    lines = lines_of(decode_frame(frame.data))
    assert [line.text for line in lines] == ["  2%", "  4%", "  6%", "  7%", "next"]
    [entry] = decode_frame(frame.data).streams
    assert sum(drop.lines for drop in entry.drops) == 5  # 0, 1, 3, 5 and nothing, before the first


@given(st.lists(st.tuples(st.sampled_from([b"\r", b"1%", b"22%", b"\n"]), st.integers(0, 9))))
def test_lines_of_a_progress_bar_and_what_was_dropped_are_what_was_written(
    pieces: list[tuple[bytes, int]],
) -> None:
    """Without line feeds and CRs alone, whatever was written is a line or dropped."""
    with tempfile.TemporaryDirectory() as folder:
        path, now = Path(folder) / "out", NOW_NS
        path.write_bytes(b"")
        framer = Framer("agent")
        source = TextSource(path, StreamState(stream(channel="stderr")), Masker())
        for piece, seconds in pieces:
            now += seconds * limits.SECOND_NS
            with path.open("ab") as file:
                file.write(piece)
            while source.read(framer, now, final=False):
                pass
        while source.read(framer, now, final=True):
            pass
        frames = [decode_frame(frame.data) for frame in framer.cut()[0]]
        source.close()

    drops = [drop.lines for frame in frames for entry in frame.streams for drop in entry.drops]
    assert all(lines > 0 for lines in drops)
    written = b"".join(piece for piece, _ in pieces)
    shown = [line.text for frame in frames for line in lines_of(frame)]
    last_states = [line.rpartition(b"\r")[2] for line in written.split(b"\n")[:-1]]
    assert [text for text in last_states if text and text.decode() not in shown] == []


def test_an_endless_progress_bar_does_not_grow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "PIECE_BYTES", 64)
    bar = b"".join(b"\r%3d%%" % n for n in range(100))
    lines, _ = read(tmp_path, bar[:150], bar[150:], b"\n")

    assert [line.text for line in lines] == [" 99%"]


def test_a_traceback_is_a_group_and_an_error(tmp_path: Path) -> None:
    lines, _ = read(tmp_path, TRACE)

    assert [line.group for line in lines] == [None, *[1] * 10, None]
    assert [line.level for line in lines] == [None, *[40] * 10, None]
    assert lines[1].flags & LEVEL_INFERRED
    assert all(line.flags & LEVEL_INHERITED for line in lines[2:11])


def test_torchs_prefix_is_an_envelope(tmp_path: Path) -> None:
    lines, _ = read(tmp_path, b"[rank3]: Traceback (most recent call last):\n[rank3]:   File\n")

    assert [(line.group, line.level) for line in lines] == [(0, 40), (0, 40)]


@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=6))
@settings(max_examples=100)
def test_lines_do_not_depend_on_the_portions(data: bytes, cuts: list[int]) -> None:
    data = data.replace(b"\x01", b"\r").replace(b"\x02", b"\n").replace(b"\x00", TRACE)
    edges = [0, *sorted(cuts), len(data)]
    portions = [data[a:b] for a, b in itertools.pairwise(edges)]
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(sources, "PIECE_BYTES", 40)
        patch.setattr(cutting, "PIECE_BYTES", 40)
        assert read(Path(folder), data) == read(Path(folder), *portions)


# --- labels ---------------------------------------------------------------------------------------

TWO_DIE = b"""0: begin
1: begin
0: Traceback (most recent call last):
1: Traceback (most recent call last):
0:   File "a.py", line 1, in f
1:   File "a.py", line 2, in g
0: ValueError: x
srun: error: n1: task 0: Exited with exit code 1
2: still here
1: [rank1]: KeyError: y
"""


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, len(TWO_DIE)), max_size=6))
def test_tracebacks_of_labelled_ranks_are_apart_however_they_arrive(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(TWO_DIE)]
    portions = [TWO_DIE[a:b] for a, b in itertools.pairwise(edges)]
    with tempfile.TemporaryDirectory() as folder:
        lines, _ = read(Path(folder), *portions, labels="slurm")

    own = -7  # the stream's rank, in these tests
    ranks = [line.rank if line.text[0] != "s" else own for line in lines]
    assert ranks == [0, 1, 0, 1, 0, 1, 0, own, 2, 1]
    assert [line.group for line in lines] == [None, None, 2, 3, 2, 3, 2, None, None, 3]
    assert {line.level for line in lines if line.group is not None} == {40}
    assert {line.level for line in lines if line.group is None} == {None}
    assert [line.text for line in lines] == TWO_DIE.decode().splitlines()


def test_an_agent_that_goes_on_knows_whose_traceback_is_open(tmp_path: Path) -> None:
    path = tmp_path / "out"
    half = TWO_DIE.index(b"0:   File")
    path.write_bytes(TWO_DIE[:half])
    framer, state = Framer("agent"), StreamState(stream(channel="stdout"))
    first = TextSource(path, state, Masker(), labels=Labels("slurm"))
    while first.read(framer, NOW_NS, final=False):
        pass
    saved = first.saved()
    first.close()
    path.write_bytes(TWO_DIE)
    second = TextSource(path, state, Masker(), labels=Labels("slurm"))
    second.restore(saved)
    while second.read(framer, NOW_NS, final=True):
        pass
    second.close()

    [frame] = framer.cut()[0]
    groups = [line.group for line in lines_of(decode_frame(frame.data))]
    assert groups == [None, None, 2, 3, 2, 3, 2, None, None, 3]


def test_the_last_state_of_a_labelled_progress_bar_is_of_its_rank(tmp_path: Path) -> None:
    lines, _ = read(tmp_path, b"[1,4]<stderr>: 10%\r20%\r100%\n", labels="mpi")

    assert [(line.rank, line.text) for line in lines] == [(4, "100%")]
