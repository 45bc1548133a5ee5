"""Where an agent sends frames: a directory, a Kinesis stream, the HTTP API, or a store itself."""

from __future__ import annotations

import contextlib
import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Protocol, runtime_checkable
from urllib.parse import parse_qs, unquote, urlsplit

from ranklog.agent.sealing import sealed
from ranklog.errors import BadInput, NotFound, RanklogError, Throttled, TooLarge, Unavailable

HTTP_TIMEOUT_S = 10
# What a server may ask us to wait at most.
RETRY_AFTER_S_MAX = 300.0
# Of what a server says with a refusal.
SAID_BYTES_MAX, SAID_CHARS_MAX = 4_096, 300
# No key, one that may not, an address where there is nothing.
DENIALS = frozenset([401, 403, 404])
Frame = tuple[str, bytes]  # partition key, bytes


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a frame: taken, or why not. `retry_after_s`: what the other side asked for."""

    error: RanklogError | None = None
    retry_after_s: float = 0.0


TAKEN = Outcome()


@runtime_checkable
class Sink(Protocol):
    """Takes frames for good, or says why not; a retryable error means: the same frame later."""

    def put_all(self, frames: Sequence[Frame]) -> list[Outcome]: ...


class SingleSink(Protocol):
    """Takes one frame for good, or raises."""

    def put(self, partition_key: str, data: bytes) -> object: ...


class EachSink:
    """A sink of what takes one frame at a time; after a failure the rest is not tried."""

    def __init__(self, sink: SingleSink) -> None:
        self._sink = sink

    def put_all(self, frames: Sequence[Frame]) -> list[Outcome]:
        outcomes: list[Outcome] = []
        for key, data in frames:
            outcome = self._put(key, data)
            outcomes.append(outcome)
            if outcome.error is not None and not is_refused(outcome.error):
                break
        missing = len(frames) - len(outcomes)
        return outcomes + [outcomes[-1]] * missing if missing else outcomes

    def _put(self, key: str, data: bytes) -> Outcome:
        try:
            self._sink.put(key, data)
        except RetryAfter as error:
            return Outcome(error, error.wait_s)
        except RanklogError as error:
            return Outcome(error)
        return TAKEN


class RetryAfter(Throttled):
    """The other side is there, and says when to come again."""

    def __init__(self, message: str, wait_s: float) -> None:
        super().__init__(message)
        self.wait_s = wait_s


class Denied(Unavailable):
    """The other side refuses whoever sends: until somebody sets key, address or policy right."""


def is_refused(error: RanklogError) -> bool:
    """Whether a frame will never be taken, however often it is sent."""
    return isinstance(error, (BadInput, TooLarge))


def open_sink(destination: str, environ: Mapping[str, str], *, sync: bool = True) -> Sink:
    """A directory or `file:///…`; `kinesis://STREAM[?region=…]`; `https://…` of an API; a store.

    A store is `s3://bucket[/prefix]`, or a directory that is one (or `store:DIR`, made if it is not
    there): then the agent ingests by itself. To the others frames go sealed, where there is an ingest
    key (ranklog.agent.sealing). The API's key is `$RANKLOG_API_KEY`. `sync`: a frame in
    a directory is on the disk when it is called taken. Raises BadInput, RanklogError.
    """
    parts = urlsplit(destination)
    if parts.scheme in ("http", "https"):
        api = HttpSink(destination, environ.get("RANKLOG_API_KEY", ""))
        return sealed(EachSink(api), environ, proves=False)
    if parts.scheme == "kinesis":
        region = parse_qs(parts.query).get("region", [None])[0]
        return sealed(KinesisSink(parts.netloc, region), environ)
    if parts.scheme in ("s3", "store"):
        from ranklog.agent.store_sink import StoreSink

        return StoreSink(destination.removeprefix("store:"))
    if parts.scheme == "file" or not parts.scheme:
        path = Path(unquote(parts.path) if parts.scheme else destination)
        return _open_directory(path, environ, sync)
    raise BadInput(
        f"destination {destination!r} is of no known kind",
        hint="a directory, file:///…, kinesis://STREAM, https://…, s3://bucket or store:DIR",
    )


def _open_directory(path: Path, environ: Mapping[str, str], sync: bool) -> Sink:
    from ranklog.store.disk_names import MARKER

    if (path / MARKER).exists():
        from ranklog.agent.store_sink import StoreSink

        return StoreSink(str(path))
    from ranklog.stream.disk import DiskStream

    return sealed(EachSink(DiskStream(path, sync=sync)), environ)


class KinesisSink:
    """A Kinesis stream; boto3 is imported here, in the agent, never in the training process."""

    def __init__(self, stream_name: str, region: str | None = None, client: Any = None) -> None:
        if not stream_name:
            raise BadInput("no Kinesis stream is named", hint="kinesis://STREAM[?region=…]")
        self._renews = client is None
        self._region = region
        self._client = client if client is not None else _kinesis_client(region)
        self._stream_name = stream_name

    def put_all(self, frames: Sequence[Frame]) -> list[Outcome]:
        from ranklog.stream.kinesis import TOO_LARGE, put_frames

        try:
            outcomes = put_frames(self._client, self._stream_name, frames)
        except RanklogError as error:  # credentials, a name: can be set right while we wait
            if self._renews:
                with contextlib.suppress(BadInput):  # one that reads them anew
                    self._client = _kinesis_client(self._region)
            kind = Denied if isinstance(error, (BadInput, NotFound)) else Unavailable
            return [Outcome(kind(error.message, hint=error.hint))] * len(frames)
        made = []
        for (_, data), outcome in zip(frames, outcomes, strict=True):
            if outcome.accepted:
                made.append(TAKEN)
            elif outcome.reason == TOO_LARGE:
                made.append(Outcome(TooLarge(f"kinesis takes no frame of {len(data)} bytes")))
            else:
                what = f"kinesis stream {self._stream_name}: {outcome.reason}"
                made.append(Outcome(Unavailable(what)))
        return made


def _kinesis_client(region: str | None) -> Any:
    try:
        import boto3
    except ImportError as error:
        raise BadInput("boto3 is not installed", hint="pip install 'ranklog[aws]'") from error
    try:
        return boto3.client("kinesis", region_name=region)
    except Exception as error:  # botocore's many: no region, or one that can't be
        raise BadInput(
            f"no client of Kinesis: {error}", hint="kinesis://STREAM?region=…"
        ) from error


class HttpSink:
    """`POST /v1/frames` of a deployed or local API, a frame a request."""

    def __init__(self, url: str, key: str, clock: Callable[[], float] = time.time) -> None:
        self._url = url.rstrip("/") + "/v1/frames"
        self._key = key
        self._clock = clock

    def put(self, partition_key: str, data: bytes) -> None:
        """Raises Unavailable, RetryAfter, or, for what is never taken, BadInput or TooLarge."""
        request = urllib.request.Request(self._url, data=data, method="POST")
        request.add_header("Content-Type", "application/octet-stream")
        if self._key:
            request.add_header("Authorization", f"Bearer {self._key}")
        try:
            with urllib.request.urlopen(request, timeout=HTTP_TIMEOUT_S) as response:
                response.read()
        except urllib.error.HTTPError as error:
            with error:
                raise self._refusal(error) from error
        except (OSError, ValueError, urllib.error.URLError) as error:
            raise Unavailable(f"{self._url} does not answer: {error}") from error
        except Exception as error:  # http.client's: a reply that is none
            raise Unavailable(f"{self._url} answered no HTTP: {error!r}") from error

    def _refusal(self, error: urllib.error.HTTPError) -> RanklogError:
        what = f"{error.url} answered {error.code}{_said(error)}"
        wait_s = self._retry_after(error.headers.get("Retry-After", ""))
        if error.code == 429 or wait_s:
            return RetryAfter(what, wait_s)
        if error.code == 413:
            return TooLarge(what)
        # Of any other answer than these it is the key, the address or the server that is wrong, not
        # the frame: it can be set right, and until then the lines wait in the spool.
        if error.code in (400, 422):
            return BadInput(what)
        return (Denied if error.code in DENIALS else Unavailable)(what)

    def _retry_after(self, value: str) -> float:
        """Seconds, from a number of them or a date; 0 where neither is there."""
        try:
            wait_s = float(value)
        except ValueError:
            try:
                wait_s = parsedate_to_datetime(value).timestamp() - self._clock()
            except (ValueError, TypeError):
                return 0.0
        return min(max(wait_s, 0.0), RETRY_AFTER_S_MAX) if wait_s == wait_s else 0.0


def _said(error: urllib.error.HTTPError) -> str:
    """What the body says, of a problem its detail; "" where it says nothing that can be shown."""
    try:
        text = error.read(SAID_BYTES_MAX).decode("utf-8", "replace").strip()
    except (OSError, ValueError, http.client.HTTPException):
        return ""
    with contextlib.suppress(ValueError, AttributeError):
        text = str(json.loads(text).get("detail", ""))
    text = " ".join(text.split())[:SAID_CHARS_MAX]
    return f": {text}" if text and not text.startswith("<") else ""
