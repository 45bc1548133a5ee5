"""An event source mapping's retries, as AWS documents them, over a function of the test."""

from __future__ import annotations

import base64
import json
import threading
import time
from datetime import datetime
from typing import Any

import pytest

from ranklog.model.record import Record
from tests.artefacts.lambdas import Throttled
from tests.artefacts.mapping import KinesisMapping, Terms
from tests.artefacts.worker import Invoked

OK = Invoked(b'{"batchItemFailures": []}')
ERROR = Invoked(b'{"errorType": "Boom"}', "Unhandled")


def records(*names: str, age_s: float = 0) -> list[Record]:
    at = time.time_ns() - int(age_s * 1e9)
    return [Record(name.encode(), at, str(100 + i)) for i, name in enumerate(names)]


class Taken:
    """A function that keeps what it was given and fails as it is told."""

    def __init__(self, *poison: str, partial: bool = False) -> None:
        self.poison, self.partial = poison, partial
        self.batches: list[str] = []
        self.throttles = 0

    def __call__(self, event: bytes) -> Invoked:
        if self.throttles:
            self.throttles -= 1
            raise Throttled("busy")
        items = json.loads(event)["Records"]
        names = [base64.b64decode(item["kinesis"]["data"]).decode() for item in items]
        self.batches.append("".join(names))
        bad = [
            i["kinesis"]["sequenceNumber"]
            for i, n in zip(items, names, strict=True)
            if n in self.poison
        ]
        if not bad:
            return OK
        if self.partial:
            said = [{"itemIdentifier": sequence} for sequence in reversed(bad)]
            return Invoked(json.dumps({"batchItemFailures": said}).encode())
        return ERROR


@pytest.fixture(autouse=True)
def _no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.artefacts.mapping._WAIT_S", 0.0)


def deliver(function: Taken, batch: list[Record], **terms: Any) -> KinesisMapping:
    mapping = KinesisMapping(None, "frames", function, Terms(**terms))
    mapping.deliver("shardId-000000000000", batch)
    return mapping


def test_a_batch_that_is_taken_comes_once() -> None:
    taken = Taken()
    deliver(taken, records("a", "b"))
    assert taken.batches == ["ab"]


def test_what_fails_in_part_comes_again_from_its_lowest_record() -> None:
    taken = Taken("b", "d", partial=True)
    mapping = deliver(taken, records("a", "b", "c", "d"), partial=True, retries=1)
    assert taken.batches == ["abcd", "bcd"]
    assert [(lost.first, lost.last, lost.condition) for lost in mapping.given_up] == [
        ("101", "103", "RetryAttemptsExhausted")
    ]


def test_a_partial_answer_nobody_asked_for_is_a_success() -> None:
    taken = Taken("b", partial=True)
    assert deliver(taken, records("a", "b"), partial=False).given_up == []
    assert taken.batches == ["ab"]


def test_halving_finds_the_record_and_uses_up_no_try() -> None:
    taken = Taken("c")
    mapping = deliver(taken, records(*"abcd"), bisect=True, retries=1)
    assert taken.batches == ["abcd", "ab", "cd", "c", "c", "d"]
    assert [(lost.first, lost.last) for lost in mapping.given_up] == [("102", "102")]
    [record] = json.loads(mapping.given_up[0].record["payload"])["Records"]
    assert base64.b64decode(record["kinesis"]["data"]) == b"c"


def test_without_halving_the_whole_batch_is_given_up() -> None:
    taken = Taken("c")
    mapping = deliver(taken, records(*"abcd"), retries=2)
    assert taken.batches == ["abcd"] * 3
    assert [(lost.first, lost.last) for lost in mapping.given_up] == [("100", "103")]


def test_without_an_end_to_retries_only_age_ends_them() -> None:
    taken = Taken("a")
    mapping = deliver(taken, records("a"), retries=-1, record_age_s=0.2)
    assert len(taken.batches) > 3
    assert [lost.condition for lost in mapping.given_up] == ["RecordAgeExceeded"]


def test_what_is_too_old_is_not_delivered_at_all() -> None:
    taken = Taken()
    mapping = deliver(taken, records("a", age_s=60), record_age_s=30)
    assert (taken.batches, len(mapping.given_up)) == ([], 1)


def test_a_throttled_call_is_no_try() -> None:
    taken = Taken()
    taken.throttles = 5
    mapping = deliver(taken, records("a"), retries=0)
    assert (taken.batches, mapping.given_up) == (["a"], [])


@pytest.mark.parametrize(
    "payload", [b"null", b"[]", b"{}", b'{"batchItemFailures": [{"itemIdentifier": "7"}]}']
)
def test_a_response_that_can_not_be_read_fails_the_whole_batch(payload: bytes) -> None:
    answers = [Invoked(payload), OK]
    batches = []

    def answer(event: bytes) -> Invoked:
        batches.append(len(json.loads(event)["Records"]))
        return answers[len(batches) - 1]

    mapping = KinesisMapping(None, "frames", answer, Terms(partial=True, retries=3))
    mapping.deliver("shardId-000000000000", records("a", "b"))
    assert batches == [2, 2]


def test_batches_are_cut_by_number_and_by_size_and_wait_for_their_window() -> None:
    mapping = KinesisMapping(None, "frames", Taken(), Terms(batch_size=2))
    assert [len(b) for b in mapping._full("s", records(*"abcde"), over=False)] == [2, 2]
    assert [len(b) for b in mapping._full("s", records(*"abcde"), over=True)] == [2, 2, 1]
    large = [Record(b"x" * 2_500_000, 0, str(i)) for i in range(3)]
    assert [len(b) for b in mapping._full("s", large, over=True)] == [1, 1, 1]


class OneShard:
    """Kinesis with one shard, which holds these and no more."""

    def __init__(self, held: list[Record]) -> None:
        self.held = held

    def get_paginator(self, _: str) -> OneShard:
        return self

    def paginate(self, **_: Any) -> list[dict[str, Any]]:
        return [{"Shards": [{"ShardId": "shardId-000000000000"}]}]

    def get_shard_iterator(self, **_: Any) -> dict[str, str]:
        return {"ShardIterator": "first"}

    def get_records(self, **_: Any) -> dict[str, Any]:
        taken, self.held = self.held, []
        items = [
            {
                "Data": record.data,
                "SequenceNumber": record.sequence,
                "ApproximateArrivalTimestamp": datetime.fromtimestamp(record.arrival_ns / 1e9),
            }
            for record in taken
        ]
        return {"Records": items, "NextShardIterator": "next", "MillisBehindLatest": 0}


def test_a_record_is_told_of_when_it_was_read_when_it_goes_out_and_when_it_is_done() -> None:
    taken, told, done = Taken(), [], threading.Event()
    mapping = KinesisMapping(OneShard(records("a", "b")), "frames", taken, Terms(), poll_s=0.01)

    def note(stage: str, found: list[Record]) -> None:
        told.append((stage, b"".join(record.data for record in found), list(taken.batches)))
        if stage == "done":
            done.set()

    mapping.on_read = lambda found: note("read", found) if found else None
    mapping.on_out = lambda found: note("out", found)
    mapping.on_done = lambda found: note("done", found)
    mapping.start()
    assert done.wait(10)
    mapping.close()
    assert told == [("read", b"ab", []), ("out", b"ab", []), ("done", b"ab", ["ab"])]
