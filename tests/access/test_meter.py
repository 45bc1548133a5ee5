"""What tenants use, over processes and hours, and what happens over a quota."""

from __future__ import annotations

import time
from collections import Counter

import pytest

from ranklog.access.meter import INGESTED, SCANNED, Meter, read_hour, read_usage
from ranklog.access.policy import Policy, Quotas, read_policy, with_quota, write_policy
from ranklog.errors import BadInput, Corrupt, NewerVersion, OverQuota, Unavailable
from ranklog.layout import keys
from ranklog.limits import HOUR_NS, METER_AGE_S_MAX, METERED_TENANTS_MAX, SECOND_NS
from ranklog.store.memory import MemoryStore

HOUR = 490_000
START = HOUR * HOUR_NS


class Clocks:
    """Both clocks, moved together."""

    def __init__(self) -> None:
        self.at_s = 0.0

    def wall_ns(self) -> int:
        return START + int(self.at_s * SECOND_NS)

    def seconds(self) -> float:
        return self.at_s


def meter_of(store: MemoryStore, clocks: Clocks, process: str = "a") -> Meter:
    return Meter(store, clock_ns=clocks.wall_ns, clock_s=clocks.seconds, process=process)


def use(meter: Meter, kind: str, count: int, tenant: str = "acme") -> None:
    with meter.admitted(tenant, kind):
        meter.add(tenant, kind, count)


def test_over_the_scan_quota_a_tenant_waits_for_the_next_hour_and_others_do_not() -> None:
    store, clocks = MemoryStore(), Clocks()
    write_policy(store, "acme", Policy(quotas=Quotas(scan_bytes_per_hour=100)))
    meter = meter_of(store, clocks)
    use(meter, SCANNED, 99)
    use(meter, SCANNED, 1)
    clocks.at_s = 600
    with pytest.raises(OverQuota, match="has scanned 100 bytes this hour, quota 100") as over:
        use(meter, SCANNED, 1)
    assert over.value.retry_after_s == 3_000
    use(meter, INGESTED, 1)
    use(meter, SCANNED, 1, tenant="other")
    clocks.at_s = 3_600
    use(meter, SCANNED, 1)


def test_a_quota_holds_for_all_processes_together() -> None:
    store, clocks = MemoryStore(), Clocks()
    write_policy(store, "acme", Policy(quotas=Quotas(ingest_bytes_per_hour=100)))
    one, two = meter_of(store, clocks, "one"), meter_of(store, clocks, "two")
    use(one, INGESTED, 60)
    use(two, INGESTED, 60)
    for _ in range(2):  # one round writes, the next reads what the other wrote
        clocks.at_s += METER_AGE_S_MAX
        for meter in (one, two):
            try:
                use(meter, INGESTED, 0)
            except OverQuota:
                meter.flush()
    with pytest.raises(OverQuota, match="has sent 120 bytes"):
        use(one, INGESTED, 0)
    with pytest.raises(OverQuota, match="has sent 120 bytes"):
        use(two, INGESTED, 0)


def test_requests_at_once_are_counted_until_they_end_however_they_end() -> None:
    store, clocks = MemoryStore(), Clocks()
    write_policy(store, "acme", Policy(quotas=Quotas(requests_at_once=1)))
    meter = meter_of(store, clocks)
    with meter.admitted("acme", SCANNED):
        with pytest.raises(OverQuota, match="has 1 requests at once, quota 1"):
            use(meter, SCANNED, 0)
        clocks.at_s = 3_601  # an hour ends meanwhile
    with pytest.raises(ZeroDivisionError), meter.admitted("acme", SCANNED):
        raise ZeroDivisionError
    use(meter, SCANNED, 0)


def test_counts_are_in_the_store_by_hour_the_last_of_an_hour_too() -> None:
    store, clocks = MemoryStore(), Clocks()
    meter = meter_of(store, clocks)
    use(meter, SCANNED, 5)
    clocks.at_s = 3_600
    use(meter, SCANNED, 7)
    meter.flush()
    found = read_usage(store, "acme", range(HOUR - 1, HOUR + 2))
    assert {hour: counts[SCANNED] for hour, counts in found.items()} == {HOUR: 5, HOUR + 1: 7}


def test_a_changed_quota_holds_when_policies_are_read_again() -> None:
    store, clocks = MemoryStore(), Clocks()
    meter = meter_of(store, clocks)
    use(meter, SCANNED, 10)
    write_policy(store, "acme", Policy(quotas=Quotas(scan_bytes_per_hour=5)))
    use(meter, SCANNED, 10)
    clocks.at_s = METER_AGE_S_MAX
    with pytest.raises(OverQuota):
        use(meter, SCANNED, 10)


def test_a_store_that_is_away_fails_no_request_and_loses_no_count() -> None:
    class Away(MemoryStore):
        away = True

        def put(self, key: str, data: bytes, *, if_absent: bool = False) -> str:
            if self.away:
                raise Unavailable("away")
            return super().put(key, data, if_absent=if_absent)

    store, clocks = Away(), Clocks()
    meter = meter_of(store, clocks)
    use(meter, SCANNED, 5)
    meter.flush()
    store.away = False
    meter.flush()
    assert read_hour(store, "acme", HOUR)[SCANNED] == 5


def test_tenants_are_forgotten_before_there_are_too_many() -> None:
    meter = meter_of(MemoryStore(), Clocks())
    for number in range(METERED_TENANTS_MAX + 10):
        meter.add(f"t{number}", SCANNED, 1)
    assert len(meter._hours.running) <= METERED_TENANTS_MAX


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"{", Corrupt),
        (b"[]", Corrupt),
        (b'{"version": 1, "signed": "maybe", "quotas": {}}', Corrupt),
        (b'{"version": 2, "signed": "required", "quotas": {}}', NewerVersion),
    ],
)
def test_a_policy_that_cant_be_read_is_told_of(data: bytes, error: type[Exception]) -> None:
    store = MemoryStore()
    store.put(keys.access_policy_key("acme"), data)
    with pytest.raises(error):
        read_policy(store, "acme")


def test_a_policy_comes_back_and_a_quota_is_lifted() -> None:
    store = MemoryStore()
    policy = with_quota(Policy(True), "requests_at_once", 3)
    write_policy(store, "acme", policy)
    assert read_policy(store, "acme") == policy
    assert with_quota(policy, "requests_at_once", None) == Policy(True)
    for name, value in (("x", 1), ("requests_at_once", 0)):
        with pytest.raises(BadInput):
            with_quota(policy, name, value)


def test_what_no_later_request_would_write_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ranklog.access.meter.METER_AGE_S_MAX", 0.05)
    store = MemoryStore()
    meter = Meter(store, background=True)
    meter.add("acme", SCANNED, 7)  # as an answer's bytes: nothing is asked after it
    until = time.monotonic() + 20
    found: dict[int, Counter[str]] = {}
    while not found and time.monotonic() < until:
        time.sleep(0.02)
        hour = time.time_ns() // HOUR_NS
        found = read_usage(store, "acme", range(hour - 1, hour + 1))
    assert [counts[SCANNED] for counts in found.values()] == [7]
