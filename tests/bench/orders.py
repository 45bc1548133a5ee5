"""Bytes a line by sort order, encoding and zstd level: how a segment's layout was chosen.

    python -m tests.bench.orders [--lines 524288] [--seed 1]

Rows are one batch of the synthetic job; every order clusters by template first. Bytes are of the
column's chunks alone, over row groups of ROW_GROUP_ROWS.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ranklog.ingest.gather import gather
from ranklog.ingest.hours import distinct_rows
from ranklog.ingest.records import Received
from ranklog.layout.build import find_facts
from ranklog.layout.rows import I64, Rows
from ranklog.limits import ROW_GROUP_ROWS
from tests.bench.corpus import corpus

LEVELS = (1, 3, 6, 8, 9, 12)
ENCODINGS = ("DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT", "PLAIN", "dictionary")


def orders(rows: Rows, tids: I64) -> Iterator[tuple[str, I64]]:
    """Name and permutation."""
    yield "template, stream, seq", np.lexsort((rows.seq, rows.stream, tids))
    yield "template, time", np.lexsort((rows.ts, tids))
    yield (
        "template, minute, stream",
        np.lexsort((rows.seq, rows.stream, rows.ts // 60_000_000_000, tids)),
    )
    yield "template, iteration, stream", np.lexsort((rows.seq, rows.stream, rows.iteration, tids))
    yield "time alone", np.argsort(rows.ts, kind="stable")


def chunk_bytes(column: Any, level: int, encoding: str) -> int:
    """Stored bytes of one column."""
    sink = pa.BufferOutputStream()
    way: dict[str, Any] = {"use_dictionary": encoding == "dictionary"}
    if encoding not in ("dictionary", "PLAIN"):
        way["column_encoding"] = {"x": encoding}
    pq.write_table(
        pa.table({"x": column}),
        sink,
        row_group_size=ROW_GROUP_ROWS,
        compression="zstd",
        compression_level=level,
        write_statistics=False,
        store_schema=False,
        **way,
    )
    metadata = pq.read_metadata(pa.BufferReader(sink.getvalue()))
    groups = range(metadata.num_row_groups)
    return sum(metadata.row_group(group).column(0).total_compressed_size for group in groups)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lines", type=int, default=524_288)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    frames = corpus(options.lines, options.seed)
    rows = gather([Received(f, int.from_bytes(f.ts[-8:], "little"), "") for f in frames]).rows
    assert len(distinct_rows(rows)) == len(rows)
    tids = find_facts(rows).numbered.ids.astype(np.int64)
    for name, order in orders(rows, tids):
        print(name)
        show(rows, order)


def show(rows: Rows, order: I64) -> None:
    texts = rows.texts().take(pa.array(order))
    cells = []
    for level in LEVELS:
        start = time.process_time()
        size = chunk_bytes(texts, level, "PLAIN") / len(order)
        cells.append(
            f"{level}: {size:.2f} ({(time.process_time() - start) / len(order) * 1e6:.2f} us)"
        )
    print("  text by level:", "  ".join(cells))
    for column in ("ts", "seq", "stream", "iteration"):
        values = pa.array(getattr(rows, column)[order])
        sizes = [(chunk_bytes(values, 3, e) / len(order), e) for e in ENCODINGS]
        print(f"  {column}:", "  ".join(f"{e} {size:.2f}" for size, e in sizes))


if __name__ == "__main__":
    main()
