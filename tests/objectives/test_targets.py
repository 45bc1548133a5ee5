"""A tenant's own objectives before the defaults."""

from __future__ import annotations

import pytest

from ranklog.errors import BadInput, Corrupt, NewerVersion
from ranklog.layout import keys
from ranklog.objectives.targets import OBJECTIVES, defaults, load_targets, set_targets
from ranklog.store import MemoryStore


def test_who_says_nothing_has_the_defaults() -> None:
    assert load_targets(MemoryStore(), "t") == defaults()


def test_what_a_tenant_sets_holds_for_it_alone_until_it_is_forgotten() -> None:
    store = MemoryStore()
    set_targets(store, "t", {"freshness_p99_ms": 4_000, "durability": None})
    set_targets(store, "t", {"query_p50_ms": 10})
    changed = {"freshness_p99_ms": 4_000.0, "durability": None, "query_p50_ms": 10.0}
    assert load_targets(store, "t") == defaults() | changed
    assert load_targets(store, "u") == defaults()
    set_targets(store, "t", dict.fromkeys(changed, "default"))
    assert load_targets(store, "t") == defaults()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("nothing", 1.0),
        ("completeness", 1.5),
        ("completeness", 0.0),
        ("freshness_p99_ms", 0.0),
        ("freshness_p99_ms", -1.0),
        ("freshness_p99_ms", float("inf")),
        ("freshness_p99_ms", float("nan")),
        ("freshness_p99_ms", "fast"),
    ],
)
def test_what_is_no_objective_is_refused_with_what_would_be(name: str, value: float) -> None:
    store = MemoryStore()
    with pytest.raises(BadInput) as raised:
        set_targets(store, "t", {name: value})
    assert raised.value.hint
    assert list(store.list("")) == []


@pytest.mark.parametrize(
    "data", [b"", b"[]", b'{"version":1,"targets":{"durability":7}}', b'{"targets":{}}']
)
def test_damaged_objectives_are_named(data: bytes) -> None:
    store = MemoryStore()
    store.put(keys.objectives_key("t"), data)
    with pytest.raises(Corrupt, match=r"objectives\.json"):
        load_targets(store, "t")


def test_objectives_of_a_newer_version_are_not_guessed_at() -> None:
    store = MemoryStore()
    store.put(keys.objectives_key("t"), b'{"version":2,"targets":{}}')
    with pytest.raises(NewerVersion):
        load_targets(store, "t")


def test_an_objective_is_a_quantile_or_a_share() -> None:
    for objective in OBJECTIVES:
        assert (objective.times is not None) == objective.name.endswith("_ms")
        assert objective.times is not None or objective.default is None or objective.default <= 1
