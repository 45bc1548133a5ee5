"""Which files to import, and their bytes: found, opened, unpacked; what is no log is refused.

A compressed file is known by its first bytes, not by its name.
"""

from __future__ import annotations

import gzip
import os
import stat
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import zstandard

from ranklog.errors import BadInput
from ranklog.importer.rendered import may_be_rendered, rendered

STDIN = "-"
STDIN_CHANNEL = "stdin"
BLOCK_BYTES = 1 << 20
# Packed bytes unpacked at a time: zstd can make 128 KiB of 4 bytes.
_PACKED_BYTES = 4 * 1024
# What is looked at to tell a log from anything else.
SNIFF_BYTES = 64 * 1024
# Enough to see whether a file may be no log and have a form as text.
_MAGIC_BYTES = 96
# Standard input stays in memory up to here, then goes to a temporary file.
SPOOL_BYTES = 32 << 20
# A folder with this file is a ranklog store: its objects are no logs.
STORE_MARKER = "ranklog-store.json"

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_MAGIC = (
    (b"\x7fELF", "an ELF binary"),
    (b"PK\x03\x04", "a zip archive (or a torch checkpoint)"),
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF-", "a PDF"),
    (b"PAR1", "a Parquet file"),
    (b"ARROW1", "an Arrow file"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    (b"SQLite format 3\0", "a SQLite database"),
    (b"\xfd7zXZ\0", "xz-compressed"),
    (b"BZh", "bzip2-compressed"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"\x04\x22\x4d\x18", "lz4-compressed"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"\xca\xfe\xba\xbe", "a Java class or Mach-O binary"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O binary"),
    (b"\0asm", "a WebAssembly binary"),
    (b"\xff\xfe", "UTF-16 text (convert it to UTF-8 first)"),
    (b"\xfe\xff", "UTF-16 text (convert it to UTF-8 first)"),
)
# Control bytes that logs hold: NUL (holes, padding), bell, backspace, tab, line feeds, CR, form
# feed, shift out and in (terminals), ESC.
_PLAUSIBLE = bytes([0, 7, 8, 9, 10, 11, 12, 13, 14, 15, 27])
_CONTROL = bytes(c for c in [*range(32), 127] if c not in _PLAUSIBLE)
# A tenth of random bytes are such; of logs next to none. Fewer bytes say too little.
_CONTROL_SHARE_MAX = 0.05
_SNIFF_MIN = 32
# Numbers and UTF-16 have a NUL at every few bytes; holes in a log are long runs.
_NUL_RUNS_SHARE_MAX = 0.3
_NUL_RUNS_MIN = 512


@dataclass(frozen=True, slots=True)
class Source:
    """One file to import. `key` names it for good (its real path); `relative` from the root given."""

    name: str  # as the user would open it
    key: str
    relative: str
    mtime_ns: int
    spool: IO[bytes] | None = None  # standard input, a pipe


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A path that could not even be looked at."""

    name: str
    error: str


def find_sources(
    paths: list[str], stdin: IO[bytes] | None, now_ns: int
) -> Iterator[Source | Unreadable]:
    """The files that the paths name, each once, in the order given, folders sorted."""
    seen: set[str] = set()
    for path in paths:
        for found in _find(path, stdin, now_ns):
            if isinstance(found, Source):
                if found.key in seen:
                    continue
                seen.add(found.key)
            yield found


def _find(path: str, stdin: IO[bytes] | None, now_ns: int) -> Iterator[Source | Unreadable]:
    if path == STDIN:
        if stdin is None:
            yield Unreadable(STDIN, "standard input is closed")
        else:
            yield Source(STDIN, STDIN, STDIN_CHANNEL, now_ns, _spool(stdin))
        return
    try:
        status = os.stat(path)
    except OSError as error:
        yield Unreadable(path, _reason(error))
        return
    if stat.S_ISDIR(status.st_mode):
        yield from _walk(path)
    elif stat.S_ISREG(status.st_mode):
        yield _source(path, os.path.basename(os.path.abspath(path)), status)
    else:
        yield from _piped(path, now_ns)


def _piped(path: str, now_ns: int) -> Iterator[Source | Unreadable]:
    """A named pipe or device: read to its end now."""
    try:
        with open(path, "rb") as stream:
            yield Source(path, path, os.path.basename(path), now_ns, _spool(stream))
    except OSError as error:
        yield Unreadable(path, _reason(error))


def _walk(root: str) -> Iterator[Source | Unreadable]:
    pending = [root]
    while pending:
        folder = pending.pop(0)
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            yield Unreadable(folder, _reason(error))
            continue
        if any(entry.name == STORE_MARKER for entry in entries):
            continue
        folders = []
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif entry.is_file():
                    yield _source(entry.path, os.path.relpath(entry.path, root), entry.stat())
            except OSError as error:
                yield Unreadable(entry.path, _reason(error))
        pending[:0] = folders


def _source(path: str, relative: str, status: os.stat_result) -> Source:
    return Source(path, os.path.realpath(path), Path(relative).as_posix(), status.st_mtime_ns)


def _spool(stream: IO[bytes]) -> IO[bytes]:
    """All of a stream that can be read once, where it can be read again."""
    spool = tempfile.SpooledTemporaryFile(max_size=SPOOL_BYTES)  # noqa: SIM115 - lives as long as the import
    while block := stream.read(BLOCK_BYTES):
        spool.write(block)
    return spool


def read_blocks(source: Source, skip: int = 0) -> Iterator[bytes]:
    """The file's content, unpacked, from byte `skip` on. Raises BadInput where it can't be read."""
    try:
        stream: IO[bytes] = source.spool or open(source.name, "rb")  # noqa: SIM115
    except OSError as error:
        raise BadInput(f"{source.name}: {_reason(error)}") from error
    try:
        stream.seek(0)
        text = _rendered(source, stream)
        yield from _unpack(stream, skip) if text is None else _skip(text, skip)
    except (OSError, EOFError, zlib.error, zstandard.ZstdError) as error:
        raise BadInput(f"{source.name}: {_reason(error)}") from error
    finally:
        if stream is not source.spool:
            stream.close()


def _rendered(source: Source, stream: IO[bytes]) -> Iterator[bytes] | None:
    """The text of a file that is no log and has one; None for any other, which is at its beginning then."""
    first = stream.read(_MAGIC_BYTES)
    stream.seek(0)
    if first.startswith((_GZIP, _ZSTD)) or may_be_rendered(source.key, first):
        first = next(_unpack(stream, 0), b"")[:SNIFF_BYTES]
        stream.seek(0)
        return rendered(source, first, lambda: _unpack(stream, 0))
    return None


def _unpack(stream: IO[bytes], skip: int) -> Iterator[bytes]:
    magic = stream.read(4)
    stream.seek(0)
    if magic == _ZSTD:
        yield from _skip(_unpack_zstd(stream), skip)
    elif magic.startswith(_GZIP):
        # read1 hands out what was unpacked before a broken place is met.
        unpacked = gzip.GzipFile(fileobj=stream, mode="rb")
        yield from _skip(iter(lambda: unpacked.read1(BLOCK_BYTES), b""), skip)
    else:
        stream.seek(skip)
        yield from iter(lambda: stream.read(BLOCK_BYTES), b"")


def _skip(blocks: Iterator[bytes], size: int) -> Iterator[bytes]:
    for block in blocks:
        if size < len(block):
            yield block[size:]
        size = max(0, size - len(block))


def _unpack_zstd(stream: IO[bytes]) -> Iterator[bytes]:
    """Frame after frame. (zstandard's stream reader takes a truncated file for a whole one.)"""
    pending = b""
    frame = None
    while packed := pending or stream.read(_PACKED_BYTES):
        frame = frame or zstandard.ZstdDecompressor().decompressobj()
        if block := frame.decompress(packed):
            yield block
        pending = frame.unused_data if frame.eof else b""
        frame = None if frame.eof else frame
    if frame is not None:
        raise EOFError("zstd data ends inside a frame")


def refuse_binary(source: Source, first: bytes) -> None:
    """Raise BadInput for what is no text. NUL, CR, colours and bad UTF-8 are all in real logs."""
    first = first[:SNIFF_BYTES]
    for magic, what in _MAGIC:
        if first.startswith(magic):
            raise BadInput(f"{source.name}: {what}, not a log")
    if first[257:262] == b"ustar":
        raise BadInput(f"{source.name}: a tar archive, not a log", hint="unpack it first")
    shown = len(first) - first.count(0)
    control = len(first) - len(first.translate(None, _CONTROL))
    nul_runs = first.count(0) and sum(1 for piece in first.split(b"\0") if piece)
    if (len(first) >= _SNIFF_MIN and control > _CONTROL_SHARE_MAX * shown) or (
        len(first) >= _NUL_RUNS_MIN and nul_runs > _NUL_RUNS_SHARE_MAX * len(first)
    ):
        raise BadInput(f"{source.name}: binary data, not a log")


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error).lower() or type(error).__name__
