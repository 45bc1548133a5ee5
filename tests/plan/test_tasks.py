"""Tasks and outcomes survive their JSON, and refuse what is newer."""

from __future__ import annotations

import json
import math

import pytest

from ranklog.errors import Corrupt, NewerVersion
from ranklog.model import query as q
from ranklog.plan.tasks import (
    FAILED,
    Groups,
    InStreams,
    InTemplates,
    Lines,
    NearRows,
    Outcome,
    RankIs,
    SegmentFailure,
    SegmentScan,
    Task,
    decode_outcome,
    decode_task,
    encode_outcome,
    encode_task,
)

RANK = q.Field("rank", ":", (q.Range(0, 7, inclusive=True),))
EXPR = q.And(
    (
        q.Contains('é\x00"'),
        q.Not(q.Matches("a|b", "im")),
        q.Or((q.Field("loss", "<=", (q.Number(math.inf, "Inf"), q.Null(), q.Present())),)),
        q.Field("x", ":", (q.Glob("a*", "^a.*$"), q.RegexValue("b"), q.Exact("c", True))),
        InStreams(0),
        InTemplates(1),
        RankIs(0, RANK),
        q.NearSet("time", "any", (('["r"]', ((1, 2), (5, 9))),)),
    )
)
SCAN = SegmentScan(
    number=3,
    key="acme/data/x.parquet",
    length=10,
    etag="e",
    footer=4,
    min_ts=1,
    max_ts=2,
    columns=("int:a", "overflow"),
    rows=((0, 5),),
    tids=(1, 2),
    slots=(((0, 2), (4, 5)), ()),
    skip=((0, 1, 2),),
    wanted=((0, 1, 2, -1),),
    order=(1, 0),
    ranks=(None, 3),
    keys=((0, 0),),
    hosts=(0, 1),
    after=(5, 1, True, 9),
    small=((0, 4),),
    text=((4, 8),),
    late=((8, 9),),
    sums="AAAA",
)
NEAR = NearRows("time", False, (0,), (0,), (1,), (2,))


@pytest.mark.parametrize("shape", [Lines(5, False, True, ("loss",)), Groups(("stream",), True)])
def test_a_task_survives_its_json(shape: Lines | Groups) -> None:
    task = Task(EXPR, (SCAN,), shape, (NEAR,), 2.5, "acme/tmp/1")
    assert decode_task(encode_task(task)) == task


def test_an_outcome_survives_its_json() -> None:
    failure = SegmentFailure(3, "k", "missing", True)
    outcome = Outcome(FAILED, "missing", True, {"text": ["é", None]}, [failure], 10, 1.5, 2)
    assert decode_outcome(encode_outcome(outcome)) == outcome


@pytest.mark.parametrize("decode", [decode_task, decode_outcome])
def test_what_is_newer_is_refused(decode: object) -> None:
    with pytest.raises(NewerVersion):
        decode(json.dumps({"version": 99}).encode())  # type: ignore[operator]


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", b'{"version": "1"}'])
def test_what_is_no_task_is_corrupt(data: bytes) -> None:
    with pytest.raises(Corrupt):
        decode_task(data)


def test_an_unknown_node_is_newer() -> None:
    data = encode_task(Task(q.Contains("x"), (), Groups())).replace(b"Contains", b"Resembles")
    with pytest.raises(NewerVersion):
        decode_task(data)
