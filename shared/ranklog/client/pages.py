"""An export through an API: pages of a search, one after the other, into files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ranklog.answer.render import line_json
from ranklog.client.answer import Answer, Listing
from ranklog.client.options import SearchOptions
from ranklog.client.words import Restrictions
from ranklog.errors import BadInput
from ranklog.scan.fields import text_literal

if TYPE_CHECKING:
    from ranklog.client.remote import Remote

PAGE_LINES = 5_000


def export_pages(
    remote: Remote, query: str, given: Restrictions, out: Path, format: str
) -> Listing:
    """Lines in order of time as `lines.jsonl` or `lines.parquet`. Bytes of streams need the store."""
    if format not in ("parquet", "jsonl"):
        raise BadInput(
            f"format {format} works on a store, not through an API", hint="jsonl or parquet"
        )
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BadInput(f"{out} is there and not an empty folder", hint="name a new one with --out")
    first = _page(remote, query, given, None)
    out.mkdir(parents=True, exist_ok=True)
    if not first.lines:
        return Listing([], first.completeness, first.report)
    jsonl = out / "lines.jsonl"
    try:
        with jsonl.open("wb") as file:
            written, last = _write_pages(file, remote, query, given, first)
        path = _as_parquet(jsonl) if format == "parquet" else jsonl
    except BaseException:
        for half in (jsonl, jsonl.with_suffix(".parquet")):
            half.unlink(missing_ok=True)
        raise
    row = {"file": path.name, "lines": written, "bytes": path.stat().st_size}
    return Listing([row], last.completeness, last.report)


def _write_pages(
    file: BinaryIO, remote: Remote, query: str, given: Restrictions, page: Answer
) -> tuple[int, Answer]:
    """Every page from `page` on; how many lines, and the last page."""
    written = 0
    while True:
        for line in page.lines:
            file.write(json.dumps(line_json(line), ensure_ascii=False).encode() + b"\n")
        written += len(page.lines)
        if page.next is None:
            return written, page
        page = _page(remote, query, given, page.next)


def _page(remote: Remote, query: str, given: Restrictions, cursor: str | None) -> Answer:
    options = SearchOptions(limit=PAGE_LINES, order="oldest", cursor=cursor, groups=False)
    return remote.search(query, given, options)


def _as_parquet(jsonl: Path) -> Path:
    """The same lines as Parquet; DuckDB streams from the one file into the other."""
    import duckdb

    path = jsonl.with_suffix(".parquet")
    source, target = text_literal(str(jsonl)), text_literal(str(path))
    with duckdb.connect(":memory:") as connection:
        connection.execute(
            f"COPY (FROM read_json({source}, format='newline_delimited')) TO {target} "
            "(FORMAT parquet, COMPRESSION zstd)"
        )
    jsonl.unlink()
    return path
