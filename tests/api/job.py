"""A small job's frames, and a served API that holds them."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from ranklog.api.app import Handler
from ranklog.model.frame import CallSite, Fence, StreamEnd
from ranklog.model.stream import Stream
from ranklog.stream.builder import FrameBuilder
from ranklog.stream.frames import encode_frame

START_NS = 1_767_225_600 * 10**9  # 2026-01-01T00:00:00Z
NOW_NS = START_NS + 600 * 10**9
ITERATIONS = 4


def frame_of(
    tenant: str = "default", *, run: str = "job", ranks: int = 3, number: int = 0
) -> bytes:
    """`ranks` ranks say one line an iteration; the last one has an odd loss and an error."""
    builder = FrameBuilder(tenant, "a" * 32, number, "")
    for rank in range(ranks):
        stream = Stream(tenant, run, "l1", 0, f"gpu-{rank}", rank, rank, "logging", "i")
        odd = rank == ranks - 1
        for k in range(ITERATIONS):
            loss = 9.5 if odd and k == 2 else 2.0
            builder.add(
                stream,
                k,
                START_NS + k * 10**9 + rank,
                20,
                CallSite("train.py:7", "step"),
                f"iteration {k} loss {loss}",
                iteration=k,
                metadata={"loss": loss},
            )
        lines = ITERATIONS
        if odd:
            site = CallSite("train.py:9", "step")
            builder.add(stream, lines, START_NS + 5 * 10**9, 40, site, "loss is odd", iteration=3)
            lines += 1
        hour = START_NS // (3600 * 10**9)
        builder.fence(stream, lines, Fence(hour, ((0, lines),)))
        builder.end(stream, StreamEnd(lines, 1 if odd else 0))
    return encode_frame(builder.build())


def call(
    handler: Handler,
    method: str,
    path: str,
    body: Any = None,
    *,
    query: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    authorizer: Mapping[str, Any] | None = None,
) -> tuple[int, Any, dict[str, str]]:
    """Status, body (parsed where it is JSON) and headers of one request; bytes go as they are."""
    context: dict[str, Any] = {"http": {"method": method, "path": path}, "stage": "$default"}
    if authorizer is not None:
        context["authorizer"] = authorizer
    raw = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
    response = handler(
        {
            "version": "2.0",
            "rawPath": path,
            "rawQueryString": "",
            "headers": dict(headers or {}),
            "queryStringParameters": dict(query) if query else None,
            "requestContext": context,
            "body": None if raw is None else base64.b64encode(raw).decode(),
            "isBase64Encoded": raw is not None,
        },
        None,
    )
    shown = response["headers"]
    text = response["body"]
    parsed = (
        json.loads(text)
        if "json" in shown["Content-Type"] and "nd" not in shown["Content-Type"]
        else text
    )
    return int(response["statusCode"]), parsed, shown
