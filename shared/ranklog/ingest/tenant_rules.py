"""Each tenant's rules, read again when they are old: what a long-lived ingest is given."""

from __future__ import annotations

import time
from collections.abc import Callable

from ranklog.limits import RULES_AGE_S_MAX
from ranklog.rules.ruleset import RuleSet
from ranklog.rules.tenant import load_ruleset
from ranklog.store.protocol import Store


class TenantRules:
    """tenant -> rules. `refused`: (tenant, file) -> why it is left out. For one thread.

    A tenant's rules are read once in RULES_AGE_S_MAX; raises what the store raises.
    """

    def __init__(self, store: Store, *, clock_s: Callable[[], float] = time.monotonic) -> None:
        self.refused: dict[tuple[str, str], str] = {}
        self._store = store
        self._clock_s = clock_s
        self._known: dict[str, tuple[float, RuleSet]] = {}

    def __call__(self, tenant: str) -> RuleSet:
        """The tenant's own rules before the presets."""
        now_s = self._clock_s()
        known = self._known.get(tenant)
        if known is not None and now_s - known[0] < RULES_AGE_S_MAX:
            return known[1]
        rules, refused = load_ruleset(self._store, tenant)
        # What is old goes, so that tenants that went don't stay in memory.
        self._known = {
            name: item for name, item in self._known.items() if now_s - item[0] < RULES_AGE_S_MAX
        }
        self._known[tenant] = (now_s, rules)
        self.refused = {key: why for key, why in self.refused.items() if key[0] in self._known}
        self.refused |= {(tenant, name): why for name, why in refused.items()}
        return rules
