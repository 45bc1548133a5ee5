"""A Parquet footer without what no reader of a segment asks for: it is some 90 bytes a column chunk.

What goes, by the names of parquet.thrift: `encoding_stats` and `size_statistics` of a column chunk
(how many pages have which encoding; histograms of levels, which are flat here), and of its statistics
`min` and `max`, which say the same as `min_value` and `max_value`. All are optional, and nothing else
refers to them. The footer is Thrift in its compact protocol, of which this knows enough to leave
fields out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

_MAGIC = b"PAR1"
_TAIL = 8  # length of the footer and magic

# Field -> what of it goes: None is all of it.
Parts: TypeAlias = "Mapping[int, Parts | None]"
_STATISTICS: Parts = {1: None, 2: None}
_COLUMN_METADATA: Parts = {12: _STATISTICS, 13: None, 16: None}
_FILE_METADATA: Parts = {4: {1: {3: _COLUMN_METADATA}}}  # row_groups, columns, meta_data

_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
_VARINTS = (4, 5, 6)
_FIELD_STEP_MAX = 15  # a field further on than this has its number written out


def slim_footer(data: bytes | memoryview) -> bytes:
    """The Parquet file with a shorter footer."""
    view = memoryview(data)
    start = len(view) - _TAIL - int.from_bytes(view[-_TAIL:-4], "little")
    footer = _Thrift(bytes(view[start:-_TAIL])).struct_without(_FILE_METADATA)
    return b"".join([view[:start], footer, len(footer).to_bytes(4, "little"), _MAGIC])


class _Thrift:
    """A cursor over bytes of the compact protocol. Raises ValueError at what it does not know."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def struct_without(self, parts: Parts) -> bytes:
        """The struct here, its end included, without those parts of it."""
        out = bytearray()
        field = written = 0
        while head := self._byte():
            kind, step = head & 15, head >> 4
            field = field + step if step else _from_zigzag(self._varint())
            gone = parts.get(field, {})
            if gone is None:
                self._skip(kind)
                continue
            step = field - written
            if 0 < step <= _FIELD_STEP_MAX:
                out.append(step << 4 | kind)
            else:
                out.append(kind)
                out += _varint_bytes(_to_zigzag(field))
            out += self._value_without(kind, gone)
            written = field
        out.append(0)
        return bytes(out)

    def _value_without(self, kind: int, parts: Parts) -> bytes:
        start = self._at
        if not parts:
            self._skip(kind)
            return self._data[start : self._at]
        if kind == _STRUCT:
            return self.struct_without(parts)
        count, element = self._list_head()
        head = self._data[start : self._at]
        if kind != _LIST or element != _STRUCT:
            raise ValueError(f"not a list of structs in a Parquet footer: {kind}, {element}")
        return head + b"".join(self.struct_without(parts) for _ in range(count))

    def _skip(self, kind: int) -> None:
        if kind in (_TRUE, _FALSE):  # the value is the type
            return
        if kind in _VARINTS:
            self._varint()
        elif kind == _BINARY:
            length = self._varint()
            self._at += length
        elif kind == _STRUCT:
            while head := self._byte():
                if not head >> 4:
                    self._varint()
                self._skip(head & 15)
        elif kind in (_LIST, _SET):
            count, element = self._list_head()
            for _ in range(count):
                self._skip(_BYTE if element in (_TRUE, _FALSE) else element)
        elif kind in (_BYTE, _DOUBLE):
            self._at += 1 if kind == _BYTE else 8
        else:
            raise ValueError(f"type {kind} in a Parquet footer")

    def _list_head(self) -> tuple[int, int]:
        """(elements, their type)."""
        head = self._byte()
        count = head >> 4
        return (count if count < 15 else self._varint()), head & 15

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7


def _varint_bytes(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _from_zigzag(value: int) -> int:
    return value >> 1 ^ -(value & 1)


def _to_zigzag(value: int) -> int:
    return value << 1 if value >= 0 else ~(value << 1)
