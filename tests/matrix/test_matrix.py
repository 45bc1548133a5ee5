"""A short form of the matrix: some schedules without a fault of ours, some with a broken rule.

The long one is `python -m tests.matrix --schedules 300` and `--mutations`.
"""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.matrix import proxy
from tests.matrix.faults import ACTORS, STEPS, Injection, draw_plans, every_row
from tests.matrix.machine import Where
from tests.matrix.mutations import MUTATIONS
from tests.matrix.proxy import Message
from tests.matrix.schedule import Result
from tests.matrix.table import Table
from tests.matrix.workers import behind_proxies, run_seeds, shows
from tests.servers import Server


@pytest.fixture(scope="module")
def where(seaweedfs: Server, moto_server: Server) -> Iterator[Where]:
    with behind_proxies(seaweedfs, moto_server) as found:
        yield found


@pytest.mark.sockets
def test_some_schedules_lose_and_double_nothing(where: Where) -> None:
    table = Table()
    notes = []
    for result in run_seeds(where, range(2), workers=2):
        table.add(result)
        notes += result.notes
    assert notes == []
    assert table.is_clean and table.total.lines > 15_000
    assert {actor for (actor, _, _), row in table.rows.items() if row.schedules} >= {
        *ACTORS[2:]
    } - set(ACTORS[5:])


@pytest.mark.sockets
@pytest.mark.parametrize("name", ["late-not-listed", "checkpoint-before-log", "siblings-not-told"])
def test_a_broken_rule_shows(where: Where, name: str) -> None:
    [result] = run_seeds(where, [MUTATIONS[name].seed], 1, name)
    assert shows(result), result


def test_each_rule_is_broken_by_what_is_put_in_place_of_something_that_is_there() -> None:
    """Who renames what a mutation replaces is told here; that nobody calls it, the schedule tells."""
    code = (
        "from tests.matrix.mutations import MUTATIONS as all; [one.apply() for one in all.values()]"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])


def test_seeds_in_a_row_go_through_all_that_can_happen() -> None:
    met = {
        (one.actor, one.step, one.fault)
        for seed in range(250)
        for plan in draw_plans(seed, random.Random(seed)).values()
        for one in plan.waiting
    }
    assert met == set(every_row())


def test_the_same_seed_draws_the_same() -> None:
    first, second = (draw_plans(7, random.Random(7)) for _ in range(2))
    assert first == second
    assert set(first) == set(STEPS)


def test_a_schedule_is_counted_once_for_each_thing_that_happened_in_it() -> None:
    happened = [
        Injection("ingest", "index.put", "down", 1),
        Injection("ingest", "index.put", "down", 4),
        Injection("query", "index.get", "torn"),
    ]
    table = Table()
    table.add(Result(1, 10, happened, Counter(lost=2), ["lost 2: …"], Counter()))
    table.add(Result(2, 5, happened[2:], Counter(), [], Counter()))
    assert table.rows["ingest", "index.put", "down"].schedules == 1
    assert table.rows["query", "index.get", "torn"].wrong == Counter(lost=2)
    assert table.rows["query", "index.get", "torn"].lines == 15
    assert not table.is_clean and len(table.never) == len(table.rows) - 2


def test_every_rule_that_is_broken_says_what_it_breaks() -> None:
    assert len({mutation.rule for mutation in MUTATIONS.values()}) == len(MUTATIONS) >= 42


def test_half_of_the_records_of_a_call_are_refused_and_told_in_their_places() -> None:
    head = b"POST / HTTP/1.1\r\nx-amz-target: Kinesis_20131202.PutRecords\r\nContent-Length: 3"
    body = b'{"StreamName": "s", "Records": [{"Data": "YQ=="}, {"Data": "Yg=="}, {"Data": "Yw=="}]}'
    request, told = proxy.split_records(Message(head, body))
    assert told == [True, False, True]
    assert b"Yg==" not in request.body and b"Yw==" in request.body
    assert request.header("content-length") == str(len(request.body))
    answer = Message(
        b"HTTP/1.1 200 OK", b'{"Records": [{"SequenceNumber": "1"}, {"SequenceNumber": "2"}]}'
    )
    joined = proxy.join_outcomes(answer, told)
    assert b'"FailedRecordCount": 1' in joined.body
    assert joined.body.index(b'"1"') < joined.body.index(b"injected") < joined.body.index(b'"2"')
