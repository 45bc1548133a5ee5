"""The index object: sections behind a table, so that a planner unpacks only what it reads.

    0   4  magic b"RLIX"
    4   2  version: 5; 1 to 3 are read as well, 4 is a bundle of indexes
    6   2  number of sections
    8   4  CRC-32 of bytes 4-8 and of the table
    12  16 per section: tag (4 bytes), offset, stored length, CRC-32 of the stored bytes
    …      sections, one after the other

Numbers are little-endian and unsigned. Sections are zstd frames of msgpack, except `blom` (bare
filters), `foot` (zstd of the length of the Parquet footer), `sums` (bare CRC-32s of the segment's
parts), `rsum` (bare sums of its rows) and `gram` (lengths of filters, and the bare filters); not every
index has the last three, nor `time` nor `vars` (zstd of bytes). A reader skips tags it does not know; a change that it must know raises
the version. Pure: msgpack and zstandard only.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from itertools import accumulate, pairwise
from typing import Any, TypeVar

import msgpack
import zstandard

from ranklog.errors import Corrupt, NewerVersion
from ranklog.layout import bloom, tokens_pure
from ranklog.layout.drops import agents_in, agents_named
from ranklog.layout.frame_refs import FrameRefs, frames_from_list, frames_to_list
from ranklog.layout.grams import (
    ALL_TOKENS,
    LONG_TOKEN_BYTES,
    SHORT_TOKENS,
    GramFilter,
    gram_slots,
    grams_held,
)
from ranklog.layout.index_head import VERSION_APART, head_from_map, head_to_map
from ranklog.layout.index_sites import sites_from_map, sites_to_map
from ranklog.layout.index_times import times_from_list, times_to_list
from ranklog.layout.packed import pack_integers, unpack_int32s, unpack_integers
from ranklog.layout.point_index import NO_SERIES, SeriesTable, series_from_map, series_to_map
from ranklog.layout.sections import parsed, sound, told, unpack
from ranklog.model.index import FrameRef, IndexHead, SiteCount, SiteTimes, TemplateRows

# 3: call sites are packed by kind; 5: frames are apart from the head, small sections are in it
INDEX_VERSION = 5
_VERSIONS = (1, 2, 3, 5)
MAGIC = b"RLIX"
# zstd levels. Of a large segment the index is a thirtieth, and a fiftieth of that is what the higher
# level would save, for twice the CPU; of a small one it is a tenth.
_LEVEL, _LEVEL_SMALL = 9, 17
_ROWS_SMALL_MAX = 65_536
_PREFIX = struct.Struct("<4sHHI")
_SECTION = struct.Struct("<4sIII")
_FOOTER = struct.Struct("<Q")  # of versions before 5
_ROW_SUM = struct.Struct("<QQ")
_HEAD, _TEMPLATES, _SITES, _BLOOMS = b"head", b"tmpl", b"site", b"blom"
# Only before version 5; the head has what they say.
_ROWS, _LONG, _FOOT = b"rows", b"long", b"foot"
_TAGS_BEFORE = (_HEAD, _TEMPLATES, _ROWS, _LONG, _SITES, _FOOT, _BLOOMS)
_FRAMES = b"fram"  # only where the index names frames
_SUMS = b"sums"  # indexes from before it have none
_GRAMS = b"gram"  # only in indexes of segments of much text
_VARIABLES = b"vars"  # only in indexes of segments of much text
_TIMES = b"time"  # only where its bytes are few for the rows
_ROW_SUMS = b"rsum"  # indexes from before it have none, and those without a segment
_SERIES = b"pnts"  # only in indexes of kind "point", with a segment
_KNOWN = {
    *(_HEAD, _TEMPLATES, _SITES, _BLOOMS, _FRAMES, _SUMS, _ROW_SUMS, _GRAMS, _VARIABLES),
    *(_TIMES, _SERIES),
}
T = TypeVar("T")


def encode_index(
    head: IndexHead,
    *,
    templates: Sequence[str] = ("",),
    template_rows: Sequence[TemplateRows] = (),
    longest_mixed: bytes = b"\x00",
    longest_variables: bytes | None = None,
    sites: Sequence[SiteCount] = (),
    footer_bytes: int = 0,
    blooms: bytes = b"",
    grams: Sequence[GramFilter] = (),
    times: SiteTimes | None = None,
    sums: Sequence[int] = (),
    series: SeriesTable | None = None,
    row_sums: bytes = b"",
) -> bytes:
    """Bytes of an index. `templates[tid]`; `head.version` is not read."""
    level = _LEVEL_SMALL if head.rows <= _ROWS_SMALL_MAX else _LEVEL
    compress = zstandard.ZstdCompressor(level=level, write_content_size=True).compress

    def packed(value: object) -> bytes:
        # A path in a stream may hold bytes that are no UTF-8 (lone surrogates): they survive.
        return compress(msgpack.packb(value, unicode_errors="surrogatepass"))

    # A template is text of one line, so it holds no line feed.
    sections = {
        _HEAD: packed(
            head_to_map(head)
            | {
                "foot": footer_bytes,
                "runs": _rows_to_columns(template_rows),
                "long": longest_mixed,
            }
        )
    }
    if len(templates) > 1:
        sections[_TEMPLATES] = compress("\n".join(templates).encode())
    if sites:
        sections[_SITES] = packed(sites_to_map(sites, templates))
    if blooms:
        sections[_BLOOMS] = blooms
    if head.frames:
        known = [entry.stream_id for entry in head.streams]
        told = agents_named(head.streams)
        sections[_FRAMES] = packed(frames_to_list(head.frames, known, told))
    if sums:
        sections[_SUMS] = struct.pack(f"<{len(sums)}I", *sums)
    if row_sums:
        sections[_ROW_SUMS] = row_sums
    if grams:
        sizes = (len(one.bits) << 1 | one.holds_long for one in grams)
        table = struct.pack(f"<{len(grams)}I", *sizes)
        sections[_GRAMS] = b"".join([table, *(one.bits for one in grams)])
    if longest_variables is not None:
        sections[_VARIABLES] = compress(longest_variables)
    if times is not None:
        sections[_TIMES] = packed(times_to_list(times))
    if series is not None:
        sections[_SERIES] = packed(series_to_map(series))
    offset = _PREFIX.size + _SECTION.size * len(sections)
    table = b""
    for tag, data in sections.items():
        table += _SECTION.pack(tag, offset, len(data), zlib.crc32(data))
        offset += len(data)
    check = _table_crc(INDEX_VERSION, len(sections), table)
    prefix = _PREFIX.pack(MAGIC, INDEX_VERSION, len(sections), check)
    return b"".join([prefix, table, *sections.values()])


def _table_crc(version: int, count: int, table: bytes) -> int:
    return zlib.crc32(struct.pack("<HH", version, count) + table)


class SegmentIndex:
    """An index, read section by section. Every property may raise Corrupt."""

    def __init__(
        self, data: bytes, key: str, version: int, sections: dict[bytes, tuple[int, int, int]]
    ) -> None:
        self.data = data
        self.key = key
        self.version = version
        self._sections = sections
        self.derived: object = None  # what a reader works out of it and keeps beside it

    @classmethod
    def open(cls, data: bytes, key: str) -> SegmentIndex:
        """Read the table of sections. Raises Corrupt, NewerVersion."""
        if len(data) < _PREFIX.size or data[:4] != MAGIC:
            raise Corrupt(f"not an index: {key}")
        _, version, count, check = _PREFIX.unpack_from(data)
        if version > INDEX_VERSION:
            raise NewerVersion(
                f"index of version {version}, this is {INDEX_VERSION}: {key}", hint="update ranklog"
            )
        table = data[_PREFIX.size : _PREFIX.size + count * _SECTION.size]
        if version not in _VERSIONS or _table_crc(version, count, table) != check:
            raise Corrupt(f"damaged index: {key}")
        sections = {
            tag: (start, length, crc) for tag, start, length, crc in _SECTION.iter_unpack(table)
        }
        return cls(data, key, version, sections)

    def check(self) -> None:
        """Whether every section is there and undamaged, without unpacking any. Raises Corrupt."""
        needed = (_HEAD,) if self.version >= VERSION_APART else _TAGS_BEFORE
        for tag in (*needed, *(_KNOWN & self._sections.keys())):
            self._stored(tag)

    def __repr__(self) -> str:
        return f"SegmentIndex({self.key!r}, {len(self.data)} bytes)"

    @cached_property
    def head(self) -> IndexHead:
        return self._read_head[0]

    @cached_property
    def _read_head(self) -> tuple[IndexHead, int, Sequence[Any], bytes]:
        """The head; from version 5 on length of the footer, columns of rows, longest mixed tokens."""

        def parse(data: bytes) -> tuple[IndexHead, int, Sequence[Any], bytes]:
            found = unpack(data)
            head = head_from_map(found, self.version, self._frames(found))
            if self.version < VERSION_APART:
                return head, 0, (), b""
            return head, int(found["foot"]), found["runs"], bytes(found["long"])

        return self._read(_HEAD, parse)

    def _frames(self, head: dict[str, Any]) -> Sequence[FrameRef]:
        """Frames of a section of their own; they are unpacked when they are asked for."""
        if _FRAMES not in self._sections:
            return ()
        offset, length, crc = self._sections[_FRAMES]
        data = self.data[offset : offset + length]  # a part, so that no cycle holds the index
        ids, told = head["streams"]["ids"], agents_in(head["streams"]["drops"])
        return FrameRefs(partial(_read_frames, data, crc, self.key, ids, told))

    @cached_property
    def templates(self) -> tuple[str, ...]:
        """By tid; [0] is "" and stands for every text."""
        if self._is_without(_TEMPLATES):
            return ("",)
        return self._read(_TEMPLATES, lambda data: tuple(data.decode().split("\n")))

    @cached_property
    def template_runs(self) -> tuple[Sequence[int], Sequence[int]]:
        """Runs of rows of one template, in row order, without gaps: template and rows of each."""
        if self.version >= VERSION_APART:
            columns = self._read_head[2]
            return told(_HEAD, self.key, lambda: _runs_from_columns(columns, self.version))
        return self._read(_ROWS, lambda data: _runs_from_columns(unpack(data), self.version))

    @cached_property
    def template_rows(self) -> tuple[TemplateRows, ...]:
        """The same, a value each."""
        tids, counts = self.template_runs
        firsts = accumulate(counts, initial=0)
        return tuple(map(TemplateRows, tids, firsts, counts))

    @cached_property
    def longest_mixed(self) -> bytes:
        """By tid: length of the longest mixed token, capped at 255."""
        found = self._read_head[3] if self.version >= VERSION_APART else self._read(_LONG, bytes)
        if len(found) != len(self.templates):
            raise Corrupt(f"section long does not fit the templates: {self.key}")
        return found

    @cached_property
    def longest_variables(self) -> tuple[bytes, ...] | None:
        """By tid: length of the longest token at each placeholder, capped at 255; None: not known."""
        if _VARIABLES not in self._sections:
            return None
        lengths = self._read(_VARIABLES, bytes)
        counts = [template.count(tokens_pure.PLACEHOLDER) for template in self.templates]
        edges = [*accumulate(counts, initial=0)]
        if edges[-1] != len(lengths):
            raise Corrupt(f"section vars does not fit the templates: {self.key}")
        return tuple(lengths[a:b] for a, b in pairwise(edges))

    @cached_property
    def sites(self) -> tuple[SiteCount, ...]:
        if self._is_without(_SITES):
            return ()
        templates = self.templates
        return self._read(
            _SITES, lambda data: sites_from_map(unpack(data), self.version, templates)
        )

    @cached_property
    def site_times(self) -> SiteTimes | None:
        """Lines of `sites` by time; None where the index has none."""
        if _TIMES not in self._sections:
            return None
        found = self._read(_TIMES, lambda data: times_from_list(unpack(data)))
        if len(found.counts) != len(self.sites):
            raise Corrupt(f"section time does not fit the call sites: {self.key}")
        return found

    @cached_property
    def series(self) -> SeriesTable:
        """Series of a segment of points; none where an index has no segment, only fences."""
        if not self.head.row_groups:
            return NO_SERIES
        return self._read(_SERIES, lambda data: series_from_map(unpack(data)))

    @cached_property
    def footer_bytes(self) -> int:
        """How many last bytes of the segment are Parquet's metadata, its length and magic."""
        if self.version >= VERSION_APART:
            return self._read_head[1]
        return self._read(
            _FOOT, len if self.version == 1 else lambda data: int(_FOOTER.unpack(data)[0])
        )

    @cached_property
    def blooms(self) -> bytes:
        """The filters, one after the other."""
        return b"" if self._is_without(_BLOOMS) else self._stored(_BLOOMS)

    @cached_property
    def sums(self) -> tuple[int, ...]:
        """CRC-32 of the Parquet footer, then of every chunk in order of row groups and their columns.

        Empty in an index from before there were sums.
        """
        if _SUMS not in self._sections:
            return ()
        data = self._stored(_SUMS)
        if len(data) != 4 + 4 * sum(len(group.chunks) for group in self.head.row_groups):
            raise Corrupt(f"section sums does not fit the row groups: {self.key}")
        return struct.unpack(f"<{len(data) // 4}I", data)

    @cached_property
    def row_sums(self) -> tuple[tuple[int, int], ...]:
        """By stream of the head: what its rows add up to (`row_sums`); empty in an index of before."""
        if _ROW_SUMS not in self._sections:
            return ()
        data = self._stored(_ROW_SUMS)
        if len(data) != _ROW_SUM.size * len(self.head.streams):
            raise Corrupt(f"section rsum does not fit the streams: {self.key}")
        return tuple(_ROW_SUM.iter_unpack(data))

    def token_may_hold(self, row_group: int, part: str) -> bool:
        """Whether an indexed token of the group's rows may hold these letters and digits."""
        slots = gram_slots(part)
        if not slots or not self._gram_places:
            return True
        offset, size, _ = self._gram_places[row_group]
        return grams_held(self._grams, offset, size, slots)

    @cached_property
    def _gram_places(self) -> tuple[tuple[int, int, bool], ...]:
        """(offset, length, the bloom has no long tokens) of each row group's filter; () without."""
        if _GRAMS not in self._sections:
            return ()
        count = len(self.head.row_groups)
        sizes = struct.unpack_from(f"<{count}I", self._grams.ljust(4 * count))
        offsets = tuple(accumulate((size >> 1 for size in sizes), initial=4 * count))
        if offsets[-1] != len(self._grams):
            raise Corrupt(f"section gram does not fit the row groups: {self.key}")
        return tuple(
            (at, size >> 1, bool(size & 1)) for at, size in zip(offsets, sizes, strict=False)
        )

    @cached_property
    def _grams(self) -> bytes:
        return self._stored(_GRAMS)

    def bloom_may_contain(self, row_group: int, token: str | bytes) -> bool:
        """Whether rows of the group may hold an indexed token (`tokens_pure.is_indexed_token`).

        True as well where the bloom leaves it to the grams, or holds what we don't know.
        """
        held = self.head.bloom_key
        if held == SHORT_TOKENS and len(token) >= LONG_TOKEN_BYTES:
            if not self._gram_places:
                raise Corrupt(f"index without section gram: {self.key}")
            if self._gram_places[row_group][2]:
                return True
        if held not in (ALL_TOKENS, SHORT_TOKENS):
            return True
        return self._may_contain(row_group, tokens_pure.token_hash(token))

    def bloom_may_contain_value(self, row_group: int, key: str, value: str) -> bool:
        """Whether rows may have this string metadata: for values up to TOKEN_BYTES_MAX bytes."""
        return self._may_contain(row_group, tokens_pure.value_hash(key, value))

    def _may_contain(self, row_group: int, key: int) -> bool:
        offset, length = self.head.row_groups[row_group].bloom
        if offset < 0 or offset + length > len(self.blooms):
            raise Corrupt(f"bloom filter outside its section: {self.key}")
        return bloom.may_contain(self.blooms, offset, length, key)

    def _is_without(self, tag: bytes) -> bool:
        """Whether the section was left out, as there was nothing to say."""
        return self.version >= VERSION_APART and tag not in self._sections

    def _stored(self, tag: bytes) -> bytes:
        if tag not in self._sections:
            raise Corrupt(f"index without section {tag.decode(errors='replace')}: {self.key}")
        offset, length, crc = self._sections[tag]
        return sound(self.data[offset : offset + length], length, crc, tag, self.key)

    def _read(self, tag: bytes, parse: Callable[[bytes], T]) -> T:
        return parsed(self._stored(tag), tag, self.key, parse)


def _read_frames(
    data: bytes, crc: int, key: str, ids: bytes, told: Sequence[str]
) -> tuple[FrameRef, ...]:
    """`ids`: of the index's streams, 16 bytes each; `told`: agents that its head names."""
    text = ids.hex()
    known = [text[at : at + 32] for at in range(0, len(text), 32)]
    stored = sound(data, len(data), crc, _FRAMES, key)
    return parsed(stored, _FRAMES, key, lambda found: frames_from_list(unpack(found), known, told))


# --- template rows ------------------------------------------------------------------------------
def _rows_to_columns(rows: Sequence[TemplateRows]) -> list[list[Any]]:
    """Runs follow one another, so that first rows need not be stored."""
    return [pack_integers([run.tid for run in rows]), pack_integers([run.rows for run in rows])]


def _runs_from_columns(columns: Sequence[Any], version: int) -> tuple[Sequence[int], Sequence[int]]:
    integers = unpack_int32s if version == 1 else unpack_integers
    tids, counts = integers(columns[0]), integers(columns[1])
    if len(tids) != len(counts):
        raise ValueError("templates and rows of runs do not fit each other")
    return tids, counts
