"""Every column of a line survives a merge: envelopes, raw bytes, groups, metadata of any width."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from ranklog.client import Client
from ranklog.compact import merge
from ranklog.compact.contents import folders, read_contents
from ranklog.ingest.batch import ingest_batch
from ranklog.limits import HOUR_NS, SECOND_NS
from ranklog.model.frame import NO_GROUP, TS_CLAIMED, CallSite
from ranklog.model.record import Record
from ranklog.model.stream import Stream
from ranklog.stream.frames import encode_frame
from tests.compact.stores import GRACE_NS, SteppedStore, compact
from tests.ingest import read_back
from tests.ingest.frames import T0, Row, make_frame, stream

LOCAL = ("tid", "stream", "entry", "overflow")


def odd_row(rng: random.Random, seq: int) -> Row:
    raw = rng.random() < 0.2
    envelope = rng.choice(["", "3: ", "[rank3]: "])
    metadata: dict[str, Any] = {f"k{rng.randrange(60)}": rng.choice([1, 2**62, -5])}
    metadata[rng.choice(["loss", "Loss", "lr"])] = rng.choice(
        [0.125, 1 / 3, math.nan, math.inf, -0.0, 2.5, 1e300]
    )
    metadata[f"s{rng.randrange(50)}"] = rng.choice(["", "x", "é\u212a", "NaN"])
    return Row(
        text=envelope + rng.choice(["", "loss 0.5 on rank3", "K\x00é", "a" * 2_000]),
        ts=T0 + rng.choice([seq * SECOND_NS, -(10**18), 10**16]),  # also times that can't be
        stream=stream(rng.choice([0, 1, None])),
        level=rng.choice([0, 20, 35]),
        site=rng.choice([None, CallSite("a.py:1", "f", None), CallSite(None, None, "root")]),
        body_at=len(envelope),
        flags=rng.choice([0, 1, 8]),
        group=rng.choice([NO_GROUP, 0, 1]),
        metadata=metadata,
        raw=b"\xff\xfe" if raw else None,
    )


def seen(store: SteppedStore) -> dict[tuple[str, int], dict[str, Any]]:
    """Lines by identity, without what is the segment's own."""
    found = {}
    for key, row in read_back.lines(store).items():
        bare = {n: v for n, v in row.items() if n not in LOCAL and ":" not in n and v is not None}
        found[key] = {name: repr(value) for name, value in sorted(bare.items())}
        metadata = {
            n: repr(float(v)) if n[:5] == "float" else repr(v)
            for n, v in sorted(row["metadata"].items())
        }
        found[key]["metadata"] = repr(metadata)
    return found


def test_every_column_comes_back() -> None:
    rng, store = random.Random(4), SteppedStore()
    seqs: dict[Stream, int] = {}
    for number in range(6):
        rows = [odd_row(rng, 50 * number + i) for i in range(50)]
        data = encode_frame(make_frame(rows, first_seq=dict(seqs), number=number + 1))
        for row in rows:
            seqs[row.stream] = seqs.get(row.stream, 0) + 1
        record = Record(data, T0 + HOUR_NS, str(number))
        report = ingest_batch(
            [record], store=store, source="k", first=str(number), last=str(number)
        )
        assert report.bad == []
    before = seen(store)
    assert len(before) == 300
    assert any(int(row["flags"]) & TS_CLAIMED for row in before.values())
    assert any("overflow" in row for row in read_back.lines(store).values())
    for _ in range(2):
        assert compact(store).failed == {}
        store.clock_ns += GRACE_NS
    assert all(".~1." in key for key in store.names("index/"))
    assert seen(store) == before


def test_a_large_merge_is_broken_at_runs_and_commits_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(merge, "COMPACT_SPLIT_BYTES_MIN", 200_000)
    store, rng = SteppedStore(), random.Random(8)
    for number in range(4):
        rows = []
        for run in range(3):
            one = Stream("acme", f"run{run}", "1", 0, "h", 0, 0, "stdout", "0")
            texts = ["".join(rng.choices("0123456789abcdef", k=30_000)) for _ in range(4)]
            rows += [Row(f"v {text}", ts=T0 + number, stream=one) for text in texts]
        firsts = {row.stream: 4 * number for row in rows}
        data = encode_frame(make_frame(rows, first_seq=firsts, number=number + 1))
        name = str(number)
        ingest_batch([Record(data, T0, name)], store=store, source="k", first=name, last=name)
    before = seen(store)
    compact(store)
    [key] = [key for key in store.names("index/") if ".~1." in key]  # one PUT for all of them
    live = [
        index
        for folder in folders(store, "acme")
        for contents in read_contents(store, folder)
        for index in contents.live()
    ]
    assert [index.key for index in live] == [f"{key}#{i}" for i in range(3)]
    runs = [{entry.stream.run for entry in index.head.streams} for index in live]
    assert sorted(map(sorted, runs)) == [["run0"], ["run1"], ["run2"]]
    assert live[0].head.replaces and not live[1].head.replaces
    store.clock_ns += GRACE_NS
    compact(store)
    assert store.names("index/") == [key] and len(store.names("data/")) == 3
    answer = Client(store=store, tenant="acme").search("v", limit=None, run="run1")
    assert len(answer.lines) == 16 and len(before) == 48
