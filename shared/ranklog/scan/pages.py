"""A few pages of a Parquet column by themselves: Arrow and DuckDB unpack whole column chunks.

`find_pages` walks the headers of a chunk, `excerpt` makes a Parquet file of some of its pages as
they are, whose only column is that one. Only for columns without nulls, dictionary or nesting: the
segment's text. Parquet's metadata is Thrift in its compact protocol (parquet.thrift names the fields).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

_MAGIC = b"PAR1"
_STOP = 0
_TRUE, _BYTE, _I16, _I32, _I64, _BINARY, _LIST, _STRUCT = 1, 3, 4, 5, 6, 8, 9, 12
_DATA_PAGE, _BYTE_ARRAY, _UTF8, _ZSTD = 0, 6, 0, 6
# Page headers without statistics take some 20 bytes.
_HEADER_BYTES_MAX = 256


class Bytes(Protocol):
    """What a segment is read from."""

    def read(self, start: int, end: int) -> bytes:
        """Bytes [start, end), fewer at the end of the object."""
        ...


@dataclass(frozen=True, slots=True)
class Page:
    """`start` to `end` in the object, header included; rows from `first_row` of the row group on."""

    start: int
    end: int
    first_row: int
    rows: int
    plain_bytes: int
    encoding: int


def find_pages(source: Bytes, start: int, end: int) -> list[Page]:
    """Data pages of the column chunk at [start, end), in order. Raises ValueError at what is none."""
    pages: list[Page] = []
    row = 0
    while start < end:
        try:
            header = _Reader(source.read(start, min(end, start + _HEADER_BYTES_MAX)))
            found = header.struct()
            plain_bytes, stored_bytes = found[2], found[3]
            rows, encoding = found[5][1], found[5][2]
        except (KeyError, IndexError, TypeError) as error:
            raise ValueError(f"no header of a data page at byte {start}") from error
        if found.get(1) != _DATA_PAGE or stored_bytes < 0 or rows < 0:
            raise ValueError(f"no data page at byte {start}")
        body = start + header.at
        pages.append(Page(start, body + stored_bytes, row, rows, plain_bytes, encoding))
        start, row = body + stored_bytes, row + rows
    return pages


def excerpt(source: Bytes, name: str, pages: Sequence[Page]) -> bytes:
    """A Parquet file of these pages, which are of a required string column, compressed by zstd."""
    data = b"".join(source.read(page.start, page.end) for page in pages)
    rows = sum(page.rows for page in pages)
    plain_bytes = sum(page.plain_bytes for page in pages)
    encodings = sorted({page.encoding for page in pages})
    footer = _footer(name.encode(), rows, plain_bytes, len(data), encodings)
    return b"".join((_MAGIC, data, footer, len(footer).to_bytes(4, "little"), _MAGIC))


# --- writing ------------------------------------------------------------------------------------
def _footer(
    name: bytes, rows: int, plain_bytes: int, stored_bytes: int, encodings: Iterable[int]
) -> bytes:
    """FileMetaData of one column in one row group, whose pages begin behind the magic."""
    root = _struct({4: _binary(b"schema"), 5: _integer(1)})
    column = _struct(
        {1: _integer(_BYTE_ARRAY), 3: _integer(0), 4: _binary(name), 6: _integer(_UTF8)}
    )
    metadata = _struct(
        {
            1: _integer(_BYTE_ARRAY),
            2: _list(_I32, [_zigzag(encoding) for encoding in encodings]),
            3: _list(_BINARY, [_varint(len(name)) + name]),
            4: _integer(_ZSTD),
            5: _long(rows),
            6: _long(plain_bytes),
            7: _long(stored_bytes),
            9: _long(len(_MAGIC)),
        }
    )
    chunk = _struct({2: _long(0), 3: (_STRUCT, metadata)})
    group = _struct({1: _list(_STRUCT, [chunk]), 2: _long(plain_bytes), 3: _long(rows)})
    return _struct(
        {
            1: _integer(1),
            2: _list(_STRUCT, [root, column]),
            3: _long(rows),
            4: _list(_STRUCT, [group]),
        }
    )


def _struct(fields: dict[int, tuple[int, bytes]]) -> bytes:
    """Fields by ascending number, at most 15 apart: (type, value)."""
    parts, last = [], 0
    for number, (kind, value) in fields.items():
        parts.append(bytes([(number - last) << 4 | kind]) + value)
        last = number
    return b"".join(parts) + bytes([_STOP])


def _integer(value: int) -> tuple[int, bytes]:
    return _I32, _zigzag(value)


def _long(value: int) -> tuple[int, bytes]:
    return _I64, _zigzag(value)


def _binary(value: bytes) -> tuple[int, bytes]:
    return _BINARY, _varint(len(value)) + value


def _list(kind: int, items: Sequence[bytes]) -> tuple[int, bytes]:
    assert len(items) < 15
    return _LIST, bytes([len(items) << 4 | kind]) + b"".join(items)


def _zigzag(value: int) -> bytes:
    return _varint(value << 1 if value >= 0 else (-value << 1) - 1)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


# --- reading ------------------------------------------------------------------------------------
class _Reader:
    """A struct at the start of some bytes. Raises IndexError where they end, ValueError at others."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def struct(self) -> dict[int, Any]:
        """Field number -> value."""
        found: dict[int, Any] = {}
        number = 0
        while (head := self._byte()) != _STOP:
            number = number + (head >> 4) if head >> 4 else self._integer()
            found[number] = self._value(head & 15)
        return found

    def _value(self, kind: int) -> Any:
        if kind in (_I16, _I32, _I64):
            return self._integer()
        if kind == _STRUCT:
            return self.struct()
        if kind in (_TRUE, _TRUE + 1):
            return kind == _TRUE
        if kind == _BYTE:
            return self._byte()
        if kind == _BINARY:
            length = self._varint()
            self.at += length
            return None
        raise ValueError(f"a page header has no field of type {kind}")

    def _byte(self) -> int:
        value = self._data[self.at]
        self.at += 1
        return value

    def _integer(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def _varint(self) -> int:
        value = shift = 0
        while (byte := self._byte()) > 127:
            value |= (byte & 127) << shift
            shift += 7
        return value | byte << shift
