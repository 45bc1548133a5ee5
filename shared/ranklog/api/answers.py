"""Answers as bodies: one JSON object, or a line each with what else there is to say in the last."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from aws_lambda_powertools.event_handler import Response

from ranklog.answer.render import line_json
from ranklog.client.answer import Answer
from ranklog.client.tail_items import TailPage
from ranklog.errors import TooLarge
from ranklog.limits import API_PAGE_LINES_MAX, RESPONSE_BYTES_MAX

JSON = "application/json"
NDJSON = "application/x-ndjson"
OCTETS = "application/octet-stream"
# An export is lines and nothing else: what there is to say of them stands in headers.
NEXT_HEADER = "Ranklog-Next"
COMPLETENESS_HEADER = "Ranklog-Completeness"


def respond_text(text: str, content_type: str = JSON) -> Response[str]:
    """A body that is text already."""
    return Response(200, content_type, text)


def respond_lines(
    page: Callable[[int | None], Answer],
    limit: int | None,
    headers: Mapping[str, str],
    *,
    export: str | None = None,
) -> Response[str]:
    """A page of lines that fits into a response; over it, a shorter page with a cursor."""
    asked = min(limit or API_PAGE_LINES_MAX, API_PAGE_LINES_MAX)
    while True:
        answer = page(asked)
        body = _lines_body(answer, headers, export)
        size = len(body.encode("utf-8", "surrogatepass"))
        if size <= RESPONSE_BYTES_MAX:
            break
        found = len(answer.matches)
        if found <= 1:
            raise TooLarge(
                f"one line with its context makes {size} bytes, limit {RESPONSE_BYTES_MAX}",
                hint="ask for fewer fields or less context",
            )
        asked = max(1, min(found - 1, int(0.9 * found * RESPONSE_BYTES_MAX / size)))
    response = respond_text(body, _content_type(headers, export))
    if export is not None:
        response.headers[COMPLETENESS_HEADER] = answer.completeness.state
        if answer.next:
            response.headers[NEXT_HEADER] = answer.next
    return response


def _lines_body(answer: Answer, headers: Mapping[str, str], export: str | None) -> str:
    if export == "text":
        return "".join(f"{line.text}\n" for line in answer.lines)
    if export == "jsonl":
        return _objects(line_json(line) for line in answer.lines)
    shown = answer.to_json()
    if not wants_ndjson(headers):
        return _dump(shown)
    lines = shown.pop("lines")
    return _objects([*lines, shown])


def respond_rows(shown: dict[str, Any], name: str, headers: Mapping[str, str]) -> Response[str]:
    """The answer of a listing, whose rows stand under `name`."""
    if wants_ndjson(headers):
        rows = shown.pop(name, [])
        body = _objects([*rows, shown])
    else:
        body = _dump(shown)
    size = len(body.encode("utf-8", "surrogatepass"))
    if size > RESPONSE_BYTES_MAX:
        raise TooLarge(
            f"the answer has {size} bytes, limit {RESPONSE_BYTES_MAX}",
            hint="narrow it: fewer ranks, iterations or a shorter time",
        )
    return respond_text(body, NDJSON if wants_ndjson(headers) else JSON)


def respond_tail(
    page: Callable[[int], TailPage], rows: int, headers: Mapping[str, str]
) -> Response[str]:
    """A step of a tail that fits into a response; over it, the same step with fewer lines."""
    while True:
        found = page(rows)
        shown = found.to_json()
        items = shown.pop("items")
        ndjson = wants_ndjson(headers)
        body = _objects([*items, shown]) if ndjson else _dump({"items": items, **shown})
        size = len(body.encode("utf-8", "surrogatepass"))
        if size <= RESPONSE_BYTES_MAX:
            return respond_text(body, NDJSON if ndjson else JSON)
        if rows <= 1:
            raise TooLarge(f"one line makes {size} bytes, limit {RESPONSE_BYTES_MAX}")
        rows = max(1, rows // 4)


def wants_ndjson(headers: Mapping[str, str]) -> bool:
    """Whether the caller asked for a line per object."""
    accept = headers.get("accept") or headers.get("Accept") or ""
    return NDJSON in accept


def _content_type(headers: Mapping[str, str], export: str | None) -> str:
    if export == "text":
        return "text/plain; charset=utf-8"
    return NDJSON if export or wants_ndjson(headers) else JSON


def _objects(items: Iterable[Mapping[str, Any]]) -> str:
    return "".join(_dump(item) + "\n" for item in items)


def _dump(item: Mapping[str, Any]) -> str:
    return json.dumps(item, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
