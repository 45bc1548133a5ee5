"""The index object: golden bytes, a round trip, and damage that is told as such."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranklog.errors import Corrupt, NewerVersion
from ranklog.layout.grams import SHORT_TOKENS, GramFilter
from ranklog.layout.index import INDEX_VERSION, SegmentIndex, encode_index
from ranklog.model.frame import Drop, Fence, StreamEnd
from ranklog.model.index import (
    Bounds,
    FrameRef,
    IndexHead,
    RowGroup,
    SegmentRef,
    SiteCount,
    StreamEntry,
    TemplateRows,
)
from ranklog.model.stream import Stream

STREAM = Stream("acme", "llama", "17", 0, "gpu-1", 3, 1, "stdout", "0", world_size=8)
OTHER = dataclasses.replace(STREAM, rank=None, local_rank=None, host=None, source="/logs/é.log")
HEAD = IndexHead(
    version=INDEX_VERSION,
    kind="line",
    segment=SegmentRef("acme/data/x.parquet", 99, "ab" * 16, '"e"'),
    rows=3,
    min_ts=5,
    max_ts=2**63 - 1,
    text_bytes=77,
    streams=(
        StreamEntry(
            STREAM,
            STREAM.stream_id,
            lines=2,
            text_bytes=70,
            min_ts=5,
            max_ts=9,
            ranges=((0, 1), (4, 5)),
            max_iteration=12,
            ranks=((-1, 1),),
            fences=(Fence(3, ((0, 5),)), Fence(4, ())),
            drops=(Drop(12, "quota"),),
            end=StreamEnd(5, 1),
        ),
        StreamEntry(OTHER, OTHER.stream_id, 1, 7, 5, 5, ((7, 8),)),
    ),
    row_groups=(
        RowGroup(
            first_row=0,
            rows=3,
            chunks={"tid": (4, 10), "text": (14, 30)},
            bounds={"ts": Bounds(5, 9, False), "float:loss": Bounds(0.5, 1.5, True, True)},
            streams=frozenset({0, 1}),
            runs=frozenset({"nccl", "rank"}),
            hex_runs=True,
            bloom=(0, 32),
        ),
        RowGroup(3, 0, {"tid": (44, 1), "text": (45, 1)}, {}, frozenset(), None, False, (32, 0)),
    ),
    columns=("float:loss",),
    overflow=("str:x",),
    frames=(FrameRef("0a", 1, "ff" * 16), FrameRef("0a", 2, "00" * 16)),
    envelopes=("", "[rank\x00]: "),
    odd_case=True,
)
TEMPLATES = ("", "loss \x00", "é")
ROWS = (TemplateRows(1, 0, 2), TemplateRows(2, 2, 1))
SITES = (
    SiteCount("a.py:3", "f", None, 20, 1, 2, 70, 5, 9, ((0, 1), (3, 1))),
    SiteCount(None, None, None, None, 2, 1, 7, 5, 5, ((0, 1), (3, 1))),
)
SUMS = (1, 2**32 - 1, 0, 5, 6)  # of the footer, then of two chunks in two row groups
GRAMS = (GramFilter(b"\x00\xff", holds_long=True), GramFilter(b""))


def encoded(
    head: IndexHead = HEAD, grams: Sequence[GramFilter] = (), variables: bytes | None = b"\x07"
) -> bytes:
    return encode_index(
        head,
        templates=TEMPLATES,
        template_rows=ROWS,
        longest_mixed=b"\x00\x05\x00",
        longest_variables=variables,
        sites=SITES,
        footer_bytes=10,
        blooms=b"\xff" * 32,
        grams=grams,
        sums=SUMS,
    )


def test_an_index_reads_back_whole() -> None:
    index = SegmentIndex.open(encoded(), "k")
    assert index.head == HEAD
    assert index.templates == TEMPLATES
    assert index.template_rows == ROWS
    assert index.longest_mixed == b"\x00\x05\x00"
    assert index.longest_variables == (b"", b"\x07", b"")
    assert index.sites == SITES
    assert index.footer_bytes == 10
    assert index.sums == SUMS
    assert index.bloom_may_contain(0, "a1")
    assert not index.bloom_may_contain(1, "a1")
    assert index.bloom_may_contain_value(0, "dataset", "c4")


def test_an_index_without_frames_has_no_section_of_them() -> None:
    head = dataclasses.replace(HEAD, frames=())
    assert b"fram" in encoded() and b"fram" not in encoded(head)
    assert SegmentIndex.open(encoded(head), "k").head == head


def test_damaged_frames_leave_the_head_readable() -> None:
    data = bytearray(encoded())
    at = data.index(b"fram")
    offset = int.from_bytes(data[at + 4 : at + 8], "little")
    data[offset] ^= 1
    index = SegmentIndex.open(bytes(data), "k")
    with pytest.raises(Corrupt, match="section fram"):
        index.check()
    assert index.head.streams == HEAD.streams
    with pytest.raises(Corrupt, match="section fram"):
        _ = list(index.head.frames)


def test_what_has_nothing_to_say_is_left_out() -> None:
    index = SegmentIndex.open(encode_index(HEAD), "k")
    assert int.from_bytes(index.data[6:8], "little") == 2  # head and frames
    index.check()
    assert (index.templates, index.longest_mixed, index.sites) == (("",), b"\x00", ())
    assert (index.blooms, index.template_rows) == (b"", ())


def test_an_index_of_fences_has_no_segment() -> None:
    head = IndexHead(INDEX_VERSION, "line", None, 0, 0, 0, 0, (), (), ())
    index = SegmentIndex.open(encode_index(head), "k")
    assert (index.head, index.templates, index.template_rows, index.sites) == (head, ("",), (), ())


def test_filters_of_grams_say_what_no_token_holds() -> None:
    with_grams = SegmentIndex.open(encoded(grams=GRAMS), "k")
    # slots in the lower half of all have a bit in the first byte, which is empty
    assert not with_grams.token_may_hold(0, "4fa1c0")
    assert with_grams.token_may_hold(0, "abc12")
    assert with_grams.token_may_hold(1, "4fa1c0")
    assert SegmentIndex.open(encoded(), "k").token_may_hold(0, "4fa1c0")


def test_a_bloom_without_long_tokens_is_not_asked_for_them() -> None:
    blooms = bytes(32)
    head = dataclasses.replace(HEAD, bloom_key=SHORT_TOKENS)
    found = SegmentIndex.open(encode_index(head, blooms=blooms, grams=GRAMS), "k")
    asked = [found.bloom_may_contain(group, token) for group in (0, 1) for token in ("a1b2", LONG)]
    assert asked == [False, True, False, False]
    other = dataclasses.replace(HEAD, bloom_key="from a later version")
    assert SegmentIndex.open(encode_index(other, blooms=blooms), "k").bloom_may_contain(0, "a1b2")


LONG = "4fa1c07b92"


def test_filters_of_other_row_groups_are_corrupt() -> None:
    for grams in (GRAMS[:1], (*GRAMS, *GRAMS)):
        index = SegmentIndex.open(encode_index(HEAD, grams=grams), "k")
        with pytest.raises(Corrupt, match="does not fit"):
            index.token_may_hold(0, "abc12")
    head = dataclasses.replace(HEAD, bloom_key=SHORT_TOKENS)
    with pytest.raises(Corrupt, match="without section gram"):
        SegmentIndex.open(encode_index(head), "k").bloom_may_contain(0, LONG)


def test_lengths_of_other_variables_are_corrupt() -> None:
    assert SegmentIndex.open(encoded(variables=None), "k").longest_variables is None
    with pytest.raises(Corrupt, match="does not fit"):
        _ = SegmentIndex.open(encoded(variables=b"\x07\x07"), "k").longest_variables


def test_sums_of_other_chunks_are_corrupt() -> None:
    index = SegmentIndex.open(encode_index(HEAD, sums=SUMS[1:]), "k")
    with pytest.raises(Corrupt, match="does not fit"):
        _ = index.sums


def test_a_newer_index_is_told_as_such() -> None:
    data = bytearray(encoded())
    data[4] = INDEX_VERSION + 1
    with pytest.raises(NewerVersion, match="update ranklog"):
        SegmentIndex.open(bytes(data), "k")


def read_all(data: bytes) -> None:
    index = SegmentIndex.open(data, "k")
    _ = (
        index.head,
        len(index.head.frames),
        index.templates,
        index.template_rows,
        index.longest_mixed,
        index.sites,
        index.footer_bytes,
        index.sums,
        index.longest_variables,
    )
    for i in range(len(index.head.row_groups)):
        index.bloom_may_contain(i, "a1")
        index.token_may_hold(i, LONG)


@given(st.data())
def test_damage_is_corrupt_and_nothing_else(draw: st.DataObject) -> None:
    data = bytearray(encoded(grams=GRAMS))
    at = draw.draw(st.integers(0, len(data) - 1))
    data[at] ^= draw.draw(st.integers(1, 255))
    with pytest.raises((Corrupt, NewerVersion)):
        read_all(bytes(data))


@given(st.binary(max_size=200), st.integers(0, 10_000))
def test_other_bytes_are_corrupt(data: bytes, cut: int) -> None:
    for damaged in (data, encoded()[: min(cut, len(encoded()) - 1)]):
        with pytest.raises(Corrupt):
            read_all(damaged)
