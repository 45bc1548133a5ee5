"""What was ingested comes back: as the bytes of its files, as JSON, as Parquet."""

from __future__ import annotations

import json
import resource
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ranklog.answer.render import line_json
from ranklog.client import Client
from ranklog.errors import BadInput, StoreFull
from ranklog.model.frame import INVALID_UTF8, NO_LF
from ranklog.store.disk import DiskStore
from ranklog.store.memory import MemoryStore
from ranklog.store.protocol import Store
from tests.client.test_search import ended, put
from tests.corpus_lines import TENANT, random_corpus
from tests.ingest.frames import T0, Row, stream

BYTES = {
    0: b"plain\n\ncr\r\nnul\x00 \x1b[31mred\x1b[0m\nbad \xff byte\nlast without line feed",
    1: "é 日本\n".encode() * 3,
}


@pytest.fixture(params=["memory", "disk"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    found: Store = MemoryStore() if request.param == "memory" else DiskStore(tmp_path / "store")
    rows = []
    for rank, data in BYTES.items():
        for i, line in enumerate(data.splitlines(keepends=True) if rank else _physical(data)):
            rows.append(_row(line, i, rank))
    put(found, "1", rows, streams=[ended(stream(2), 0)])  # type: ignore[arg-type]
    return found


def _physical(data: bytes) -> list[bytes]:
    parts = data.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _row(line: bytes, i: int, rank: int) -> Row:
    body = line.removesuffix(b"\n")
    flags = 0 if line.endswith(b"\n") else NO_LF
    # times run back: an export keeps the order of the file
    ts = T0 + (100 - i) * 1_000
    try:
        return Row(body.decode(), ts=ts, stream=stream(rank), flags=flags)
    except UnicodeDecodeError:
        text = body.decode(errors="replace")
        return Row(text, ts=ts, stream=stream(rank), flags=flags | INVALID_UTF8, raw=body)


def test_text_gives_the_original_bytes_back_a_file_per_stream(store: Store, tmp_path: Path) -> None:
    out = tmp_path / "out"
    listing = Client(store=store, tenant="acme").export("", out=out, format="text", run="llama")
    found = {row["file"]: (out / row["file"]).read_bytes() for row in listing.rows}
    assert found == {
        "llama@17/0/rank0/stdout": BYTES[0],
        "llama@17/0/rank1/stdout": BYTES[1],
        "llama@17/0/rank2/stdout": b"",
    }
    assert sorted(path.name for path in out.iterdir()) == ["llama@17"]


def test_jsonl_is_what_a_search_shows(store: Store, tmp_path: Path) -> None:
    client = Client(store=store, tenant="acme")
    client.export("", out=tmp_path / "out", format="jsonl", run="llama")
    lines = (tmp_path / "out" / "lines.jsonl").read_text().split("\n")[:-1]
    shown = client.search("", run="llama", limit=None, order="oldest").lines
    assert [json.loads(line) for line in lines] == [line_json(line) for line in shown]


def test_jsonl_of_typed_metadata_is_what_a_search_shows(tmp_path: Path) -> None:
    memory = MemoryStore()
    random_corpus(3).ingest(memory, twice=True)
    client = Client(store=memory, tenant=TENANT)
    client.export("loss:* OR dataset:*", out=tmp_path / "out", format="jsonl", run="llama")
    lines = (tmp_path / "out" / "lines.jsonl").read_text().split("\n")[:-1]
    shown = client.search("loss:* OR dataset:*", run="llama", limit=None, order="oldest").lines
    assert [json.loads(line) for line in lines] == [line_json(line) for line in shown]


def test_parquet_has_every_line_once_in_order(tmp_path: Path) -> None:
    memory = MemoryStore()
    corpus = random_corpus(3)
    corpus.ingest(memory, twice=True)
    client = Client(store=memory, tenant=TENANT)
    client.export("", out=tmp_path / "out", since="2026-01-01")
    table = pq.read_table(tmp_path / "out" / "lines.parquet")
    assert table.num_rows == len(corpus.lines)
    assert table["ts_ns"].to_pylist() == sorted(line.ts_ns for line in corpus.lines)
    assert table["rank"].null_count == sum(line.rank is None for line in corpus.lines)


def test_a_folder_with_files_is_left_alone(store: Store, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    with pytest.raises(BadInput, match="empty folder"):
        Client(store=store, tenant="acme").export("", out=tmp_path)


def test_nothing_found_writes_nothing(store: Store, tmp_path: Path) -> None:
    listing = Client(store=store, tenant="acme").export("absent", out=tmp_path / "o", run="llama")
    assert (listing.rows, list((tmp_path / "o").iterdir())) == ([], [])


@pytest.mark.parametrize("format", ["parquet", "jsonl", "text"])
@pytest.mark.parametrize("bytes_max", [0, 1_000])
def test_a_full_disk_is_an_error_that_leaves_nothing(
    format: str, bytes_max: int, tmp_path: Path
) -> None:
    store = DiskStore(tmp_path / "store")
    random_corpus(3).ingest(store)
    out = tmp_path / "out"
    client = Client(store=store, tenant=TENANT)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_max, before[1]))
    try:
        with pytest.raises(StoreFull, match="out: file too large"):
            client.export("", out=out, format=format, since="2026-01-01")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(out.iterdir()) == []
