"""The authorisation matrix: every route and every command, for every kind of key.

Generated from the routes and commands that there are: one that is missing from the matrix fails.
"""

from __future__ import annotations

from typing import Any

import pytest

from ranklog.access.api_keys import StoreKeys
from ranklog.access.grant import ADMIN, READ, WRITE
from ranklog.access.manage import create_api_key, revoke_key
from ranklog.api.app import Handler, build_resolver
from ranklog.api.local import make_handler
from ranklog.api.settings import Settings
from ranklog.cli.commands import COMMANDS
from ranklog.client import Client
from ranklog.store.memory import MemoryStore
from tests.api.job import NOW_NS, call, frame_of

OCTETS = {"content-type": "application/octet-stream"}
CALLERS = ("none", "unknown", "wrong tenant", "read", "write", "admin", "expired", "revoked")
# What each sort of route answers to each caller of CALLERS. A key of another tenant may ask and
# finds nothing of this one's; what it sends for this one is refused.
ANYONE = (200,) * 8
READS = (401, 401, 200, 200, 403, 200, 401, 401)
READS_A_RUN = (401, 401, 404, 200, 403, 200, 401, 401)
TAKES_FRAMES = (401, 401, 403, 403, 202, 202, 401, 401)

MATRIX: dict[tuple[str, str], tuple[int, ...]] = {
    ("GET", "/v1/health"): ANYONE,
    ("GET", "/openapi.json"): ANYONE,
    ("POST", "/v1/search"): READS,
    ("POST", "/v1/count"): READS,
    ("POST", "/v1/series"): READS,
    ("POST", "/v1/compare"): READS_A_RUN,
    ("POST", "/v1/outliers"): READS_A_RUN,
    ("POST", "/v1/triage"): READS_A_RUN,
    ("POST", "/v1/stacks"): READS_A_RUN,
    ("POST", "/v1/export"): READS,
    ("GET", "/v1/runs"): READS,
    ("GET", "/v1/runs/<run>/streams"): READS_A_RUN,
    ("POST", "/v1/missing"): READS,
    ("GET", "/v1/callsites"): READS,
    ("GET", "/v1/patterns"): READS,
    ("GET", "/v1/tail"): READS,
    ("POST", "/v1/frames"): TAKES_FRAMES,
}
BODIES: dict[str, dict[str, Any]] = {
    "/v1/compare": {"run": "job", "ranks": "0,1"},
    "/v1/outliers": {"run": "job"},
    "/v1/triage": {"run": "job"},
    "/v1/stacks": {"run": "job"},
}


def every_route() -> list[tuple[str, str]]:
    settings = Settings(client_of=lambda tenant: Client(store=MemoryStore(), tenant=tenant))
    return build_resolver(settings).routes()


class Served:
    """An API over a store with a job of tenant `acme`, and a key for each caller."""

    def __init__(self) -> None:
        store = MemoryStore()
        self.keys = {
            name: create_api_key(store, tenant, [scope], now_ns=NOW_NS, lifetime_ns=lifetime)[0]
            for name, tenant, scope, lifetime in (
                ("wrong tenant", "other", ADMIN, None),
                ("read", "acme", READ, None),
                ("write", "acme", WRITE, None),
                ("admin", "acme", ADMIN, None),
                ("expired", "acme", ADMIN, 1),
            )
        }
        self.keys["revoked"], record = create_api_key(store, "acme", [ADMIN], now_ns=NOW_NS)
        revoke_key(store, "acme", record.key_id, now_ns=NOW_NS)
        self.keys["unknown"] = self.keys["admin"][:-1] + "_"
        ring = StoreKeys(store, lambda: NOW_NS + 10)
        self.api: Handler = make_handler(store, keys=ring, tenant=None, clock_ns=lambda: NOW_NS)

    def ask(self, method: str, rule: str, caller: str) -> tuple[int, Any]:
        headers = {} if caller == "none" else {"Authorization": f"Bearer {self.keys[caller]}"}
        body: Any = BODIES.get(rule, {}) if method == "POST" else None
        if rule == "/v1/frames":
            body, headers = frame_of("acme"), headers | OCTETS
        path = rule.replace("<run>", "job")
        status, found, shown = call(self.api, method, path, body, headers=headers)
        if status >= 400:
            assert shown["Content-Type"] == "application/problem+json"
            assert found["status"] == status
        return status, found


