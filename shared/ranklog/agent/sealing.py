"""Frames sealed as they are sent: the MAC of the tenant's ingest key says whose they are.

What waits on the disk has no MAC, so that after a rotation it goes with the new key. The key is
`$RANKLOG_INGEST_KEY`, or in the file `$RANKLOG_INGEST_KEY_FILE`, which is read again when it changed:
a secret that is mounted can be replaced under a running agent. It is one tenant's: a frame of another's is
kept here with the reason, where ingest could only call it forged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ranklog.access.key_text import KeyText, parse_ingest_key
from ranklog.errors import BadInput, Corrupt, NewerVersion, RanklogError, Unavailable
from ranklog.stream.frames import peek_header, seal_frame

if TYPE_CHECKING:
    from ranklog.agent.sinks import Frame, Outcome, Sink

KEY, KEY_FILE = "RANKLOG_INGEST_KEY", "RANKLOG_INGEST_KEY_FILE"


def sealed(sink: Sink, environ: Mapping[str, str], *, proves: bool = True) -> Sink:
    """The sink, its frames sealed where the environment has a key; `proves`: nothing else tells the other
    side whose they are. Raises BadInput for a bad key."""
    text, path = environ.get(KEY, ""), environ.get(KEY_FILE, "")
    if text and path:
        raise BadInput(f"{KEY} and {KEY_FILE} name two keys", hint="set one of them")
    if text:
        key = parse_ingest_key(text)
        return SealingSink(sink, lambda: key, proves=proves)
    if path:
        file = KeyFile(Path(path))
        file()
        return SealingSink(sink, file, proves=proves)
    return sink


class KeyFile:
    """The key of a file; of one that changed, the new one. Raises BadInput."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int, int] | None = None
        self._key: KeyText | None = None

    def __call__(self) -> KeyText:
        try:
            now = self._path.stat()
            seen = (now.st_mtime_ns, now.st_ino, now.st_size)
            if self._key is None or seen != self._seen:
                self._key = parse_ingest_key(self._path.read_text("ascii"))
                self._seen = seen
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(
                f"{KEY_FILE}: can't read {self._path}: {getattr(error, 'strerror', '') or error}"
            ) from error
        return self._key


class SealingSink:
    """A Sink before another."""

    def __init__(self, sink: Sink, key: Callable[[], KeyText], *, proves: bool) -> None:
        self._sink = sink
        self._key = key
        self._proves = proves
        self.batch_age_s: float = getattr(sink, "batch_age_s", 0.0)

    def put_all(self, frames: Sequence[Frame]) -> list[Outcome]:
        """See Sink. A key that can't be read for now is waited for: no frame goes without a MAC."""
        from ranklog.agent.sinks import Outcome

        try:
            key = self._key()
        except RanklogError as error:
            return [Outcome(Unavailable(error.message, hint=error.hint))] * len(frames)
        refused = [_refusal(data, key) if self._proves else None for _, data in frames]
        whole = all(error is None for error in refused)
        own = frames if whole else [f for f, no in zip(frames, refused, strict=True) if no is None]
        taken = iter(self._sink.put_all([(name, _seal(data, key.secret)) for name, data in own]))
        return [next(taken) if error is None else Outcome(error) for error in refused]


def _refusal(data: bytes, key: KeyText) -> BadInput | None:
    """Why a frame is not the key's to vouch for."""
    try:
        tenant = peek_header(data).header.tenant
    except (Corrupt, NewerVersion):
        return None  # the other side's to tell
    if tenant == key.tenant:
        return None
    return BadInput(
        f"a frame of tenant {tenant!r}, and the ingest key is of {key.tenant!r}",
        hint=f"it stays of {tenant!r}: `ranklog replay` with a key of that tenant, or without a key where it "
        f"requires none; RANKLOG_TENANT={key.tenant} is for lines that are still to come",
    )


def _seal(data: bytes, secret: bytes) -> bytes:
    try:
        return seal_frame(data, secret)
    except (Corrupt, NewerVersion):
        return data  # damaged on the disk: the other side sets it aside with its reason
