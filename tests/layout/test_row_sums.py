"""Sums of rows: equal for equal rows in any order and share, another one for any other row."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from ranklog.ingest.gather import gather
from ranklog.ingest.gather_points import gather_points
from ranklog.ingest.records import Received
from ranklog.layout.row_sums import altered_row, hash_lines, hash_records, hash_texts, sums_of_lines
from ranklog.layout.rows import Rows
from ranklog.model.frame import CallSite
from ranklog.stream.frames import encode_frame, header_hash
from tests.compact.test_points import SUMMARY
from tests.ingest.frames import T0, Row, make_frame, stream
from tests.point_frames import STREAM, Record, point_frame

WORDS = 1 << 64


def some_rows(rng: random.Random, count: int) -> Rows:
    """Lines of three streams, interleaved."""
    rows = [
        Row(
            "".join(rng.choices("abé\0 0123", k=rng.choice([0, 1, 7, 8, 9, 40]))),
            ts=T0 + rng.randrange(10**9),
            stream=stream(rng.randrange(3)),
            metadata={"loss": rng.random(), "s": "x" * rng.randrange(20)},
        )
        for _ in range(count)
    ]
    frame = make_frame(rows)
    assert encode_frame(frame)
    return gather([Received(frame, T0, header_hash(frame))]).rows


def in_order(rows: Rows) -> np.ndarray:
    return np.lexsort((rows.seq, rows.stream))


def pairs(data: bytes) -> list[tuple[int, int]]:
    numbers = np.frombuffer(data, "<u8").tolist()
    return list(zip(numbers[::2], numbers[1::2], strict=True))


@pytest.mark.parametrize("seed", range(20))
def test_sums_of_shares_add_up_to_those_of_the_whole(seed: int) -> None:
    rng = random.Random(seed)
    rows = some_rows(rng, 60)
    order, places = in_order(rows), np.arange(3, dtype=np.int32)
    share = np.array([rng.random() < 0.5 for _ in order])
    whole, one, other = (
        pairs(sums_of_lines(rows, chosen, places, 3))
        for chosen in (order, order[share], order[~share])
    )
    assert whole == [
        tuple((a + b) % WORDS for a, b in zip(x, y, strict=True))
        for x, y in zip(one, other, strict=True)
    ]


@pytest.mark.parametrize("seed", range(40))
def test_any_one_row_that_differs_is_found(seed: int) -> None:
    rng = random.Random(seed)
    rows = some_rows(rng, 60)
    row = rng.randrange(60)
    column, change = rng.choice(
        [("ts", 1), ("ts", -(2**40)), ("level", 2**14), ("iteration", 2**62)]
    )
    values = getattr(rows, column).copy()
    values[row] ^= change if change > 0 else 2**40
    changed = replace(rows, **{column: values})
    order, places = in_order(rows), np.arange(3, dtype=np.int32)
    said, found = (pairs(sums_of_lines(one, order, places, 3)) for one in (rows, changed))
    place, seq = int(rows.stream[row]), int(rows.seq[row])
    assert [at for at in range(3) if said[at] != found[at]] == [place]
    assert altered_row(said[place], found[place], [(0, 60)]) == seq
    assert altered_row(said[place], found[place], [(0, seq), (seq + 1, 60)]) is None


def test_every_byte_of_a_text_counts_and_so_does_its_end() -> None:
    texts = [b"", b"\0", b"\0\0", b"a", b"a\0", b"12345678", b"12345678\0", b"x" * 100]
    texts += [b"x" * at + b"y" + b"x" * (99 - at) for at in range(100)]
    data = np.frombuffer(b"".join(texts), np.uint8)
    length = np.array([len(text) for text in texts])
    begin = np.cumsum(length) - length
    hashes = hash_texts(data, begin, length)
    assert len(set(hashes.tolist())) == len(texts)
    shuffled = np.random.default_rng(1).permutation(len(texts))
    assert (hash_texts(data, begin[shuffled], length[shuffled]) == hashes[shuffled]).all()


def test_the_hash_of_a_text_does_not_depend_on_what_is_around_it() -> None:
    alone = hash_texts(np.frombuffer(b"loss 0.5", np.uint8), np.array([0]), np.array([8]))
    amid = hash_texts(
        np.frombuffer(b"##loss 0.5##########", np.uint8), np.array([2]), np.array([8])
    )
    at_the_end = hash_texts(np.frombuffer(b"#loss 0.5", np.uint8), np.array([1]), np.array([8]))
    assert alone.tolist() == amid.tolist() == at_the_end.tolist()


def test_hashes_are_those_that_stored_indexes_have() -> None:
    """docs/storage-format.md says how they are made; they never change."""
    rows = [
        Row("loss 0.5", ts=T0, level=20, iteration=7, site=CallSite("a.py:1", "f", None)),
        Row("é" * 20, ts=T0 + 1, body_at=2, metadata={"loss": 0.5, "n": -1, "s": "x"}, raw=b"\xff"),
    ]
    frame = make_frame(rows, first_seq={rows[0].stream: 9})
    gathered = gather([Received(frame, T0, header_hash(frame))]).rows
    assert [f"{h:016x}" for h in hash_lines(gathered, np.arange(2)).tolist()] == GOLDEN


def test_hashes_of_points_are_those_that_stored_indexes_have() -> None:
    records = [
        Record({"loss": 0.5, "lr": None}, iteration=3, context={"phase": "eval"}),
        Record({"grad": SUMMARY}, dims={"layer": "h.0"}, rank=2),
    ]
    frame = point_frame(records, first_seq={STREAM: 4})
    rows = gather_points([Received(frame, T0, header_hash(frame))]).rows
    assert [f"{h:016x}" for h in hash_records(rows, np.arange(2)).tolist()] == GOLDEN_POINTS


GOLDEN = ["e391efc62847c557", "a99e8c4107a90763"]
GOLDEN_POINTS = ["b7c97ad9a8a3b959", "091bca6d85b0064d"]


def test_nothing_that_was_altered_is_not_an_altered_row() -> None:
    assert altered_row((5, 6), (5, 6), [(0, 10)]) is None
    # by a multiple of 2^40: 2^24 seqs would fit
    assert altered_row((0, 0), (2**40, 3 * 2**40), [(0, 10)]) is None
    assert altered_row((0, 0), (2**3, 3 * 2**3), [(0, 10)]) == 3
    assert altered_row((0, 0), (2**3, 5), [(0, 10)]) is None
