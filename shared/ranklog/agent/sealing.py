"""Frames sealed as they are sent: the MAC of the tenant's ingest key says whose they are.

What waits on the disk has no MAC, so that after a rotation it goes with the new key. The key is
`$RANKLOG_INGEST_KEY`, or in the file `$RANKLOG_INGEST_KEY_FILE`, which is read again when it changed:
a secret that is mounted can be replaced under a running agent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ranklog.access.key_text import parse_ingest_key
from ranklog.errors import BadInput, Corrupt, NewerVersion, RanklogError, Unavailable
from ranklog.stream.frames import seal_frame

if TYPE_CHECKING:
    from ranklog.agent.sinks import Frame, Outcome, Sink

KEY, KEY_FILE = "RANKLOG_INGEST_KEY", "RANKLOG_INGEST_KEY_FILE"


def sealed(sink: Sink, environ: Mapping[str, str]) -> Sink:
    """The sink, its frames sealed where the environment has a key. Raises BadInput for a bad one."""
    text, path = environ.get(KEY, ""), environ.get(KEY_FILE, "")
    if text and path:
        raise BadInput(f"{KEY} and {KEY_FILE} name two keys", hint="set one of them")
    if text:
        secret = parse_ingest_key(text).secret
        return SealingSink(sink, lambda: secret)
    if path:
        file = KeyFile(Path(path))
        file()
        return SealingSink(sink, file)
    return sink


class KeyFile:
    """The secret of a file; of one that changed, the new one. Raises BadInput."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int, int] | None = None
        self._secret = b""

    def __call__(self) -> bytes:
        try:
            now = self._path.stat()
            seen = (now.st_mtime_ns, now.st_ino, now.st_size)
            if seen != self._seen:
                self._secret = parse_ingest_key(self._path.read_text("ascii")).secret
                self._seen = seen
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(
                f"{KEY_FILE}: can't read {self._path}: {getattr(error, 'strerror', '') or error}"
            ) from error
        return self._secret


class SealingSink:
    """A Sink before another."""

    def __init__(self, sink: Sink, secret: Callable[[], bytes]) -> None:
        self._sink = sink
        self._secret = secret
        self.batch_age_s: float = getattr(sink, "batch_age_s", 0.0)

    def put_all(self, frames: Sequence[Frame]) -> list[Outcome]:
        """See Sink. A key that can't be read for now is waited for: no frame goes without a MAC."""
        try:
            secret = self._secret()
        except RanklogError as error:
            from ranklog.agent.sinks import Outcome

            return [Outcome(Unavailable(error.message, hint=error.hint))] * len(frames)
        return self._sink.put_all([(name, _seal(data, secret)) for name, data in frames])


def _seal(data: bytes, secret: bytes) -> bytes:
    try:
        return seal_frame(data, secret)
    except (Corrupt, NewerVersion):
        return data  # damaged on the disk: the other side sets it aside with its reason
