"""What a tenant's frames need and what it may use: `<tenant>/config/access.json`.

{"version": 1, "signed": "required", "quotas": {"scan_bytes_per_hour": 1000000000}}
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields, replace
from typing import Any

from ranklog.errors import BadInput, Corrupt, NewerVersion, NotFound
from ranklog.layout import keys
from ranklog.store.protocol import Store

VERSION = 1
REQUIRED, OPTIONAL = "required", "optional"


@dataclass(frozen=True, slots=True)
class Quotas:
    """What a tenant may use; None: as much as there is. An hour is one of the clock, in UTC."""

    ingest_bytes_per_hour: int | None = None
    scan_bytes_per_hour: int | None = None
    requests_at_once: int | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """`signed_required`: a frame without a MAC of the tenant's goes to quarantine."""

    signed_required: bool = False
    quotas: Quotas = field(default_factory=Quotas)

    def to_json(self) -> dict[str, Any]:
        """As it is stored."""
        quotas = {name: getattr(self.quotas, name) for name in QUOTAS}
        return {
            "version": VERSION,
            "signed": REQUIRED if self.signed_required else OPTIONAL,
            "quotas": {name: value for name, value in quotas.items() if value is not None},
        }


QUOTAS = tuple(item.name for item in fields(Quotas))


def read_policy(store: Store, tenant: str) -> Policy:
    """The tenant's policy; nothing is required of one that has none. Raises Corrupt, NewerVersion."""
    try:
        data = store.get(keys.access_policy_key(tenant))
    except NotFound:
        return Policy()
    try:
        said = json.loads(data)
        if said["version"] > VERSION:
            raise NewerVersion(f"the policy of tenant {tenant!r} is of a newer version")
        if said["signed"] not in (REQUIRED, OPTIONAL):
            raise Corrupt(f"the policy of tenant {tenant!r} has signed {said['signed']!r}")
        quotas = {name: int(said["quotas"][name]) for name in QUOTAS if name in said["quotas"]}
        return Policy(said["signed"] == REQUIRED, Quotas(**quotas))
    except (ValueError, KeyError, TypeError) as error:
        raise Corrupt(f"the policy of tenant {tenant!r} can't be read: {error}") from error


def write_policy(store: Store, tenant: str, policy: Policy) -> None:
    """In place of the one before: of two writers the last has the word."""
    store.put(keys.access_policy_key(tenant), json.dumps(policy.to_json(), indent=1).encode())


def with_quota(policy: Policy, name: str, value: int | None) -> Policy:
    """The policy with one quota set or (None) lifted. Raises BadInput."""
    if name not in QUOTAS:
        raise BadInput(f"no quota {name!r}", hint=f"quotas are {', '.join(QUOTAS)}")
    if value is not None and value <= 0:
        raise BadInput(
            f"{name} of {value} would refuse everything", hint="a number above 0, or none"
        )
    return replace(policy, quotas=replace(policy.quotas, **{name: value}))
