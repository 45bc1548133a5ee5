"""A tenant's own rules live in its store and stop no ingest."""

from __future__ import annotations

import json

import pytest

from ranklog.errors import BadRule, NotFound
from ranklog.layout.keys import rule_key
from ranklog.rules.tenant import delete_rules, get_rules, list_rules, load_ruleset, put_rules
from ranklog.store.memory import MemoryStore


def file_of(*names: str) -> bytes:
    rules = [{"name": n, "literals": [f"{n}: "], "pattern": f"{n}: (?P<{n}>.*)"} for n in names]
    return json.dumps({"version": 1, "rules": rules}).encode()


def test_what_is_put_is_listed_loaded_and_deleted() -> None:
    store = MemoryStore()
    assert [rule.name for rule in put_rules(store, "team", "b", file_of("x", "y"))] == ["x", "y"]
    put_rules(store, "team", "a.1", file_of("z"))
    put_rules(store, "team", "b", file_of("x"))
    assert list_rules(store, "team") == ["a.1", "b"]
    assert list_rules(store, "other") == []
    assert store.get(rule_key("team", "b")) == file_of("x")
    rules, refused = load_ruleset(store, "team", presets=[])
    assert ([rule.name for rule in rules.rules], refused) == (["z", "x"], {})
    delete_rules(store, "team", "b")
    with pytest.raises(NotFound):
        get_rules(store, "team", "b")


def test_bad_files_and_names_are_refused_before_they_are_stored() -> None:
    store = MemoryStore()
    put_rules(store, "team", "a", file_of("x"))
    for name, data in [
        ("b", b"{"),
        ("../b", file_of("y")),
        ("b", file_of("x")),
        ("", file_of("y")),
    ]:
        with pytest.raises(BadRule):
            put_rules(store, "team", name, data)
    assert list_rules(store, "team") == ["a"]


def test_a_file_that_went_bad_is_left_out_and_named() -> None:
    store = MemoryStore()
    put_rules(store, "team", "good", file_of("x"))
    store.put(rule_key("team", "bad"), b"{")
    store.put(rule_key("team", "newer"), b'{"version": 9, "rules": []}')
    store.put(rule_key("team", "twice"), file_of("x"))
    rules, refused = load_ruleset(store, "team", presets=[])
    assert [rule.name for rule in rules.rules] == ["x"]
    assert sorted(refused) == ["bad", "newer", "twice"]
