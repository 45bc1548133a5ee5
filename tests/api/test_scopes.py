"""The authorisation matrix: every route and every command, for every kind of key.

Generated from the routes and commands that there are: one that is missing from the matrix fails.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ranklog.access.api_keys import StoreKeys
from ranklog.access.grant import ADMIN, READ, WRITE
from ranklog.access.manage import create_api_key, revoke_key
from ranklog.api.app import Handler, build_resolver
from ranklog.api.local import make_handler
from ranklog.api.serve import make_server
from ranklog.api.settings import Settings
from ranklog.cli.commands import COMMANDS
from ranklog.cli.main import main
from ranklog.client import Client
from ranklog.store.memory import MemoryStore
from ranklog.stream.disk import DiskStream
from tests.api.job import NOW_NS, call, frame_of

OCTETS = {"content-type": "application/octet-stream"}
CALLERS = ("none", "unknown", "wrong tenant", "read", "write", "admin", "expired", "revoked")
# What each sort of route answers to each caller of CALLERS. A key of another tenant may ask and
# finds nothing of this one's; what it sends for this one is refused.
ANYONE = (200,) * 8
READS = (401, 401, 200, 200, 403, 200, 401, 401)
READS_A_RUN = (401, 401, 404, 200, 403, 200, 401, 401)
TAKES_FRAMES = (401, 401, 403, 403, 202, 202, 401, 401)
# Another tenant's administrator administers that tenant, and nothing of this one's.
ADMINISTERS = (401, 401, 200, 403, 403, 200, 401, 401)
DELETES_A_RUN = (401, 401, 404, 403, 403, 200, 401, 401)

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
    ("GET", "/v1/slo"): READS,
    ("POST", "/v1/frames"): TAKES_FRAMES,
    ("GET", "/v1/audit"): READS,
    ("GET", "/v1/usage"): READS,
    ("GET", "/v1/retention"): READS,
    ("POST", "/v1/retention"): ADMINISTERS,
    ("POST", "/v1/retention/apply"): ADMINISTERS,
    ("POST", "/v1/delete"): DELETES_A_RUN,
    ("GET", "/v1/actions"): ADMINISTERS,
    ("GET", "/v1/quarantine"): ADMINISTERS,
    ("POST", "/v1/quarantine/replay"): ADMINISTERS,
}
BODIES: dict[str, dict[str, Any]] = {
    "/v1/compare": {"run": "job", "ranks": "0,1"},
    "/v1/outliers": {"run": "job"},
    "/v1/triage": {"run": "job"},
    "/v1/stacks": {"run": "job"},
    "/v1/delete": {"run": "job", "dry_run": True},
    "/v1/retention": {"keep": "90d"},
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
# A command that can ask an API sends the key, so each is tried with every kind of key: a command that
# is new fails here until it says what it needs. The others need the store itself, whose own permissions
# (files, IAM) are above every key, or touch no store at all.
NO_STORE = frozenset("demo run doctor agent replay rules version configure".split())
BY_STORE = frozenset("import ingest sql serve keys compact reindex".split())
# Writes and reads: a key of either scope alone is not enough.
BOTH = frozenset(["canary"])
# Commands that follow for ever are only tried with keys that are refused; their routes are above.
FOR_EVER = frozenset("tail watch tensorboard".split())
NEEDS = {
    **dict.fromkeys(
        "search tail runs streams callsites patterns compare outliers triage watch stacks series plot "
        "tensorboard export missing audit usage slo".split(),
        READ,
    ),
    **dict.fromkeys("delete quarantine retention".split(), ADMIN),
}
RUN_WORDS = ["--run", "job"]
WORDS: dict[str, list[list[str]]] = {
    "search": [["*"], ["*", "--count"]],
    "streams": [RUN_WORDS],
    "compare": [[*RUN_WORDS, "--ranks", "0,1"]],
    "outliers": [RUN_WORDS],
    "triage": [RUN_WORDS],
    "watch": [RUN_WORDS],
    "stacks": [RUN_WORDS],
    "series": [["loss", *RUN_WORDS], ["--list"]],
    "plot": [["loss", *RUN_WORDS]],
    "tensorboard": [RUN_WORDS],
    "export": [["*", "--format", "jsonl", "--out", "{new}"]],
    "missing": [["odd"]],
    "delete": [["odd", *RUN_WORDS, "--dry-run"]],
    "quarantine": [["list"], ["replay"]],
    "retention": [["set", "90d"], ["apply"], ["clear"]],
}
REFUSED = {
    READ: ("none", "unknown", "write", "expired", "revoked"),
    ADMIN: ("none", "unknown", "read", "write", "expired", "revoked"),
}
# Where less is enough: what a command reads that else writes; what shows more than its lines.
OTHERWISE = [("retention", ["show"], READ), ("audit", ["--log"], ADMIN)]
TRIED = [
    (name, words, NEEDS[name]) for name in NEEDS for words in WORDS.get(name, [[]])
] + OTHERWISE


def test_every_command_is_in_the_matrix() -> None:
    names = {command.name for command in COMMANDS}
    assert names == names & (NO_STORE | BY_STORE | BOTH | NEEDS.keys())
    asking = {c.name for c in COMMANDS if any(flag.name == "--api" for flag in c.flags)}
    assert asking - {"import", "serve", "sql", "configure"} == names & (NEEDS.keys() | BOTH)


@pytest.fixture(scope="module")
def url(served: Served) -> Iterator[str]:
    server = make_server(served.api, host="127.0.0.1", port=0)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def ask(
    served: Served, url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[[str, list[str], str], int]:
    def asked(name: str, words: list[str], caller: str) -> int:
        monkeypatch.delenv("RANKLOG_STORE", raising=False)
        monkeypatch.setenv("RANKLOG_API", url)
        monkeypatch.delenv("RANKLOG_API_KEY", raising=False)
        if caller != "none":
            monkeypatch.setenv("RANKLOG_API_KEY", served.keys[caller])
        return main([name, *(word.replace("{new}", str(tmp_path / caller)) for word in words)])

    return asked


@pytest.mark.sockets
@pytest.mark.parametrize(("name", "words", "scope"), TRIED, ids=lambda one: str(one))
def test_a_command_answers_each_caller_as_its_scope_says(
    name: str,
    words: list[str],
    scope: str,
    ask: Callable[[str, list[str], str], int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    if name not in {command.name for command in COMMANDS}:
        pytest.skip("not in this version")
    for caller in REFUSED[scope]:
        assert ask(name, words, caller) == 2, caller
        said = capsys.readouterr().err
        assert ("scope" if caller in ("read", "write") else "key") in said, caller
    if name in FOR_EVER:
        return
    for caller in {READ: ("read", "admin"), ADMIN: ("admin",)}[scope]:
        assert ask(name, words, caller) in (0, 1, 3), (caller, capsys.readouterr().err)
    capsys.readouterr()
    ask(name, words, "wrong tenant")
    said = capsys.readouterr().out
    assert "gpu-" not in said and "train.py" not in said and "iteration 1" not in said


@pytest.mark.sockets
def test_a_canary_needs_to_read_and_to_write(
    ask: Callable[[str, list[str], str], int], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--lines", "2", "--timeout", "1"]
    for caller in REFUSED[READ]:
        assert ask("canary", words, caller) == 2
        assert ("scope" if caller == "write" else "key") in capsys.readouterr().err, caller
    # whoever has a key of another tenant has that one's canary
    assert ask("canary", ["--lines", "2", "--timeout", "60"], "wrong tenant") == 0
    assert ask("canary", words, "read") == 1
    assert "answered 403" in capsys.readouterr().err


@pytest.mark.parametrize("name", sorted(BY_STORE & {c.name for c in COMMANDS}))
def test_a_command_that_needs_the_store_asks_no_api(
    name: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.delenv("RANKLOG_STORE", raising=False)
    monkeypatch.setenv("RANKLOG_API", "http://127.0.0.1:9")
    (tmp_path / "x.log").write_text("a line\n")
    DiskStream(tmp_path / "stream").put("p", frame_of())
    words = {
        "keys": ["list"],
        "import": [str(tmp_path / "x.log"), "--run", "r"],
        "ingest": [str(tmp_path / "stream")],
        "sql": ["SELECT 1"],
    }
    assert main([name, *words.get(name, [])]) == 2
    assert "store" in capsys.readouterr().err
