"""The authorizer's answers: a key's tenant and scopes, and nothing for anything else."""

from __future__ import annotations

import importlib.util
import threading
from pathlib import Path
from typing import Any

import pytest

from ranklog import limits
from ranklog.access.api_keys import StoreKeys
from ranklog.access.manage import create_api_key, create_ingest_key, revoke_key
from ranklog.errors import Unavailable
from ranklog.serverless.authorize import REFUSED, authorize
from ranklog.store.memory import MemoryStore

APP = Path(__file__).parents[2] / "functions" / "authorizer" / "app.py"
NOW = 1_772_323_200_000_000_000
HOUR = 3_600_000_000_000


def event(authorization: str | None) -> dict[str, Any]:
    headers = {"host": "x"} | ({} if authorization is None else {"Authorization": authorization})
    return {"version": "2.0", "routeKey": "POST /v1/{proxy+}", "headers": headers}


def test_a_key_is_its_tenants_with_its_scopes() -> None:
    store = MemoryStore()
    key, record = create_api_key(store, "acme", ["write", "read"], now_ns=NOW)
    answer = authorize(event(f"Bearer {key}"), StoreKeys(store, lambda: NOW))
    context = {"tenant": "acme", "scopes": "read write", "key": record.key_id}
    assert answer == {"isAuthorized": True, "context": context}


def test_nothing_else_is_let_in() -> None:
    store = MemoryStore()
    key, _ = create_api_key(store, "acme", ["read"], now_ns=NOW)
    ingest, _ = create_ingest_key(store, "acme", now_ns=NOW)
    for text in (None, "", "Bearer", f"Basic {key}", key, f"Bearer {key[:-1]}", f"Bearer {ingest}"):
        assert authorize(event(text), StoreKeys(store, lambda: NOW)) == REFUSED


def test_a_key_that_was_revoked_or_has_expired_is_refused() -> None:
    store = MemoryStore()
    short, _ = create_api_key(store, "acme", ["read"], now_ns=NOW, lifetime_ns=HOUR)
    gone, record = create_api_key(store, "acme", ["read"], now_ns=NOW)
    keys = StoreKeys(store, lambda: NOW + HOUR, age_ns_max=0)
    assert authorize(event(f"Bearer {gone}"), keys)["isAuthorized"]
    revoke_key(store, "acme", record.key_id, now_ns=NOW)
    for key in (short, gone):
        assert authorize(event(f"Bearer {key}"), keys) == REFUSED


def test_a_store_that_does_not_answer_is_no_refusal() -> None:
    class Away(MemoryStore):
        def get(self, key: str) -> bytes:
            raise Unavailable("away")

    store = MemoryStore()
    key, _ = create_api_key(store, "acme", ["read"], now_ns=NOW)
    with pytest.raises(Unavailable):
        authorize(event(f"Bearer {key}"), StoreKeys(Away(), lambda: NOW))


def test_a_store_that_hangs_is_told_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hung(MemoryStore):
        back = threading.Event()

        def get(self, key: str) -> bytes:
            assert self.back.wait(60)
            return super().get(key)

    monkeypatch.setattr(limits, "STORE_PROMPT_S_MAX", 0.1)
    store = Hung()
    key, _ = create_api_key(store, "acme", ["read"], now_ns=NOW)
    module = importlib.util.spec_from_file_location("authorizer_app", APP)
    assert module is not None and module.loader is not None
    app = importlib.util.module_from_spec(module)
    module.loader.exec_module(app)
    monkeypatch.setattr(app, "open_store", lambda _: store)
    monkeypatch.setenv("RANKLOG_STORE", "memory:")
    with pytest.raises(Unavailable, match=r"does not answer within 0\.1 s"):
        authorize(event(f"Bearer {key}"), app._keys())
    store.back.set()
