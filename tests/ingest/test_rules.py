"""Rules during ingest: they add metadata to the rows they match, and nothing else changes."""

from __future__ import annotations

from ranklog.ingest.batch import Record, ingest_batch
from ranklog.rules.rule import Rule
from ranklog.rules.ruleset import RuleSet
from ranklog.store.memory import MemoryStore
from ranklog.stream.frames import encode_frame
from tests.ingest.frames import T0, Row, make_frame
from tests.ingest.read_back import indexes, lines

RULES = RuleSet(
    [
        Rule(
            name="progress",
            literals=("it ",),
            pattern=r"it (?P<iteration>\d+) loss (?P<loss>[0-9.]+) on (?P<device>\w+)",
            types={"iteration": "int", "loss": "float", "device": "str"},
        )
    ]
)


def test_rules_add_metadata_of_bodies_and_the_producers_stays() -> None:
    rows = [
        Row("it 3 loss 0.5 on gpu1"),
        Row("no"),
        Row("3: it 4 loss 0.6 on gpu2", body_at=3, metadata={"loss": 9.5}),
        Row("it 5 loss 0.7 on gpu3", iteration=7),
    ]
    store = MemoryStore()
    report = ingest_batch(
        [Record(encode_frame(make_frame(rows)), T0, "1")],
        store=store,
        rules=RULES,
        source="s",
        first="1",
        last="1",
    )
    assert report.rules_failed == {}
    found = [(row["iteration"], row["metadata"]) for _, row in sorted(lines(store).items())]
    assert found == [
        (3, {"float:loss": 0.5, "str:device": "gpu1"}),
        (None, {}),
        (4, {"float:loss": 9.5, "str:device": "gpu2"}),
        (7, {"float:loss": 0.7, "str:device": "gpu3", "int:iteration": 5}),
    ]
    (index,) = indexes(store)
    assert index.head.columns == ("str:device", "int:iteration", "float:loss")
    assert index.bloom_may_contain_value(0, "device", "gpu2")


def test_each_tenant_may_have_its_own_rules() -> None:
    store = MemoryStore()
    records = [Record(encode_frame(make_frame([Row("it 3 loss 0.5 on gpu1")])), T0, "1")]
    names = {"source": "s", "first": "1", "last": "1"}
    asked = []

    def rules_of(tenant: str) -> RuleSet:
        asked.append(tenant)
        return RULES

    ingest_batch(records, store=store, rules=rules_of, **names)
    assert asked == ["acme"]
    assert [row["iteration"] for row in lines(store).values()] == [3]
