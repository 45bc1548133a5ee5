"""No name reaches beyond its tenant: names of frames, parameters of HTTP, options of commands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ranklog.access.manage import create_api_key, create_ingest_key, list_keys, revoke_key
from ranklog.api.local import make_handler
from ranklog.api.scopes import SCOPE_OF
from ranklog.errors import BadInput, RanklogError
from ranklog.ingest.batch import ingest_batch
from ranklog.ingest.quarantine import find_entry, list_entries
from ranklog.layout import keys
from ranklog.model.record import Record
from ranklog.store.disk import DiskStore
from ranklog.store.key import check_key
from ranklog.store.memory import MemoryStore
from ranklog.store.protocol import ObjectInfo
from ranklog.stream.frames import encode_frame
from tests.api.job import NOW_NS, call, frame_of
from tests.ingest.frames import STREAM, T0, Row, make_frame

HOSTILE = [
    "..", ".", "", "/", "//", "../other", "../../other/data", "other/data/x", "a/../../other",
    "%2e%2e%2f", "%", "_unknown", "\x00", "a\x00b", "..\\other", "\ud800", "é" * 20, "-rf", "*", "a b",
    "late", "data", "x.json", "\n", "a\r\nSet-Cookie: x", "'; DROP VIEW lines; --", "${HOME}", "~",
    "other", "{}", "<run>", "con", "x" * 60,
]  # fmt: skip


def _fits(name: str) -> bool:
    """What is too long is refused, and no key is made of it: it has a test of its own."""
    try:
        keys.tenant_prefix(name)
    except BadInput:
        return False
    return True


NAMES = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=40)).filter(_fits)


class Fenced:
    """A store that fails a test that touches what is not one tenant's."""

    def __init__(self, inside: MemoryStore, tenant: str) -> None:
        self._inside = inside
        # its own objects, and what its answers leave for their next pages
        self._prefixes = (keys.tenant_prefix(tenant), keys.tmp_prefix(tenant))
        self.url = inside.url

    def _check(self, key: str) -> str:
        assert key.startswith(self._prefixes), f"{key!r} is not in {self._prefixes!r}"
        assert not {"", ".", ".."} & set(key.rstrip("/").split("/"))
        return key

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> str:
        return self._inside.put(self._check(key), data, if_absent=if_absent)

    def get(self, key: str) -> bytes:
        return self._inside.get(self._check(key))

    def get_range(self, key: str, start: int, length: int, *, if_match: str = "") -> bytes:
        return self._inside.get_range(self._check(key), start, length, if_match=if_match)

    def list(self, prefix: str, **options: Any) -> Iterator[ObjectInfo]:
        return self._inside.list(self._check(prefix), **options)

    def list_folders(self, prefix: str) -> Iterator[str]:
        return self._inside.list_folders(self._check(prefix))

    def delete(self, key: str) -> None:
        self._inside.delete(self._check(key))

    def local_path(self, key: str) -> None:
        return None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inside, name)


@given(NAMES, NAMES)
def test_two_tenants_never_share_a_place(one: str, two: str) -> None:
    first, second = keys.tenant_prefix(one), keys.tenant_prefix(two)
    check_key(first + "x")
    assert first.count("/") == 1 and not first.startswith("_")
    assert one == two or not (first.startswith(second) or second.startswith(first))


@given(st.text(min_size=201))
def test_a_name_that_is_too_long_is_refused_everywhere(name: str) -> None:
    for make in (keys.tenant_prefix, keys.quarantine_prefix, keys.tmp_prefix):
        with pytest.raises(BadInput):
            make(name)
    frame = encode_frame(make_frame([Row("a line", stream=replace(STREAM, run=name))]))
    store = MemoryStore()
    report = ingest_batch([Record(frame, T0, "1")], store=store, source="s", first="1", last="1")
    assert [bad.code for bad in report.bad] == ["refused"]


@given(NAMES)
def test_every_name_is_one_part_of_a_key_and_comes_back(name: str) -> None:
    part = keys.encode_name(name)
    assert "/" not in part and part not in ("", ".", "..")
    assert keys.decode_name(part) == name


@given(tenant=NAMES, run=NAMES, launch=NAMES, host=NAMES, channel=NAMES, source=NAMES, number=NAMES)
@settings(max_examples=60, deadline=None)
def test_what_a_frame_names_stays_in_its_tenant(
    tenant: str, run: str, launch: str, host: str, channel: str, source: str, number: str
) -> None:
    stream = replace(
        STREAM, tenant=tenant, run=run, launch=launch, host=host, channel=channel, source=source
    )
    data = encode_frame(make_frame([Row("a line", stream=stream)], tenant=tenant))
    store = MemoryStore()
    report = ingest_batch(
        [Record(data, T0, number)], store=store, source=source, first=number, last=number
    )
    assert report.lines + len(report.bad) == 1
    prefix = keys.tenant_prefix(tenant)
    for found in store.list(""):
        check_key(found.key)
        assert found.key.startswith(prefix)


