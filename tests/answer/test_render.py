"""The JSON of the interfaces, member for member."""

from __future__ import annotations

import json
import math

from ranklog.answer.render import (
    completeness_json,
    count_json,
    line_json,
    render_time,
    select_fields,
)
from ranklog.model import frame
from ranklog.model.answer import Completeness, Line

LINE = Line(
    stream_id="ab",
    seq=7,
    ts_ns=1_772_323_200_000_000_001,
    run="llama",
    launch="17",
    attempt=0,
    rank=3,
    local_rank=None,
    host="gpu-1",
    channel="stdout",
    group=None,
    level=30,
    call_site="a.py:3",
    function=None,
    logger=None,
    text="loss is nan",
    iteration=120,
    metadata={"loss": math.nan, "n": 3, "who": "x", "top": -math.inf},
)


def test_a_line_has_every_member_and_absent_is_null() -> None:
    assert line_json(LINE) == {
        "id": "ab:7",
        "kind": "line",
        "time": "2026-03-01T00:00:00.000000001Z",
        "ts_ns": 1_772_323_200_000_000_001,
        "run": "llama",
        "run_id": "llama@17",
        "attempt": 0,
        "rank": 3,
        "local_rank": None,
        "host": "gpu-1",
        "stream": "ab",
        "channel": "stdout",
        "seq": 7,
        "group": None,
        "level": "WARNING",
        "call_site": "a.py:3",
        "function": None,
        "logger": None,
        "text": "loss is nan",
        "iteration": 120,
        "metadata": {"loss": "NaN", "n": 3, "who": "x", "top": "-Infinity"},
        "match": True,
    }


def test_other_members_stand_only_where_they_apply() -> None:
    LINE.flags, LINE.raw, LINE.copy = frame.TS_INHERITED | frame.LEVEL_INFERRED, b"\xff", True
    shown = line_json(LINE)
    LINE.flags, LINE.raw, LINE.copy = 0, None, False
    assert (shown["ts_source"], shown["level_source"], shown["raw_b64"], shown["copy"]) == (
        "inherited",
        "inferred",
        "/w==",
        True,
    )


def test_json_has_no_bare_nan() -> None:
    json.dumps(line_json(LINE), allow_nan=False)


def test_fields_choose_members_and_metadata_keys() -> None:
    shown = select_fields(line_json(LINE), ["step", "text", "loss", "nope"])
    assert shown == {"step": 120, "text": "loss is nan", "loss": "NaN", "nope": None}


def test_long_lists_are_cut_and_say_how_much_more() -> None:
    shown = completeness_json(Completeness(absent=list(range(130))))
    assert (len(shown["absent"]), shown["more"]) == (100, 30)
    assert "more" not in completeness_json(Completeness(absent=[1]))


def test_what_is_behind_has_its_time_as_text_too() -> None:
    item = {"stream": "s", "rank": 3, "seq": 7, "ts_ns": 1}
    behind = [item, item | {"ts_ns": None}]
    shown = completeness_json(Completeness("behind", behind=behind))["behind"]
    assert shown == [item | {"time": "1970-01-01T00:00:00.000000001Z"}, behind[1] | {"time": None}]


def test_a_count_names_levels_and_times() -> None:
    assert count_json((), (), 5) == {"count": 5}
    assert count_json(("level", "bucket_ns"), (40, 0), 2) == {
        "level": "ERROR",
        "bucket_ns": 0,
        "time": "1970-01-01T00:00:00.000000000Z",
        "count": 2,
    }


def test_a_time_has_nine_digits() -> None:
    assert render_time(1_500_000_000_000_000_010) == "2017-07-14T02:40:00.000000010Z"
