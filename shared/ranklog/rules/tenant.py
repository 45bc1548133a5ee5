"""A tenant's own rules: files under `<tenant>/config/rules/`, in order of their names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ranklog.errors import BadRule, NewerVersion, NotFound
from ranklog.layout.keys import decode_name, rule_key, rules_prefix
from ranklog.limits import RULES_PER_TENANT_MAX
from ranklog.rules.load import load_rules
from ranklog.rules.rule import Rule
from ranklog.rules.ruleset import RuleSet

if TYPE_CHECKING:
    from ranklog.store.protocol import Store

_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def put_rules(store: Store, tenant: str, name: str, data: bytes) -> tuple[Rule, ...]:
    """Validate a rules file and store it under `name`, in place of one of that name.

    What is stored is what was given, byte for byte. Raises BadRule, and BadRule too where the
    tenant's files together would have two rules of one name or more rules than the limit.
    """
    if not _FILE.fullmatch(name):
        raise BadRule(
            f"{name!r} is no name of a rules file",
            hint="use letters, digits and _ . -, at most 64 characters",
        )
    rules = load_rules(data)
    others = [
        r for n in list_rules(store, tenant) if n != name for r in get_rules(store, tenant, n)
    ]
    _refuse_clashes([*others, *rules])
    store.put(rule_key(tenant, name), data)
    return rules


def list_rules(store: Store, tenant: str) -> list[str]:
    """Names of the tenant's rules files, in order."""
    prefix = rules_prefix(tenant)
    keys = [info.key.removeprefix(prefix) for info in store.list(prefix)]
    return [decode_name(key.removesuffix(".json")) for key in keys if key.endswith(".json")]


def get_rules(store: Store, tenant: str, name: str) -> tuple[Rule, ...]:
    """The rules of one file. Raises NotFound, BadRule."""
    return load_rules(store.get(rule_key(tenant, name)))


def delete_rules(store: Store, tenant: str, name: str) -> None:
    """Remove a file; segments keep what its rules have extracted."""
    store.delete(rule_key(tenant, name))


def load_ruleset(
    store: Store, tenant: str, *, presets: Iterable[str] | None = None
) -> tuple[RuleSet, dict[str, str]]:
    """(the tenant's rules before the presets, file -> why it was left out).

    A file that can't be used (written by a newer ranklog, removed meanwhile) is left out and named:
    an ingest must not stop for it.
    """
    rules: list[Rule] = []
    refused: dict[str, str] = {}
    for name in list_rules(store, tenant):
        try:
            more = get_rules(store, tenant, name)
            _refuse_clashes([*rules, *more])
        except (BadRule, NewerVersion, NotFound) as error:
            refused[name] = error.message
            continue
        rules.extend(more)
    return RuleSet.load(presets=presets, custom=rules), refused


def _refuse_clashes(rules: list[Rule]) -> None:
    if len(rules) > RULES_PER_TENANT_MAX:
        raise BadRule(f"{len(rules)} rules; a tenant has at most {RULES_PER_TENANT_MAX}")
    seen: set[str] = set()
    for rule in rules:
        if rule.name in seen:
            raise BadRule(f"two rules are named {rule.name}", hint="rename one")
        seen.add(rule.name)
