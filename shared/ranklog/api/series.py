"""Series as a body that fits into a response: as many as fit, and a cursor for the others; or, where
the caller takes an answer in parts, as lines that follow each other as they are ready."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.event_handler import Response

from ranklog.api.answers import JSON, NDJSON, respond_text, wants_ndjson
from ranklog.api.problems import problem_of
from ranklog.errors import RanklogError, TooLarge
from ranklog.limits import RESPONSE_BYTES_MAX

if TYPE_CHECKING:
    from ranklog.client.series_answer import SeriesAnswer

# What there is to say beside series, at most: the lists of completeness, events of a page.
_TRAILER_BYTES = 256 * 1024


def respond_series(
    answer: SeriesAnswer, headers: Mapping[str, str], *, columns: bool, behind: str | None
) -> Response[str]:
    """With NDJSON a line per point or series, and what else there is to say in the last."""
    # numpy, which takes a cold start its time; who has an answer has it.
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


def stream_series(parts: Iterator[SeriesAnswer], *, columns: bool) -> Iterator[str]:
    """Lines of NDJSON, as above. The first part is waited for here, so that what is wrong with the
    question is still an error of the whole; what breaks later is a last line `{"problem": …}`."""
    first = next(parts)
    return _lines(chain([first], parts), columns=columns)


def _lines(parts: Iterable[SeriesAnswer], *, columns: bool) -> Iterator[str]:
    whole: dict[str, Any] = {"events": [], "downsampled": None, "aggregate": None}
    said: dict[str, Any] = {}
    try:
        for part in parts:
            for group in range(len(part)):
                yield "".join(f"{text}\n" for text in _texts(part, group, columns=columns))
            said = part.trailer()
            _add(whole, said)
    except RanklogError as error:
        yield f'{{"problem":{problem_of(error).body}}}\n'
    else:
        yield f"{_dump({**said, **whole})}\n"


def _add(whole: dict[str, Any], said: dict[str, Any]) -> None:
    """What one part says of its series, beside what others said of theirs."""
    whole["events"] += said["events"]
    whole["aggregate"] = whole["aggregate"] or said["aggregate"]
    thinned, before = said["downsampled"], whole["downsampled"]
    if thinned is not None and before is not None:
        thinned |= {name: thinned[name] + before[name] for name in ("read", "shown")}
    whole["downsampled"] = thinned or before


def _texts(answer: SeriesAnswer, group: int, *, columns: bool) -> list[str]:
    if columns:
        return [_dump(answer[group].to_json())]
    from ranklog.client.series_answer import cut_groups

    return [_dump(row) for row in cut_groups(answer, [group]).rows()]


def _dump(item: Any) -> str:
    return json.dumps(item, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
