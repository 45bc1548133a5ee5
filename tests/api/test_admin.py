"""Administration over an API is what it is over the store: the same answers, the same effects."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from ranklog.access.api_keys import StoreKeys
from ranklog.access.manage import create_api_key, create_ingest_key
from ranklog.access.policy import Policy, write_policy
from ranklog.admin import Admin, open_admin
from ranklog.api import admin as routes
from ranklog.api.local import make_handler
from ranklog.api.serve import make_server
from ranklog.client import Client
from ranklog.errors import BadInput, RanklogError, TooLarge
from ranklog.ingest.batch import ingest_batch
from ranklog.limits import DAY_NS
from ranklog.model.record import Record
from ranklog.store.memory import MemoryStore
from tests.api.job import NOW_NS, call, frame_of
from tests.ingest.frames import T0

pytestmark = pytest.mark.sockets


@dataclass
class Place:
    """A store with two runs and a record in quarantine, and its API."""

    store: MemoryStore
    url: str
    key: str
    key_id: str

    @property
    def local(self) -> Admin:
        return open_admin(store=self.store, tenant="acme")

    @property
    def remote(self) -> Admin:
        return open_admin(api=self.url, key=self.key)


def _filled() -> MemoryStore:
    store = MemoryStore()
    for number, run in enumerate(("job", "other")):
        record = Record(frame_of("acme", run=run, number=number), NOW_NS, str(number))
        ingest_batch([record], store=store, source="s", first=str(number), last=str(number))
    from ranklog.errors import Forged
    from ranklog.ingest.quarantine import set_aside

    set_aside(store, Record(frame_of("acme", number=9), T0, "9"), Forged("a MAC of nobody's"), "s")
    return store


@pytest.fixture
def place() -> Iterator[Place]:
    store = _filled()
    key, record = create_api_key(store, "acme", ["admin"], now_ns=NOW_NS)
    ring = StoreKeys(store, lambda: NOW_NS + 10)
    server = make_server(make_handler(store, keys=ring, tenant=None), host="127.0.0.1", port=0)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield Place(store, f"http://127.0.0.1:{server.server_address[1]}", key, record.key_id)
    server.shutdown()
    thread.join()
    server.server_close()


def bare(found: dict[str, Any]) -> dict[str, Any]:
    """Without what differs from one call to the next: when it was, what it cost."""
    report = {k: v for k, v in found.get("report", {}).items() if k not in ("ms", "bytes_read")}
    rest = {k: v for k, v in found.items() if k not in ("tombstone", "bytes_read", "last_24h")}
    return rest | {"report": report}


def test_what_only_looks_is_equal(place: Place) -> None:
    local, remote = place.local, place.remote
    for ask in (
        lambda a: a.audit(),
        lambda a: a.audit("job", everything=True),
        lambda a: a.actions(),
        lambda a: a.retention(),
        lambda a: a.quarantine(),
        lambda a: a.quarantined(a.quarantine()["entries"][0]["id"]),
        lambda a: a.delete("odd", {"run": "job"}, who="t", dry_run=True),
        lambda a: a.delete("", {"run": "job"}, who="t", dry_run=True),
        lambda a: a.apply_retention(who="t", dry_run=True),
    ):
        assert bare(ask(remote)) == bare(ask(local))  # type: ignore[no-untyped-call]
    stored = "runs", "quotas"
    said = [{name: a.usage({})[name] for name in stored} for a in (local, remote)]
    assert said[0] == said[1] and {row["run_id"] for row in said[0]["runs"]} == {
        "job@l1",
        "other@l1",
    }


def test_errors_are_equal(place: Place) -> None:
    for ask in (
        lambda a: a.delete("odd", {}, who="t"),
        lambda a: a.delete("loss>", {"run": "job"}, who="t"),
        lambda a: a.audit("nobody"),
        lambda a: a.quarantined("2026-01-01/s.77"),
        lambda a: a.replay(["2026-01-01/s.77"], who="t"),
        lambda a: a.set_retention("*", 1, who="t"),
        lambda a: a.set_retention("", 30 * DAY_NS, who="t"),
        lambda a: a.set_retention("", None, who="t"),
        lambda a: a.audit(""),
        lambda a: a.delete("odd", {"run": "", "since": "2026-01-01"}, who="t"),
    ):
        said = []
        for admin in (place.local, place.remote):
            with pytest.raises(RanklogError) as found:
                ask(admin)  # type: ignore[no-untyped-call]
            said.append((type(found.value), found.value.message, found.value.hint))
        assert said[0] == said[1]


def test_a_deletion_through_the_api_hides_lines_and_names_the_key(place: Place) -> None:
    client = Client(store=place.store, tenant="acme")
    assert client.count("odd", run="job").count == 1
    found = place.remote.delete("odd", {"run": "job"}, who="ada", why="a request")
    assert (found["lines"], found["kind"], bool(found["tombstone"])) == (1, "lines", True)
    assert client.count("odd", run="job").count == 0
    [action] = place.local.actions()["actions"]
    assert (action["action"], action["why"]) == ("delete", "a request")
    assert action["who"] == f"key {place.key_id} for ada"
    assert place.remote.audit()["totals"]["deleted"] == 1


def test_retention_through_the_api_holds_at_once(place: Place) -> None:
    rules = place.remote.set_retention("j*", 30 * DAY_NS, who="ada")
    assert rules == place.local.retention() == {"rules": [{"run": "j*", "keep_ns": 30 * DAY_NS}]}
    assert place.remote.apply_retention(who="ada")["lines"] == 13  # of 2026-01-01
    assert Client(store=place.store, tenant="acme").count("", run="job").count == 0
    assert place.remote.set_retention("j*", None, who="ada") == {"rules": []}
    words = [action["action"] for action in place.local.actions()["actions"]]
    assert words == ["retention.set", "retention.apply", "retention.clear"]


def test_a_record_is_replayed_through_the_api_once_it_is_allowed(place: Place) -> None:
    create_ingest_key(place.store, "acme", now_ns=NOW_NS)
    write_policy(place.store, "acme", Policy(signed_required=True))
    found = place.remote.replay([], who="ada")
    assert (found["counts"]["refused"], found["left"]) == (1, 0)
    write_policy(place.store, "acme", Policy())
    found = place.remote.replay([], who="ada")
    assert (found["counts"]["replayed"], found["entries"][0]["lines"]) == (1, 13)
    assert place.remote.replay([], who="ada")["entries"] == []


def test_one_request_works_no_longer_than_its_limits(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "API_AUDIT_BYTES_MAX", 10)
    monkeypatch.setattr(routes, "QUARANTINE_REPLAY_MAX", 0)
    with pytest.raises(TooLarge, match="bytes of segments, limit 10"):
        place.remote.audit()
    assert place.local.audit()["state"] == "verified"
    assert place.remote.replay([], who="t")["left"] == 1


def test_nobodys_quarantine_is_no_keys(place: Place) -> None:
    assert place.local.quarantine(unknown=True) == {"entries": []}
    with pytest.raises(BadInput, match="names no tenant"):
        place.remote.quarantine(unknown=True)


def test_an_api_without_an_administrator_says_so() -> None:
    from ranklog.api.app import make_api
    from ranklog.api.settings import Settings

    store = MemoryStore()
    api = make_api(Settings(lambda tenant: Client(store=store, tenant=tenant), tenant="acme"))
    status, found, _ = call(api, "POST", "/v1/delete", {"run": "job"})
    assert (status, found["detail"]) == (404, "this API administers nothing")


@pytest.mark.parametrize("keep", ["30d", "none"])
def test_a_rule_of_no_run_is_refused(keep: str) -> None:
    api = make_handler(MemoryStore(), keys=None, tenant="acme")
    status, found, _ = call(api, "POST", "/v1/retention", {"run": "", "keep": keep})
    assert (status, found["detail"]) == (400, "a rule of no run")
