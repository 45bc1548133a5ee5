"""The corpus is what its docstring says, so that figures over it mean something."""

from __future__ import annotations

from itertools import groupby

import numpy as np

from ranklog.stream.frames import decode_frame, encode_frame
from tests.bench.corpus import NEEDLE, RANKS, corpus, text_lines


def test_the_same_seed_gives_the_same_frames() -> None:
    assert list(corpus(3_000, 5)) == list(corpus(3_000, 5))
    assert list(corpus(3_000, 5)) != list(corpus(3_000, 6))


def test_frames_hold_all_lines_of_all_ranks_in_seq_order() -> None:
    frames = list(corpus(40_000, 1, frame_rows=100))
    assert sum(frame.rows for frame in frames) == 40_000
    assert all(decode_frame(encode_frame(frame)) == frame for frame in frames[:3])
    seqs: dict[str, int] = {}
    for frame in frames:
        for entry in frame.streams:
            assert entry.first_seq == seqs.get(entry.stream.stream_id, 0)
            seqs[entry.stream.stream_id] = entry.first_seq + entry.rows
    assert len(seqs) == RANKS
    for _, of_agent in groupby(
        sorted(frames, key=lambda f: (f.agent, f.number)), lambda f: f.agent
    ):
        times = np.concatenate([np.frombuffer(frame.ts, "<i8") for frame in of_agent])
        assert (np.diff(times) >= 0).all()


def test_text_is_one_line_a_row_with_its_time_rank_and_call_site() -> None:
    frame = next(corpus(2_000, 1))
    lines = text_lines(frame).split(b"\n")
    assert len(lines) == frame.rows + 1 and lines[-1] == b""
    assert b"".join(lines) == frame.text
    assert lines[0].startswith(b"2026-03-01 12:")
    assert b" [rank " in lines[0] and b".py:" in lines[0]


def test_planted_needles_are_as_many_as_asked_and_evenly_spread() -> None:
    frames = list(corpus(40_000, 1, planted=4))
    text = b"".join(map(text_lines, frames))
    assert text.count(NEEDLE.encode()) == 4
    assert b"checksum" not in text
    times = [
        int(t)
        for frame in frames
        for t, line in zip(
            np.frombuffer(frame.ts, "<i8"), text_lines(frame).splitlines(), strict=True
        )
        if NEEDLE.encode() in line
    ]
    steps = np.diff(sorted(times))
    assert steps.min() > 0.3 * steps.mean()


def test_rare_messages_are_there_and_rare() -> None:
    text = b"".join(text_lines(frame) for frame in corpus(600_000, 1))
    assert 0 < text.count(NEEDLE.encode()) < 30
