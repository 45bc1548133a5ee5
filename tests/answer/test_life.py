"""Late, gone, silent: against the rest of the attempt, and never of who ended or never sent a heartbeat."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ranklog.answer.completeness import Window, judge
from ranklog.answer.life import GONE_NS, SILENT_NS, Pulse, quiet_streams
from ranklog.limits import HOUR_NS, SECOND_NS
from ranklog.model.frame import Fence, StreamEnd
from ranklog.model.index import StreamEntry
from ranklog.model.stream import ARRIVAL, Stream

T = 10 * HOUR_NS
LIVE = Stream("acme", "llama", "17", 0, "gpu-1", 0, 0, "stdout", "0")
ODD = replace(LIVE, rank=1)


def verdicts(odd: Pulse, newest_ns: int = T) -> list[str]:
    live = Pulse(LIVE, "a", newest_ns, newest_ns, owed=False, ended=False)
    found = quiet_streams([live, odd])
    assert all(item["stream"] == "b" for item in found)
    return [item["verdict"] for item in found]


@pytest.mark.parametrize(
    ("last_ns", "alive_ns", "owed", "ended", "verdict"),
    [
        (T, T, False, False, []),
        (T - SILENT_NS - 1, T, False, False, ["silent"]),
        (T - SILENT_NS, T, False, False, []),
        (T - GONE_NS - 1, T - GONE_NS - 1, False, False, ["gone"]),
        (T - GONE_NS, T - GONE_NS - 9, False, False, []),
        (None, T - GONE_NS - 1, False, False, ["gone"]),
        (T - GONE_NS - 1, None, False, False, []),
        (T, None, True, False, ["late"]),
        (T - HOUR_NS, T - HOUR_NS, True, True, []),
    ],
)
def test_a_verdict_is_held_against_the_rest_of_the_attempt(
    last_ns: int | None, alive_ns: int | None, owed: bool, ended: bool, verdict: list[str]
) -> None:
    assert verdicts(Pulse(ODD, "b", last_ns, alive_ns, owed, ended)) == verdict


def test_another_attempt_says_nothing_of_this_one() -> None:
    earlier = Pulse(replace(ODD, attempt=1), "b", T - HOUR_NS, T - HOUR_NS, False, False)
    assert verdicts(earlier) == []


def entry(stream: Stream, at: int, alive: int | None = None, **notes: object) -> StreamEntry:
    made = StreamEntry(stream, stream.stream_id, 1, 0, at, at, ((0, 1),))
    return replace(made, alive_ns=alive, **notes)  # type: ignore[arg-type]


def test_every_answer_says_who_is_gone_late_or_silent() -> None:
    late = replace(LIVE, rank=2)
    judged = judge(
        [
            entry(LIVE, T, T),
            entry(ODD, T - HOUR_NS, T - HOUR_NS),
            entry(late, T, T, fences=(Fence(10, ((0, 4),)),)),
            entry(replace(LIVE, rank=3), T - HOUR_NS, end=StreamEnd(1, 0)),
        ],
        Window(),
    )
    assert [(one["rank"], one["verdict"]) for one in judged.quiet] == [(1, "gone"), (2, "late")]
    assert judged.state == "gaps"


def test_imported_and_foreign_streams_say_from_where_on_they_are_certified() -> None:
    imported = replace(ODD, certified="import")
    foreign = replace(LIVE, rank=2, certified="agent", kind=ARRIVAL)
    judged = judge(
        [
            entry(LIVE, T),
            entry(imported, T + SECOND_NS),
            entry(imported, T - SECOND_NS),
            entry(foreign, T + 7),
        ],
        Window(),
    )
    assert [(one["rank"], one["certified"], one["kind"], one["ts_ns"]) for one in judged.since] == [
        (1, "import", "dense", T - SECOND_NS),
        (2, "agent", "arrival", T + 7),
    ]


def test_a_rank_that_speaks_in_one_stream_is_silent_in_none() -> None:
    began, now = T, T + HOUR_NS
    empty = replace(LIVE, channel="stdout")
    speaks = replace(LIVE, channel="logging", incarnation="1")
    pulses = [
        Pulse(empty, "a", None, now, False, False),
        Pulse(speaks, "b", now, now, False, False, began),
    ]
    assert quiet_streams(pulses) == []


def test_who_never_spoke_is_silent_since_the_attempt_began() -> None:
    for minutes, verdict in ((4, []), (6, ["silent"])):
        now = T + minutes * 60 * SECOND_NS
        live = Pulse(LIVE, "a", now, now, False, False, T)
        never = Pulse(ODD, "b", None, now, False, False)
        assert [one["verdict"] for one in quiet_streams([live, never])] == verdict
    assert quiet_streams([Pulse(ODD, "b", None, T, False, False)]) == []


def test_processes_without_a_rank_are_silent_by_themselves() -> None:
    now = T + HOUR_NS
    host = replace(LIVE, rank=None, local_rank=None)
    silent = Pulse(host, "a", T, now, False, False, T)
    aside = Pulse(replace(host, channel="stderr"), "b", None, now, False, False)
    other = Pulse(replace(host, incarnation="1"), "c", now, now, False, False, T)
    found = quiet_streams([silent, aside, other])
    assert [(one["stream"], one["verdict"]) for one in found] == [("a", "silent"), ("b", "silent")]
