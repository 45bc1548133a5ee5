"""Quotas at the API: 429 with a reason and when to come again."""

from __future__ import annotations

from ranklog.access.meter import Meter, read_hour
from ranklog.access.policy import Policy, Quotas, write_policy
from ranklog.api.app import make_api
from ranklog.api.local import make_handler
from ranklog.api.settings import Settings
from ranklog.api.sinks import StoreFrames
from ranklog.client import Client
from ranklog.layout.keys import hour_of
from ranklog.store.memory import MemoryStore
from tests.api.job import NOW_NS, call, frame_of

OCTETS = {"content-type": "application/octet-stream"}


def test_over_a_quota_a_request_is_told_why_and_when() -> None:
    store = MemoryStore()
    write_policy(store, "default", Policy(quotas=Quotas(1, 1)))
    api = make_handler(store, clock_ns=lambda: NOW_NS)
    assert call(api, "POST", "/v1/frames", frame_of(), headers=OCTETS)[0] == 202
    status, found, shown = call(api, "POST", "/v1/frames", frame_of(number=1), headers=OCTETS)
    assert (status, found["kind"], shown["Retry-After"]) == (429, "over_quota", "3000")
    assert "this hour, quota 1" in found["detail"]
    assert call(api, "POST", "/v1/search", {"query": "odd"})[0] == 200
    status, found, shown = call(api, "POST", "/v1/count", {"query": "odd"})
    assert (status, found["title"], shown["Retry-After"]) == (429, "Too Many Requests", "3000")
    assert shown["Content-Type"] == "application/problem+json"
    assert call(api, "GET", "/v1/health")[0] == 200
    status, used, _ = call(api, "GET", "/v1/usage")
    assert (status, used["quotas"]["scan_bytes_per_hour"]) == (200, 1)


def test_usage_counts_among_requests_at_once() -> None:
    store = MemoryStore()
    write_policy(store, "default", Policy(quotas=Quotas(requests_at_once=0)))
    api = make_handler(store, clock_ns=lambda: NOW_NS)
    assert call(api, "GET", "/v1/usage")[0] == 429


def test_what_is_read_and_sent_is_counted() -> None:
    store = MemoryStore()
    meter = Meter(store, clock_ns=lambda: NOW_NS, process="p")
    client = Client(store=store, tenant="default")
    sink = StoreFrames(store, lambda: NOW_NS)
    settings = Settings(lambda tenant: client, sink=sink, tenant="default", meter=meter)
    api, data = make_api(settings), frame_of()
    call(api, "POST", "/v1/frames", data, headers=OCTETS)
    read = call(api, "POST", "/v1/search", {"query": "odd"})[1]["report"]["bytes_read"]
    meter.flush()
    counted = read_hour(store, "default", hour_of(NOW_NS))
    assert read > 0
    assert counted == {"ingest_bytes": len(data), "scan_bytes": read, "requests": 2}
