"""Rules of a tenant: its own, no one else's, and new within a minute."""

from __future__ import annotations

from ranklog.ingest.tenant_rules import TenantRules
from ranklog.limits import RULES_AGE_S_MAX
from ranklog.rules.ruleset import RuleSet
from ranklog.rules.tenant import put_rules
from ranklog.store import MemoryStore

RULE = b'{"version": 1, "rules": [{"name": "NAME", "literals": ["lr="], "pattern": "lr=(?P<lr>[0-9.]+)"}]}'


def names(rules: RuleSet) -> set[str]:
    return {rule.name for rule in rules.rules} - {rule.name for rule in RuleSet.load().rules}


def test_a_tenant_has_its_own_rules_and_new_ones_within_a_minute() -> None:
    store = MemoryStore()
    now_s = [0.0]
    rules = TenantRules(store, clock_s=lambda: now_s[0])
    assert names(rules("acme")) == set()
    put_rules(store, "acme", "first", RULE.replace(b"NAME", b"my-lr"))
    now_s[0] = RULES_AGE_S_MAX - 1
    assert names(rules("acme")) == set()
    now_s[0] = RULES_AGE_S_MAX
    assert names(rules("acme")) == {"my-lr"}
    assert names(rules("other")) == set()


def test_a_file_that_can_not_be_used_is_left_out_and_named() -> None:
    store = MemoryStore()
    put_rules(store, "acme", "good", RULE.replace(b"NAME", b"my-lr"))
    store.put("acme/config/rules/broken.json", b"{")
    rules = TenantRules(store)
    assert names(rules("acme")) == {"my-lr"}
    assert set(rules.refused) == {("acme", "broken")}
