"""API keys: shown once, hashed, scoped, expiring, revocable."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranklog.access import records
from ranklog.access.api_keys import StoreKeys
from ranklog.access.grant import ADMIN, READ, WRITE, Grant
from ranklog.access.key_text import API, INGEST, new_key, parse_ingest_key, parse_key
from ranklog.access.manage import (
    create_api_key,
    create_ingest_key,
    forget_key,
    list_keys,
    revoke_key,
)
from ranklog.errors import BadInput, Corrupt, Forbidden, NewerVersion, NotFound, Unauthorized
from ranklog.limits import API_KEY_AGE_NS_MAX, API_KEYS_KNOWN_MAX
from ranklog.store.disk import DiskStore
from ranklog.store.memory import MemoryStore

NOW = 1_772_323_200_000_000_000


class Clock:
    """A time that stands until it is moved."""

    def __init__(self) -> None:
        self.now_ns = NOW

    def __call__(self) -> int:
        return self.now_ns


class CountedGets(MemoryStore):
    """Counts what looking keys up costs."""

    gets = 0

    def get(self, key: str) -> bytes:
        self.gets += 1
        return super().get(key)


@given(st.sampled_from([API, INGEST]), st.text(st.characters(codec=None), max_size=60))
def test_a_key_is_read_as_it_was_written(kind: str, tenant: str) -> None:
    key = new_key(kind, tenant or "t")
    assert parse_key(key.render()) == key


@given(st.text(max_size=80))
def test_other_text_is_no_key(text: str) -> None:
    assert parse_key(text) is None
    assert parse_key("rlk_" + text) is None


def test_only_one_spelling_of_a_key_is_taken() -> None:
    text = new_key(API, "acme").render()
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    assert [c for c in letters if parse_key(text[:-1] + c) == parse_key(text)] == [text[-1]]


def test_what_is_no_ingest_key_is_refused_without_being_repeated() -> None:
    with pytest.raises(BadInput) as refused:
        parse_ingest_key("rlk_secret")
    assert "secret" not in str(refused.value)


def test_a_key_of_the_store_names_its_tenant_and_scopes() -> None:
    store = MemoryStore()
    key, record = create_api_key(store, "acme", [READ, WRITE], now_ns=NOW)
    ring = StoreKeys(store, Clock())
    assert ring.grant_of(key) == Grant("acme", frozenset([READ, WRITE]), record.key_id)
    assert ring.grant_of(new_key(API, "acme").render()) is None
    assert ring.grant_of("anything") is None


def test_neither_the_key_nor_its_secret_is_in_the_store() -> None:
    store = MemoryStore()
    key, record = create_api_key(store, "acme", [READ], now_ns=NOW)
    kept = b"".join(store.get(found.key) for found in store.list(""))
    assert key.rpartition(".")[2].encode() not in kept
    assert record.digest.encode() in kept


def test_a_right_id_with_a_wrong_secret_is_nobodys() -> None:
    store = MemoryStore()
    key, _ = create_api_key(store, "acme", [ADMIN], now_ns=NOW)
    forged = f"{key.rpartition('.')[0]}.{new_key(API, 'acme').render().rpartition('.')[2]}"
    assert StoreKeys(store, Clock()).grant_of(forged) is None


def test_a_key_that_names_another_tenant_is_nobodys() -> None:
    store = MemoryStore()
    key, _ = create_api_key(store, "acme", [ADMIN], now_ns=NOW)
    create_api_key(store, "other", [ADMIN], now_ns=NOW)
    stranger = new_key(API, "other").render().split(".")[0]
    assert StoreKeys(store, Clock()).grant_of(f"{stranger}.{key.split('.', 1)[1]}") is None


def test_an_ingest_key_asks_nothing() -> None:
    store = MemoryStore()
    key, _ = create_ingest_key(store, "acme", now_ns=NOW)
    assert StoreKeys(store, Clock()).grant_of(key) is None


def test_a_key_ends_at_its_time() -> None:
    store, clock = MemoryStore(), Clock()
    key, _ = create_api_key(store, "acme", [READ], now_ns=NOW, lifetime_ns=10)
    ring = StoreKeys(store, clock)
    clock.now_ns = NOW + 9
    assert ring.grant_of(key) is not None
    clock.now_ns = NOW + 10
    with pytest.raises(Unauthorized, match="has expired"):
        ring.grant_of(key)


def test_a_revoked_key_stops_within_the_bound_and_costs_one_get_until_then() -> None:
    store, clock = CountedGets(), Clock()
    key, record = create_api_key(store, "acme", [READ], now_ns=NOW)
    ring = StoreKeys(store, clock)
    assert ring.grant_of(key) is not None
    revoke_key(store, "acme", record.key_id, now_ns=NOW + 1)
    store.gets = 0
    clock.now_ns = NOW + API_KEY_AGE_NS_MAX - 1
    assert (ring.grant_of(key) is not None, store.gets) == (True, 0)
    clock.now_ns = NOW + API_KEY_AGE_NS_MAX
    with pytest.raises(Unauthorized, match="was revoked"):
        ring.grant_of(key)
    assert store.gets == 1


def test_a_clock_that_was_set_back_makes_no_key_live_longer() -> None:
    store, clock = MemoryStore(), Clock()
    key, record = create_api_key(store, "acme", [READ], now_ns=NOW)
    ring = StoreKeys(store, clock)
    ring.grant_of(key)
    revoke_key(store, "acme", record.key_id, now_ns=NOW)
    clock.now_ns = NOW - 10 * API_KEY_AGE_NS_MAX
    with pytest.raises(Unauthorized):
        ring.grant_of(key)


def test_a_flood_of_unknown_keys_is_not_remembered_without_bound() -> None:
    ring = StoreKeys(MemoryStore(), Clock())
    for _ in range(API_KEYS_KNOWN_MAX + 50):
        ring.grant_of(new_key(API, "t").render())
    assert len(ring._known) == API_KEYS_KNOWN_MAX


def test_a_tenant_whose_name_fits_no_store_has_no_keys() -> None:
    ring = StoreKeys(MemoryStore(), Clock())
    assert ring.grant_of(new_key(API, "é" * 150).render()) is None
    assert ring.grant_of(new_key(API, "../../other").render()) is None


def test_revoking_twice_keeps_the_first_time_and_forgetting_leaves_nothing() -> None:
    store = MemoryStore()
    _, record = create_api_key(store, "acme", [READ], now_ns=NOW)
    first = revoke_key(store, "acme", record.key_id, now_ns=NOW + 1)
    assert revoke_key(store, "acme", record.key_id, now_ns=NOW + 2) == first
    forget_key(store, "acme", record.key_id)
    assert list_keys(store, "acme") == []


def test_a_key_can_only_be_revoked_by_its_own_tenant() -> None:
    store = MemoryStore()
    _, record = create_api_key(store, "acme", [READ], now_ns=NOW)
    for key_id in (record.key_id, "../" + record.key_id, "x", ""):
        with pytest.raises(NotFound):
            revoke_key(store, "other", key_id, now_ns=NOW)
    assert [item.revoked_ns for item in list_keys(store, "acme")] == [None]


def test_keys_are_listed_oldest_first_without_hash_or_secret() -> None:
    store = MemoryStore()
    create_ingest_key(store, "acme", now_ns=NOW + 1, name="nodes")
    create_api_key(store, "acme", [ADMIN, READ], now_ns=NOW, name="ci", lifetime_ns=5)
    create_api_key(store, "other", [READ], now_ns=NOW)
    found = [item.to_json() for item in list_keys(store, "acme")]
    assert [(x["kind"], x["name"], x["scopes"], x["expires_ns"]) for x in found] == [
        ("api", "ci", ["read", "admin"], NOW + 5),
        ("ingest", "nodes", [], None),
    ]
    assert not {"hash", "secret"} & {name for item in found for name in item}


@pytest.mark.parametrize(
    ("scopes", "lifetime_ns", "name"),
    [([], None, ""), (["root"], None, ""), ([READ], 0, ""), ([READ], None, "a\nb")],
)
def test_a_key_that_makes_no_sense_is_not_made(
    scopes: list[str], lifetime_ns: int | None, name: str
) -> None:
    store = MemoryStore()
    with pytest.raises(BadInput):
        create_api_key(store, "t", scopes, now_ns=NOW, lifetime_ns=lifetime_ns, name=name)
    assert list(store.list("")) == []


def test_on_a_disk_a_key_is_its_owners_file(tmp_path: Path) -> None:
    store = DiskStore(str(tmp_path / "s"), create=True)
    create_ingest_key(store, "acme", now_ns=NOW)
    [found] = list(store.list(""))
    path = store.local_path(found.key)
    assert path is not None
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"version": 2}, NewerVersion),
        ({"tenant": "other"}, Corrupt),
        ({"expires_ns": "soon"}, Corrupt),
    ],
)
def test_a_record_that_is_not_what_its_name_says_grants_nothing(
    change: dict[str, object], error: type[Exception]
) -> None:
    store = MemoryStore()
    key, _ = create_api_key(store, "acme", [READ], now_ns=NOW)
    [found] = list(store.list(""))
    store.put(found.key, json.dumps(json.loads(store.get(found.key)) | change).encode())
    with pytest.raises(error):
        StoreKeys(store, Clock()).grant_of(key)


def test_a_scope_that_a_newer_one_knows_grants_nothing() -> None:
    store = MemoryStore()
    key, record = create_api_key(store, "acme", [READ], now_ns=NOW)
    [found] = list(store.list(""))
    said = json.loads(store.get(found.key)) | {"scopes": ["read", "everything"]}
    store.put(found.key, json.dumps(said).encode())
    assert StoreKeys(store, Clock()).grant_of(key) == Grant(
        "acme", frozenset([READ]), record.key_id
    )


def test_admin_includes_the_others_and_nothing_else_does() -> None:
    Grant("t", frozenset([ADMIN])).require(READ)
    for held, asked in ((READ, WRITE), (WRITE, READ), (READ, ADMIN), (WRITE, ADMIN)):
        with pytest.raises(Forbidden, match=f"scope {asked}, yours has {held}"):
            Grant("t", frozenset([held])).require(asked)


def test_a_hash_is_of_the_whole_key() -> None:
    assert records.hash_key("a") != records.hash_key("b")
