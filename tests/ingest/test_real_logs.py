"""Real logs through ingest: every byte comes back, and templates are those of the pure tokeniser."""

from __future__ import annotations

import io
from array import array
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ranklog.ingest.batch import Record, ingest_batch
from ranklog.layout import tokens_pure
from ranklog.model.frame import (
    NO_GROUP,
    NO_ITERATION,
    NO_LEVEL,
    NO_RANK,
    Frame,
    FrameStream,
)
from ranklog.store.memory import MemoryStore
from ranklog.stream.frames import encode_frame
from tests.ingest.frames import T0, stream
from tests.ingest.read_back import indexes

LINES_MAX = 5_000


def file_frame(number: int, lines: list[str]) -> Frame:
    count = len(lines)
    encoded = [line.encode() for line in lines]
    return Frame(
        tenant="acme",
        agent="0a",
        number=number,
        previous="",
        streams=(FrameStream(stream(number, certified="import"), 0, count),),
        rows=count,
        stream=array("H", [0] * count).tobytes(),
        ts=array("q", range(T0, T0 + count)).tobytes(),
        level=array("h", [NO_LEVEL] * count).tobytes(),
        site=array("I", [0] * count).tobytes(),
        body_at=array("I", [0] * count).tobytes(),
        flags=array("H", [0] * count).tobytes(),
        group=array("I", [NO_GROUP] * count).tobytes(),
        rank=array("i", [NO_RANK] * count).tobytes(),
        iteration=array("q", [NO_ITERATION] * count).tobytes(),
        text_length=array("I", map(len, encoded)).tobytes(),
        text=b"".join(encoded),
    )


@pytest.mark.data
def test_real_logs_come_back_with_the_templates_they_have(data_dir: Path) -> None:
    files = [path for path in sorted(data_dir.rglob("*.log"))[::7] if path.stat().st_size]
    read = [path.read_bytes().decode("utf-8", "replace").split("\n")[:LINES_MAX] for path in files]
    store = MemoryStore()
    found = [
        Record(encode_frame(file_frame(number, lines)), T0, str(number))
        for number, lines in enumerate(read)
    ]
    report = ingest_batch(found, store=store, source="s", first="1", last="2")
    assert report.bad == []
    (index,) = indexes(store)
    assert index.head.segment is not None
    data = io.BytesIO(store.get(index.head.segment.key))
    table = pq.read_table(data, columns=["stream", "seq", "tid", "text"]).to_pylist()
    stored: dict[int, list[str]] = {}
    for row in sorted(table, key=lambda row: (row["stream"], row["seq"])):
        rank = index.head.streams[row["stream"]].stream.rank
        assert rank is not None
        stored.setdefault(rank, []).append(row["text"])
        template = tokens_pure.template_of(row["text"])
        assert index.templates[row["tid"]] == template or not row["tid"]
    assert stored == dict(enumerate(read))
