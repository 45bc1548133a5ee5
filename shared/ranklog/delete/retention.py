"""How long lines are kept: rules per tenant, by name of the run; and the floor of times that follows.

    <tenant>/config/retention.json

The rule whose pattern has the most letters that stand for themselves decides. Floors are whole hours, so
that what is below one is mostly whole objects.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from ranklog.errors import BadInput, Corrupt, NewerVersion, NotFound
from ranklog.layout import keys
from ranklog.limits import CANARY_KEPT_NS, CANARY_RUN, HOUR_NS, RETENTION_NS_MIN
from ranklog.store.protocol import Store

VERSION = 1
EVERY_RUN = "*"


@dataclass(frozen=True, slots=True)
class Rule:
    """Lines of runs whose name fits `run` (with * and ?) are kept for `keep_ns`."""

    run: str
    keep_ns: int


@dataclass(frozen=True, slots=True)
class Policy:
    """A tenant's rules; without one that fits, a run is kept for good. Canaries' run is kept for a day where
    no rule has its very name."""

    rules: tuple[Rule, ...] = ()

    def keep_ns(self, run: str) -> int | None:
        """How long lines of a run are kept, None: for good."""
        fitting = [rule for rule in (CANARIES, *self.rules) if fnmatchcase(run, rule.run)]
        return max(fitting, key=_exactness).keep_ns if fitting else None

    def floor_ns(self, run: str, now_ns: int) -> int:
        """Lines before this time are neither kept nor taken; 0 where there is no such time."""
        keep_ns = self.keep_ns(run)
        return 0 if keep_ns is None else max(0, (now_ns - keep_ns) // HOUR_NS * HOUR_NS)

    def with_rule(self, run: str, keep_ns: int | None) -> Policy:
        """The rule of this pattern replaced; None: without it. Raises BadInput."""
        if not run.strip():
            raise BadInput("a rule of no run", hint=f"a name with * and ?, {EVERY_RUN}: every run")
        if keep_ns is not None and keep_ns < RETENTION_NS_MIN:
            hours = RETENTION_NS_MIN // HOUR_NS
            raise BadInput(f"to keep lines for less than {hours} h", hint="90d, or 36h")
        others = [rule for rule in self.rules if rule.run != run]
        added = [] if keep_ns is None else [Rule(run, keep_ns)]
        return Policy(tuple(sorted([*others, *added], key=lambda rule: rule.run)))


# Where a tenant says nothing of them.
CANARIES = Rule(CANARY_RUN, CANARY_KEPT_NS)


def _exactness(rule: Rule) -> tuple[int, bool, str]:
    return sum(letter not in "*?" for letter in rule.run), rule is not CANARIES, rule.run


def policy_key(tenant: str) -> str:
    return f"{keys.tenant_prefix(tenant)}config/retention.json"


def load_policy(store: Store, tenant: str) -> Policy:
    """The tenant's rules; none where nobody set any. Raises Corrupt, NewerVersion."""
    key = policy_key(tenant)
    try:
        body = json.loads(store.get(key))
        if body["version"] > VERSION:
            raise NewerVersion(f"{key} was written by a newer ranklog", hint="upgrade ranklog")
        return Policy(tuple(_rule(item) for item in body["rules"]))
    except NotFound:
        return Policy()
    except (ValueError, KeyError, TypeError) as error:
        raise Corrupt(f"{key} is damaged: {error}", hint="set it again") from error


def _rule(item: dict[str, Any]) -> Rule:
    return Rule(str(item["run"]), int(item["keep_ns"]))


def save_policy(store: Store, tenant: str, policy: Policy) -> None:
    """From here on these are the rules."""
    rules: Sequence[dict[str, Any]] = [
        {"run": rule.run, "keep_ns": rule.keep_ns} for rule in policy.rules
    ]
    data = json.dumps({"version": VERSION, "rules": rules}, separators=(",", ":")).encode()
    store.put(policy_key(tenant), data)
