"""A frame's MAC proves its tenant: checked where frames are ingested, set where a tenant is proven.

A tenant's newest ingest key that is not revoked seals. Every earlier one still verifies frames that
arrived until the stream's retention and a week after it was rotated; a revoked one verifies nothing.
A frame with a MAC of nobody's is forged, whatever the tenant requires.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from ranklog.access.key_text import INGEST
from ranklog.access.policy import Policy, read_policy
from ranklog.access.records import KeyRecord, list_kind
from ranklog.errors import Corrupt, Forbidden, Forged, NewerVersion, Unsigned
from ranklog.limits import (
    INGEST_KEYS_AGE_S_MAX,
    ROTATED_KEY_WEEK_NS,
    STREAM_RETENTION_NS,
)
from ranklog.store.protocol import Store
from ranklog.stream.frames import has_mac, mac_is_of, seal_frame, unseal_frame


@dataclass(frozen=True, slots=True)
class TenantSeals:
    """A tenant's policy, and its ingest keys from the newest to the oldest."""

    policy: Policy
    keys: tuple[KeyRecord, ...]

    def sealing_key(self) -> bytes | None:
        """The secret that new frames are sealed with."""
        return next((key.secret for key in self.keys if key.revoked_ns is None), None)

    def verifying(self, arrival_ns: int, retention_ns: int) -> list[bytes]:
        """Secrets that vouch for a frame of that arrival, the likeliest first."""
        found, rotated_ns = [], None
        for key in self.keys:
            late = rotated_ns is not None and (
                arrival_ns >= rotated_ns + retention_ns + ROTATED_KEY_WEEK_NS
            )
            if key.revoked_ns is None and not late:
                found.append(key.secret)
            rotated_ns = key.created_ns
        return found


class Seals:
    """Tenants' keys, read again when INGEST_KEYS_AGE_S_MAX old. For one thread.

    Raises what the store raises: a frame that can't be checked for now is not taken for now.
    """

    def __init__(
        self,
        store: Store,
        *,
        retention_ns: int = STREAM_RETENTION_NS,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._retention_ns = retention_ns
        self._clock_s = clock_s
        self._known: dict[str, tuple[float, TenantSeals]] = {}

    def check(self, tenant: str, data: bytes, arrival_ns: int) -> None:
        """Raises Unsigned, Forged where the tenant that a frame names is not proven."""
        seals = self._of(tenant)
        if not has_mac(data):
            if seals.policy.signed_required:
                raise Unsigned(
                    f"frame of tenant {tenant!r} has no MAC, and this tenant requires one",
                    hint="give the agent RANKLOG_INGEST_KEY",
                )
            return
        for secret in seals.verifying(arrival_ns, self._retention_ns):
            if mac_is_of(data, secret):
                return
        raise Forged(
            f"frame names tenant {tenant!r}, and its MAC is of none of that tenant's ingest keys",
            hint="`ranklog keys list` shows them",
        )

    def seal(self, tenant: str, data: bytes) -> bytes:
        """The frame with the MAC of a tenant that is proven already; without one if it has no key."""
        secret = self._of(tenant).sealing_key()
        return unseal_frame(data) if secret is None else seal_frame(data, secret)

    def _of(self, tenant: str) -> TenantSeals:
        now_s = self._clock_s()
        known = self._known.get(tenant)
        if known is not None and now_s - known[0] < INGEST_KEYS_AGE_S_MAX:
            return known[1]
        seals = self._read(tenant)
        # What is old goes, so that tenants that went, or never were, don't stay in memory.
        self._known = {
            name: item
            for name, item in self._known.items()
            if now_s - item[0] < INGEST_KEYS_AGE_S_MAX
        }
        self._known[tenant] = (now_s, seals)
        return seals

    def _read(self, tenant: str) -> TenantSeals:
        try:
            records = list_kind(self._store, tenant, INGEST)
            newest_first = sorted(records, key=lambda key: (-key.created_ns, key.key_id))
            return TenantSeals(read_policy(self._store, tenant), tuple(newest_first))
        except (Corrupt, NewerVersion) as error:
            # Not the frame's fault, and no reason to stop other tenants': it waits in quarantine.
            raise Forbidden(
                f"nobody can tell who may send frames of tenant {tenant!r}: {error.message}",
                hint=error.hint,
            ) from error