@pytest.fixture(scope="module")
def served() -> Served:
    made = Served()
    assert made.ask("POST", "/v1/frames", "write")[0] == 202
    return made


def test_the_matrix_has_every_route_and_no_other() -> None:
    assert set(every_route()) == set(MATRIX)


@pytest.mark.parametrize(("method", "rule"), every_route())
def test_a_route_answers_each_caller_as_the_matrix_says(
    served: Served, method: str, rule: str
) -> None:
    statuses = tuple(served.ask(method, rule, caller)[0] for caller in CALLERS)
    assert dict(zip(CALLERS, statuses, strict=True)) == dict(
        zip(CALLERS, MATRIX[method, rule], strict=True)
    )


@pytest.mark.parametrize(("method", "rule"), every_route())
def test_another_tenants_key_finds_nothing(served: Served, method: str, rule: str) -> None:
    _, own = served.ask(method, rule, "read")
    _, others = served.ask(method, rule, "wrong tenant")
    if (method, rule) not in (("GET", "/v1/health"), ("GET", "/openapi.json")):
        assert "gpu-" not in str(others) and "train.py" not in str(others)
    assert own is not None


def test_who_may_not_is_refused_before_the_request_is_read(served: Served) -> None:
    key = {"Authorization": f"Bearer {served.keys['write']}"}
    assert call(served.api, "POST", "/v1/search", {"bad": 1}, headers=key)[0] == 403
    assert call(served.api, "POST", "/v1/search", b"\xff", headers=key)[0] == 403


def test_a_path_that_is_spelled_otherwise_opens_nothing(served: Served) -> None:
    key = {"Authorization": f"Bearer {served.keys['write']}"}
    for path in (
        "/v1/search/",
        "//v1/search",
        "/V1/SEARCH",
        "/v1/./search",
        "/v1/frames/../search",
    ):
        assert call(served.api, "POST", path, {}, headers=key)[0] in (403, 404)
        assert call(served.api, "POST", path, {})[0] == 401
    assert call(served.api, "POST", "/v1/health", {}, headers=key)[0] == 404


@pytest.mark.parametrize(
    ("vouched", "status"),
    [
        ({"tenant": "acme"}, 200),
        ({"tenant": "acme", "scopes": "read"}, 200),
        ({"tenant": "acme", "scopes": "admin"}, 200),
        ({"tenant": "acme", "scopes": "write"}, 403),
        ({"tenant": "acme", "scopes": ""}, 403),
        ({"scopes": "admin"}, 401),
    ],
)
def test_an_authorizer_says_tenant_and_scopes(
    served: Served, vouched: dict[str, str], status: int
) -> None:
    found = call(served.api, "POST", "/v1/search", {}, authorizer={"lambda": vouched})
    assert found[0] == status


# --- commands ----------------------------------------------------------------------------------
# A command that can ask an API sends the key and has the matrix above. The others need the store
# itself, whose own permissions (files, IAM) are above every key, or touch no store at all.
BY_API = frozenset(
    "search tail runs streams callsites patterns compare outliers triage watch stacks series plot "
    "tensorboard export missing".split()
)
NEEDS_THE_STORE = frozenset("import ingest sql serve".split())
NO_STORE = frozenset("demo run doctor agent replay rules version".split())


# Commands that administer: none of them may offer --api, so no key of less than the store opens them.
ADMIN_BY_STORE = frozenset(
    "keys quarantine usage compact reindex delete retention audit configure slo canary".split()
)


def test_every_command_is_in_the_matrix() -> None:
    names = {command.name for command in COMMANDS}
    assert names - BY_API - NEEDS_THE_STORE - NO_STORE - ADMIN_BY_STORE == set()
    by_api = {c.name for c in COMMANDS if any(flag.name == "--api" for flag in c.flags)}
    assert by_api & ADMIN_BY_STORE == set()


@pytest.mark.parametrize("name", sorted(ADMIN_BY_STORE & {c.name for c in COMMANDS}))
def test_a_command_that_administers_works_on_the_store_alone(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from ranklog.cli.main import main

    monkeypatch.delenv("RANKLOG_STORE", raising=False)
    monkeypatch.setenv("RANKLOG_API", "http://127.0.0.1:9")
    assert main([name, *_WORDS.get(name, [])]) == 2
    assert "store" in capsys.readouterr().err


_WORDS: dict[str, list[str]] = {"keys": ["list"], "quarantine": ["list"], "retention": ["show"]}
