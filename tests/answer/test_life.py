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
