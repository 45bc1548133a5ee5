"""Series as a body that fits into a response: as many as fit, and a cursor for the others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.event_handler import Response

from ranklog.api.answers import JSON, NDJSON, respond_text, wants_ndjson
from ranklog.errors import TooLarge
from ranklog.limits import RESPONSE_BYTES_MAX

if TYPE_CHECKING:
    from ranklog.client.series_answer import SeriesAnswer

# What there is to say beside series, at most: the lists of completeness, events of a page.
_TRAILER_BYTES = 256 * 1024


def respond_series(
    answer: SeriesAnswer, headers: Mapping[str, str], *, columns: bool, behind: str | None
) -> Response[str]:
    """With NDJSON a line per point or series, and what else there is to say in the last."""
    # numpy, which functions that only search do not carry; who has an answer has it.
    from ranklog.client.series import in_random_order, place_of
    from ranklog.client.series_answer import cut_groups

    answer = in_random_order(answer, behind)
    rows: list[str] = []
    fit = used = 0
    for group in range(len(answer)):
        texts = _texts(answer, group, columns=columns)
        size = sum(len(text.encode()) + 1 for text in texts)
        if used + size > RESPONSE_BYTES_MAX - _TRAILER_BYTES:
            break
        rows += texts
        fit, used = fit + 1, used + size
    if not fit and len(answer):
        raise TooLarge(
            f"one series makes over {RESPONSE_BYTES_MAX} bytes",
            hint="give max_points, or columns: true",
        )
    shown = cut_groups(answer, range(fit))
    if fit < len(answer):
        shown.next = place_of(answer, fit - 1)
    name = "series" if columns else "points"
    if wants_ndjson(headers):
        body = "".join(f"{row}\n" for row in [*rows, _dump(shown.trailer())])
        return respond_text(body, NDJSON)
    body = f'{{"{name}":[{",".join(rows)}],{_dump(shown.trailer())[1:]}'
    return respond_text(body, JSON)


def _texts(answer: SeriesAnswer, group: int, *, columns: bool) -> list[str]:
    if columns:
        return [_dump(answer[group].to_json())]
    from ranklog.client.series_answer import cut_groups

    return [_dump(row) for row in cut_groups(answer, [group]).rows()]


def _dump(item: Any) -> str:
    return json.dumps(item, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