@pytest.mark.parametrize("name", HOSTILE)
def test_on_a_disk_nothing_is_written_beside_the_store(
    name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("outer")
    store = DiskStore(str(folder / "store"), create=True)
    stream = replace(STREAM, tenant=name, run=name, launch=name, host=name, channel=name)
    data = encode_frame(make_frame([Row("a line", stream=stream)], tenant=name))
    ingest_batch([Record(data, T0, name)], store=store, source=name, first=name, last=name)
    assert [path.name for path in folder.iterdir()] == ["store"]
    assert all(found.key.startswith(keys.tenant_prefix(name)) for found in store.list(""))


# --- HTTP ---------------------------------------------------------------------------------------
ROUTES = [
    ("POST", "/v1/search", ["query", "run", "host", "cursor", "pin", "level", "fields", "since"]),
    ("POST", "/v1/count", ["query", "run", "host", "every", "by"]),
    ("POST", "/v1/series", ["query", "run", "cursor", "by"]),
    ("POST", "/v1/compare", ["run", "with", "ranks", "query"]),
    ("POST", "/v1/outliers", ["run", "query"]),
    ("POST", "/v1/triage", ["run", "query"]),
    ("POST", "/v1/stacks", ["run", "thread"]),
    ("POST", "/v1/export", ["run", "cursor", "format", "query"]),
    ("GET", "/v1/runs", ["query", "run", "host"]),
    ("GET", "/v1/callsites", ["query", "run", "every"]),
    ("GET", "/v1/patterns", ["query", "run", "with"]),
    ("GET", "/v1/tail", ["query", "run", "cursor"]),
    ("GET", "/v1/slo", ["since", "until", "tz"]),
    ("POST", "/v1/missing", ["run", "query", "by", "host"]),
    ("POST", "/v1/delete", ["run", "query", "host", "since", "who", "why"]),
    ("GET", "/v1/audit", ["run"]),
    ("GET", "/v1/usage", ["run", "since", "last"]),
    ("GET", "/v1/retention", []),
    ("POST", "/v1/retention", ["run", "keep", "who", "why"]),
    ("POST", "/v1/retention/apply", ["who", "why"]),
    ("GET", "/v1/actions", []),
    ("GET", "/v1/quarantine", ["id"]),
    ("POST", "/v1/quarantine/replay", ["who", "ids"]),
]


def test_every_route_that_takes_words_is_tried() -> None:
    others = {"/v1/frames", "/v1/runs/<run>/streams", "/v1/health", "/openapi.json"}
    tried = {path for _, path, _ in ROUTES}
    assert {path for _, path in SCOPE_OF} - others == tried


@pytest.fixture(scope="module")
def fenced() -> Any:
    store = MemoryStore()
    for tenant in ("acme", "other"):
        record = Record(frame_of(tenant), NOW_NS, "1")
        ingest_batch([record], store=store, source="s", first="1", last="1")
    return make_handler(Fenced(store, "acme"), tenant="acme", clock_ns=lambda: NOW_NS)


@given(st.sampled_from(ROUTES), st.data())
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_no_parameter_of_http_leaves_the_tenant(
    fenced: Any, route: tuple[str, str, list[str]], data: st.DataObject
) -> None:
    method, path, members = route
    chosen = (
        data.draw(st.lists(st.sampled_from(members), unique=True, max_size=3)) if members else []
    )
    given_: dict[str, Any] = {name: data.draw(NAMES) for name in chosen}
    if method == "POST":
        status, found, _ = call(fenced, method, path, given_)
    else:
        status, found, _ = call(
            fenced, method, path, query={"wait": "0"} | given_ if path == "/v1/tail" else given_
        )
    assert status in (200, 400, 404, 413), found
    assert "'other'" not in str(found) or status in (400, 404)


@given(NAMES)
@settings(max_examples=60, deadline=None)
def test_no_run_in_a_path_leaves_the_tenant(fenced: Any, run: str) -> None:
    from urllib.parse import quote

    part = quote(run, safe="", errors="surrogatepass")
    assert call(fenced, "GET", f"/v1/runs/{part}/streams")[0] in (200, 400, 404)


def test_a_header_can_name_no_tenant(fenced: Any) -> None:
    for name in ("X-Tenant", "Tenant", "X-Amzn-Tenant", "Ranklog-Tenant"):
        found = call(fenced, "POST", "/v1/search", {}, headers={name: "other"})
        assert found[0] == 200
    assert call(fenced, "POST", "/v1/search", {"tenant": "other"})[0] == 400
    assert call(fenced, "GET", "/v1/runs", query={"tenant": "other"})[0] == 400


# --- keys and quarantine ------------------------------------------------------------------------
@given(NAMES, NAMES)
@settings(max_examples=60, deadline=None)
def test_keys_and_quarantine_stay_in_their_tenant(tenant: str, name: str) -> None:
    inside = MemoryStore()
    store: Any = Fenced(inside, tenant)
    create_api_key(store, tenant, ["read"], now_ns=T0)
    create_ingest_key(store, tenant, now_ns=T0)
    assert len(list_keys(store, tenant)) == 2
    for attempt in (
        lambda: revoke_key(store, tenant, name, now_ns=T0),
        lambda: find_entry(store, tenant, name),
    ):
        with pytest.raises(RanklogError):
            attempt()
    assert list(list_entries(store, tenant)) == []


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/outliers", {"run": "*"}),
        ("/v1/triage", {"run": "*"}),
        ("/v1/compare", {"run": "*"}),
        ("/v1/compare", {"run": "*", "with": "job"}),
    ],
)
def test_a_star_for_a_run_is_no_one_run(fenced: Any, path: str, body: dict[str, str]) -> None:
    status, found, _ = call(fenced, "POST", path, body)
    assert (status, found["detail"]) == (400, "all launches")
