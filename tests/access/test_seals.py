"""Whose a frame is: proven by its MAC, as long as its key is good."""

from __future__ import annotations

import pytest

from ranklog.access.key_text import parse_ingest_key
from ranklog.access.manage import create_ingest_key, revoke_key
from ranklog.access.policy import Policy, write_policy
from ranklog.access.seals import Seals
from ranklog.errors import Forbidden, Forged, Unsigned
from ranklog.layout import keys
from ranklog.limits import DAY_NS, INGEST_KEYS_AGE_S_MAX
from ranklog.store.memory import MemoryStore
from ranklog.stream.frames import encode_frame, frame_is_sealed_by, seal_frame
from tests.ingest.frames import T0, Row, make_frame

FRAME = encode_frame(make_frame([Row("a")]))
RETENTION = 2 * DAY_NS


class Clock:
    """Seconds that stand until they are moved."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def seals_of(store: MemoryStore, clock: Clock | None = None) -> Seals:
    return Seals(store, retention_ns=RETENTION, clock_s=clock or Clock())


def new_secret(store: MemoryStore, tenant: str = "acme", now_ns: int = T0) -> tuple[bytes, str]:
    text, record = create_ingest_key(store, tenant, now_ns=now_ns)
    return parse_ingest_key(text).secret, record.key_id


def test_a_frame_of_the_tenants_key_is_taken_and_anothers_is_forged() -> None:
    store = MemoryStore()
    own, other = new_secret(store)[0], new_secret(store, "other")[0]
    seals_of(store).check("acme", seal_frame(FRAME, own), T0)
    with pytest.raises(Forged, match="its MAC is of none of that tenant's ingest keys"):
        seals_of(store).check("acme", seal_frame(FRAME, other), T0)
    with pytest.raises(Forged):
        seals_of(store).check("other", seal_frame(FRAME, own), T0)


def test_a_mac_that_nobody_can_check_is_forged_also_where_none_is_required() -> None:
    with pytest.raises(Forged):
        seals_of(MemoryStore()).check("acme", seal_frame(FRAME, b"k" * 32), T0)


def test_without_a_mac_a_frame_is_taken_until_its_tenant_requires_one() -> None:
    store = MemoryStore()
    secret, _ = new_secret(store)
    seals_of(store).check("acme", FRAME, T0)
    write_policy(store, "acme", Policy(signed_required=True))
    with pytest.raises(Unsigned, match="requires one"):
        seals_of(store).check("acme", FRAME, T0)
    seals_of(store).check("acme", seal_frame(FRAME, secret), T0)
    seals_of(store).check("other", FRAME, T0)


@pytest.mark.parametrize("at", range(0, 80, 7))
def test_a_sealed_frame_with_a_changed_byte_is_forged(at: int) -> None:
    store = MemoryStore()
    secret, _ = new_secret(store)
    sealed = bytearray(seal_frame(FRAME, secret))
    at = at if at < 6 else at + 2  # but for the MAC's own length
    sealed[at] ^= 1
    with pytest.raises(Forged):
        seals_of(store).check("acme", bytes(sealed), T0)


def test_a_rotated_key_verifies_for_the_streams_retention_and_a_week() -> None:
    store = MemoryStore()
    old, _ = new_secret(store, now_ns=T0)
    rotated_ns = T0 + 30 * DAY_NS
    new, _ = new_secret(store, now_ns=rotated_ns)
    seals, end_ns = seals_of(store), rotated_ns + RETENTION + 7 * DAY_NS
    seals.check("acme", seal_frame(FRAME, old), end_ns - 1)
    with pytest.raises(Forged):
        seals.check("acme", seal_frame(FRAME, old), end_ns)
    seals.check("acme", seal_frame(FRAME, new), end_ns)


def test_a_revoked_key_stops_when_keys_are_read_again_and_revives_no_older_one() -> None:
    store, clock = MemoryStore(), Clock()
    secret, key_id = new_secret(store)
    seals = seals_of(store, clock)
    sealed = seal_frame(FRAME, secret)
    seals.check("acme", sealed, T0)
    revoke_key(store, "acme", key_id, now_ns=T0)
    clock.now_s = INGEST_KEYS_AGE_S_MAX
    with pytest.raises(Forged):
        seals.check("acme", sealed, T0)


def test_what_is_sealed_for_a_proven_tenant_goes_with_its_newest_good_key() -> None:
    store = MemoryStore()
    first, _ = new_secret(store, now_ns=T0)
    _, second_id = new_secret(store, now_ns=T0 + 1)
    revoke_key(store, "acme", second_id, now_ns=T0 + 2)
    sealed = seals_of(store).seal("acme", seal_frame(FRAME, b"stale"))
    assert frame_is_sealed_by(sealed, first)
    assert seals_of(store).seal("other", sealed) == FRAME


def test_keys_that_cant_be_read_are_no_fault_of_the_frame_and_stop_nobody_else() -> None:
    store = MemoryStore()
    store.put(keys.access_policy_key("acme"), b"{")
    with pytest.raises(Forbidden, match="nobody can tell who may send frames of tenant 'acme'"):
        seals_of(store).check("acme", FRAME, T0)
    seals_of(store).check("other", FRAME, T0)


def test_tenants_that_frames_only_claim_are_forgotten() -> None:
    clock = Clock()
    seals = seals_of(MemoryStore(), clock)
    for number in range(50):
        clock.now_s += INGEST_KEYS_AGE_S_MAX
        seals.check(f"t{number}", FRAME, T0)
    assert len(seals._known) == 1
