"""The two tokenisers: golden cases for the pure one, and equality of both over wild text."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranklog.layout import bloom, tokens, tokens_pure
from ranklog.layout.bloom_build import build_bloom
from ranklog.limits import TOKEN_BYTES_MAX

PIECES = [
    "",
    "\x00",
    "\r",
    "\x1b[31m",
    "é",
    "日",
    "\u212a",
    "ſ",
    " ",
    "rank",
    "Abc",
    "12",
    "7e5",
    "1E",
    "a1",
]
PIECES += [
    "deadbeef",
    "f00d",
    "0xFF",
    "nccl2",
    "x" * 9,
    "9" * 17,
    "a1" * 70,
    "e3e",
    ".",
    "-",
    "_",
    "=3",
]
LINES = st.lists(
    st.lists(st.sampled_from(PIECES) | st.text(max_size=4).filter(lambda t: "\n" not in t)).map(
        "".join
    ),
    max_size=12,
)


@pytest.mark.parametrize(
    ("body", "template"),
    [
        ("", ""),
        ("step 12 loss=0.5", "step \0 loss=\0.\0"),
        ("rank3: ok", "\0: ok"),
        ("a1é2b", "\0é\0"),
        ("NaN abc123f_x9", "NaN \0_\0"),
        ("12", "\0"),
        ("\x1b[31mred", "\x1b[\0"),
    ],
)
def test_templates_are_these(body: str, template: str) -> None:
    assert tokens_pure.template_of(body) == template


@pytest.mark.parametrize(
    ("token", "indexed"),
    [
        ("abc", False),
        ("123", False),
        ("1e5", False),
        ("12E", False),
        ("e5", True),
        ("1e5a", True),
        ("1f5", True),
        ("0xFF", True),
        ("", False),
        ("a1" * (TOKEN_BYTES_MAX // 2), True),
        ("a1" * (TOKEN_BYTES_MAX // 2) + "1", False),
        ("a-1", False),
        ("é1", False),
    ],
)
def test_indexed_tokens_are_mixed_not_floats_and_not_long(token: str, indexed: bool) -> None:
    assert tokens_pure.is_indexed_token(token) is indexed


def test_hashes_stay_what_they_are() -> None:
    assert tokens_pure.token_hash("abc123F") == tokens_pure.token_hash(b"ABC123f")
    assert tokens_pure.token_hash("a1") == GOLDEN_A1
    assert tokens_pure.token_hash("3f2a9c0d17e84b55") == GOLDEN_ID
    assert tokens_pure.value_hash("dataset", "c4/en") == GOLDEN_VALUE


GOLDEN_A1 = 0xAF7236F25740FDFF
GOLDEN_ID = 0x180673A3C8BAEBE
GOLDEN_VALUE = 0x9ADFC9A446DE9A0A


def extract(lines: list[str]) -> tokens.Extracted:
    encoded = [line.encode() for line in lines]
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    return tokens.extract(np.frombuffer(b"".join(encoded), np.uint8), offsets)


def check_equal(lines: list[str]) -> None:
    found = extract(lines)
    # Equal templates have equal hashes, different ones different; a NUL in the text is told apart.
    partition: dict[int, str] = {}
    for line, key in zip(lines, found.hashes.tolist(), strict=True):
        if "\0" not in line:
            assert partition.setdefault(key, tokens_pure.template_of(line)) == (
                tokens_pure.template_of(line)
            )
    plain = {tokens_pure.template_of(line) for line in lines if "\0" not in line}
    assert len(partition) == len(plain)

    text = "".join(lines).encode()
    for i, line in enumerate(lines):
        indexed = [t for t in tokens_pure.mixed_tokens(line) if tokens_pure.is_indexed_token(t)]
        assert found.token_hash[found.token_piece == i].tolist() == [
            tokens_pure.token_hash(token) for token in indexed
        ]
        assert found.longest[i] == tokens_pure.longest_mixed(line)
        mine = np.flatnonzero(found.run_piece == i)
        spans = zip(found.run_at[mine].tolist(), found.run_length[mine].tolist(), strict=True)
        runs = [text[at : at + length].decode().lower() for at, length in spans]
        assert (set(runs), i in found.hex_piece) == tokens_pure.letter_runs(line)
        assert found.run_hash[mine].tolist() == [tokens_pure.token_hash(run) for run in runs]


@given(LINES)
def test_the_vectorised_tokeniser_equals_the_pure_one(lines: list[str]) -> None:
    check_equal(lines)


@given(LINES, st.integers(1, 3), st.integers(1, 40))
def test_batches_do_not_show(lines: list[str], pieces: int, size: int) -> None:
    whole = extract(lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokens, "BATCH_PIECES", pieces)
        patch.setattr(tokens, "BATCH_BYTES", size)
        parts = extract(lines)
    for name in tokens.Extracted.__slots__:
        assert getattr(whole, name).tolist() == getattr(parts, name).tolist()


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [""],
        ["", "", ""],
        ["abc", "1"],
        ["1", "abc", "", "2b", "c"],
        ["x1" * 50_000, "y" * 100_000, "1 " * 50_000, "deadbeef1" * 12_000],
        ["é" * 50_000 + "1", "", "\x00" * 9, "\x00" * 8],
    ],
)
def test_edges_and_long_lines_are_equal_too(lines: list[str]) -> None:
    check_equal(lines)


def test_an_empty_span_is_no_nul() -> None:
    hashes = extract(["1\x001", "11", "1", "1\x00"]).hashes.tolist()
    assert len(set(hashes)) == 3


@given(st.sets(st.integers(0, 2**64 - 1), max_size=300))
def test_a_bloom_holds_all_its_keys(keys: set[int]) -> None:
    built = build_bloom(np.array(sorted(keys), np.uint64))
    assert len(built) == 32 * bloom.block_count(len(keys))
    assert all(bloom.may_contain(b"\xff" + built, 1, len(built), key) for key in keys)


def test_a_bloom_keeps_about_one_absent_key_in_a_hundred() -> None:
    random = np.random.default_rng(7)
    keys = random.integers(0, 1 << 64, 20_000, np.uint64)
    built = build_bloom(keys)
    absent = random.integers(0, 1 << 64, 20_000, np.uint64).tolist()
    wrong = sum(bloom.may_contain(built, 0, len(built), key) for key in absent)
    assert 0.005 < wrong / 20_000 < 0.02


@given(st.lists(st.text(max_size=20), min_size=1, max_size=8))
def test_values_hash_alike(values: list[str]) -> None:
    encoded = [value.encode() for value in values]
    length = np.array([len(value) for value in encoded], np.int64)
    at = np.cumsum(length) - length
    found = tokens.hash_values("dataset", np.frombuffer(b"".join(encoded), np.uint8), at, length)
    assert found.tolist() == [tokens_pure.value_hash("dataset", value) for value in values]
