"""An excerpt of a column's pages has their rows; what is no page is said to be none."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ranklog.scan.pages import excerpt, find_pages

TEXTS = [f"line {i} " + "x" * (i % 90) for i in range(9_000)]


class InMemory:
    def __init__(self, data: bytes) -> None:
        self._data = data

    def read(self, start: int, end: int) -> bytes:
        return self._data[start:end]


def written(encoding: str, statistics: bool) -> tuple[InMemory, tuple[int, int]]:
    schema = pa.schema([pa.field("text", pa.string(), nullable=False)])
    sink = pa.BufferOutputStream()
    pq.write_table(
        pa.table({"text": TEXTS}, schema=schema),
        sink,
        compression="zstd",
        use_dictionary=False,
        column_encoding={"text": encoding},
        write_statistics=statistics,
        data_page_size=16_384,
    )
    data = sink.getvalue().to_pybytes()
    chunk = pq.read_metadata(pa.BufferReader(data)).row_group(0).column(0)
    start = chunk.data_page_offset
    return InMemory(data), (start, start + chunk.total_compressed_size)


@pytest.mark.parametrize("encoding", ["PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
@pytest.mark.parametrize("statistics", [False, True])
def test_pages_by_themselves_have_their_rows(encoding: str, statistics: bool) -> None:
    source, chunk = written(encoding, statistics)
    pages = find_pages(source, *chunk)
    assert len(pages) > 3
    assert sum(page.rows for page in pages) == len(TEXTS)
    chosen = [pages[1], pages[-1]]
    read = pq.read_table(pa.BufferReader(excerpt(source, "text", chosen)))
    assert read.column(0).to_pylist() == [
        text for page in chosen for text in TEXTS[page.first_row : page.first_row + page.rows]
    ]


def test_other_bytes_are_no_page() -> None:
    for junk in (b"", b"\0", b"PAR1" * 9, b"\xff" * 40, b"\x15\x00"):
        with pytest.raises(ValueError, match="page"):
            find_pages(InMemory(junk), 0, max(1, len(junk)))
