"""Frames that a destination refused for good: kept with the reason, for `ranklog replay`.

    refused/<ns>.<file>.<offset>.frame   a frame as it was sent
    refused/<ns>.<file>.<offset>.json    why, of what destination, partition key, lines
    refused/lost                         JSON: frames and lines that had no room here

They hold up nothing, and are no part of the log: its room is given back. What has no room here either
is counted, and told as dropped by the streams it was of.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ranklog import limits
from ranklog.errors import RanklogError
from ranklog.model.frame import FrameStream
from ranklog.stream.frames import peek_header

FOLDER = "refused"
FRAMES_MAX = 10_000
# They may take this part of the spool's quota, and are counted into it.
QUOTA_PART = 4
BYTES_MAX = 512 * limits.MIB
_LOST = "lost"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Streams of a frame that was refused. `kept`: it can be sent again."""

    streams: tuple[FrameStream, ...]
    reason: str
    kept: bool

    @property
    def lines(self) -> int:
        return sum(entry.rows for entry in self.streams)


@dataclass(frozen=True, slots=True)
class RefusedFrame:
    """One that is kept."""

    path: Path
    key: str
    data: bytes
    reason: str


class RefusedFrames:
    """The folder of one spool. `keep` is called by one thread; `told` is read by another."""

    def __init__(self, folder: Path, *, bytes_max: int = BYTES_MAX) -> None:
        self.folder = folder
        self.bytes_max = bytes_max
        # What streams have to be told of; whoever reads them takes them out.
        self.told: deque[Refusal] = deque()
        self._sizes = deque((path, _size(path)) for path in _frames(folder))
        self.reason = _reason(self._sizes[-1][0]) if self._sizes else ""
        self.bytes = sum(size for _, size in self._sizes)
        self.lost_frames, self.lost_lines = _read_lost(folder)

    @property
    def frames(self) -> int:
        """How many are kept."""
        return len(self._sizes)

    def keep(self, key: str, data: bytes, place: str, reason: str) -> None:
        """Put a frame aside; the oldest go where there is no room for it. Never raises."""
        self.reason = reason
        while self._sizes and (
            len(self._sizes) >= FRAMES_MAX or self.bytes + len(data) > self.bytes_max
        ):
            self._lose_oldest()
        streams = _streams(data)
        path = self.folder / f"{time.time_ns():020d}.{place}.frame"
        try:
            self.folder.mkdir(mode=0o700, exist_ok=True)
            said = {"reason": reason, "key": key, "lines": sum(entry.rows for entry in streams)}
            _write(path.with_suffix(".json"), json.dumps(said).encode())
            _write(path, data)  # last: a frame that is there has its reason
        except OSError as error:
            _remove(path)
            self._lose(streams, f"{reason} (and not kept: {error.strerror})")
            return
        self._sizes.append((path, len(data)))
        self.bytes += len(data)
        self.told.append(Refusal(streams, reason, kept=True))

    def _lose_oldest(self) -> None:
        path, size = self._sizes.popleft()
        self.bytes -= size
        with contextlib.suppress(OSError):
            self._lose(_streams(path.read_bytes()), "of frames that were refused the oldest went")
        _remove(path)

    def _lose(self, streams: tuple[FrameStream, ...], reason: str) -> None:
        refusal = Refusal(streams, reason, kept=False)
        self.lost_frames += 1
        self.lost_lines += refusal.lines
        self.told.append(refusal)
        with contextlib.suppress(OSError):
            said = {"frames": self.lost_frames, "lines": self.lost_lines}
            _write(self.folder / _LOST, json.dumps(said).encode())


def kept_frames(folder: Path) -> Iterator[RefusedFrame]:
    """Those of a folder, oldest first. What can't be read is passed over."""
    for path in _frames(folder):
        with contextlib.suppress(OSError):
            key = str(_read_json(path.with_suffix(".json")).get("key", ""))
            yield RefusedFrame(path, key, path.read_bytes(), _reason(path))


def kept_count(folder: Path) -> int:
    """How many a spool's folder keeps."""
    return len(_frames(folder))


def forget(frame: RefusedFrame) -> None:
    """It was taken after all."""
    _remove(frame.path)


def _frames(folder: Path) -> Sequence[Path]:
    return sorted(folder.glob("*.frame"))


def _reason(path: Path) -> str:
    return str(_read_json(path.with_suffix(".json")).get("reason", ""))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _streams(data: bytes) -> tuple[FrameStream, ...]:
    try:
        return tuple(peek_header(data).header.streams)
    except RanklogError:
        return ()


def _read_lost(folder: Path) -> tuple[int, int]:
    said = _read_json(folder / _LOST)
    frames, lines = said.get("frames", 0), said.get("lines", 0)
    return (frames, lines) if isinstance(frames, int) and isinstance(lines, int) else (0, 0)


def _read_json(path: Path) -> dict[str, object]:
    try:
        said = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}


def _write(path: Path, data: bytes) -> None:
    """Whole or not at all. Raises OSError."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        with os.fdopen(
            os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb"
        ) as file:
            file.write(data)
        partial.rename(path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise


def _remove(path: Path) -> None:
    """A frame that stays against our will is sent twice, and stored once."""
    for one in (path, path.with_suffix(".json")):
        with contextlib.suppress(OSError):
            one.unlink()
