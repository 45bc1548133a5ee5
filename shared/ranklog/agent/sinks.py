"""Where a collector sends frames: a directory, a Kinesis stream, or the HTTP API."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qs, unquote, urlsplit

from ranklog.errors import BadInput, RanklogError, Throttled, TooLarge, Unavailable

HTTP_TIMEOUT_S = 10


class Sink(Protocol):
    """Takes a frame for good, or raises; a retryable error means: the same frame later."""

    def put(self, partition_key: str, data: bytes) -> object: ...


def open_sink(destination: str, environ: Mapping[str, str]) -> Sink:
    """A directory or `file:///…`; `kinesis://STREAM[?region=…]`; `https://…` of an API.

    The API's key is `$RANKLOG_API_KEY`. Raises BadInput, RanklogError.
    """
    parts = urlsplit(destination)
    if parts.scheme in ("http", "https"):
        return HttpSink(destination, environ.get("RANKLOG_API_KEY", ""))
    if parts.scheme == "kinesis":
        return KinesisSink(parts.netloc, parse_qs(parts.query).get("region", [None])[0])
    if parts.scheme == "file" or not parts.scheme:
        from ranklog.stream.disk import DiskStream

        return DiskStream(Path(unquote(parts.path) if parts.scheme else destination))
    raise BadInput(
        f"destination {destination!r} is of no known kind",
        hint="a directory, file:///…, kinesis://STREAM or https://…",
    )


class KinesisSink:
    """A Kinesis stream; boto3 is imported here, in the collector, never in the training process."""

    def __init__(self, stream_name: str, region: str | None = None, client: Any = None) -> None:
        if client is None:
            import boto3

            client = boto3.client("kinesis", region_name=region)
        self._client = client
        self._stream_name = stream_name

    def put(self, partition_key: str, data: bytes) -> None:
        from ranklog.stream.kinesis import TOO_LARGE, put_frames

        try:
            [outcome] = put_frames(self._client, self._stream_name, [(partition_key, data)])
        except RanklogError as error:  # credentials, a name: can be set right while we wait
            raise Unavailable(error.message, hint=error.hint) from error
        if outcome.reason == TOO_LARGE:
            raise TooLarge(f"kinesis takes no frame of {len(data)} bytes")
        if not outcome.accepted:
            raise Unavailable(f"kinesis stream {self._stream_name}: {outcome.reason}")


class HttpSink:
    """`POST /v1/frames` of a deployed or local API, a frame a request."""

    def __init__(self, url: str, key: str) -> None:
        self._url = url.rstrip("/") + "/v1/frames"
        self._key = key

    def put(self, partition_key: str, data: bytes) -> None:
        request = urllib.request.Request(self._url, data=data, method="POST")
        request.add_header("Content-Type", "application/octet-stream")
        if self._key:
            request.add_header("Authorization", f"Bearer {self._key}")
        try:
            with urllib.request.urlopen(request, timeout=HTTP_TIMEOUT_S) as response:
                response.read()
        except urllib.error.HTTPError as error:
            with error:
                raise _refusal(error) from error
        except (OSError, ValueError) as error:
            raise Unavailable(f"{self._url} does not answer: {error}") from error


def _refusal(error: urllib.error.HTTPError) -> RanklogError:
    what = f"{error.url} answered {error.code}"
    if error.code == 429:
        return Throttled(what)
    if error.code >= 500 or error.code in (401, 403, 404, 408):
        # A key or an address that is wrong now can be set right: the lines wait in the spool.
        return Unavailable(what)
    return TooLarge(what) if error.code == 413 else BadInput(what)
