"""What tenants use in an hour, counted where they are answered, and their quotas.

    <tenant>/usage/<YYYY-MM-DDTHH>/<process>.json     what one process counted in that hour

Each process counts by itself, writes its own object at most every METER_AGE_S_MAX and reads the others' as
often: a quota holds for all processes together, late by that time. Requests at once are counted in each
process: a Lambda function has one, and as many processes as its concurrency.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ranklog.access.policy import Policy, read_policy
from ranklog.errors import Corrupt, NotFound, OverQuota, RanklogError
from ranklog.layout import keys
from ranklog.limits import (
    HOUR_NS,
    METER_AGE_S_MAX,
    METER_UNLIMITED_AGE_S,
    METERED_TENANTS_MAX,
    SECOND_NS,
)
from ranklog.objectives.hours import Later, TenantHours
from ranklog.store.protocol import Store

INGESTED, SCANNED, REQUESTS, REFUSED = "ingest_bytes", "scan_bytes", "requests", "refused"
# Bytes of frames that ingest stored, whichever way they came, and frames that waited for the quota.
STREAMED, PARKED = "stream_bytes", "parked"
# A request that found as many others at once may come again after this.
_AT_ONCE_WAIT_S = 1


@dataclass(slots=True)
class _Hour:
    """A tenant's counts of the hour that runs: this process's, and of the others as last read."""

    hour: int
    own: Counter[str] = field(default_factory=Counter)
    others: Counter[str] = field(default_factory=Counter)
    policy: Policy = field(default_factory=Policy)
    synced_s: float = float("-inf")
    written_s: float = float("-inf")
    changed: bool = False
    resumed: bool = False
    at_once: int = 0


def _begun(hour: int, before: _Hour | None) -> _Hour:
    """A fresh one; requests that are under way leave the counts that they entered."""
    return _Hour(hour) if before is None else _Hour(hour, policy=before.policy)


def _idle(tenants: dict[str, _Hour]) -> list[str]:
    """Half of those that no request is under way of."""
    idle = [name for name, item in tenants.items() if not item.at_once]
    return idle[: len(idle) // 2 + 1]


class Meter:
    """Counts and admits. Threads may share it; it never fails a request for its own bookkeeping."""

    def __init__(
        self,
        store: Store,
        *,
        clock_ns: Callable[[], int] = time.time_ns,
        clock_s: Callable[[], float] = time.monotonic,
        process: str = "",
        resume: bool = False,
        background: bool = False,
    ) -> None:
        """`process` names its objects; `resume`: one of that name counted before, and it goes on from there.
        `background`: for processes that are not frozen between requests: a thread writes what no later
        request would."""
        self._store = store
        self._clock_ns = clock_ns
        self._clock_s = clock_s
        self._process = process or uuid.uuid4().hex
        self._resume = resume
        self._later = Later(METER_AGE_S_MAX, self.flush) if background else None
        self._hours = TenantHours(_begun, _idle, METERED_TENANTS_MAX)
        self._lock = threading.Lock()

    @contextmanager
    def admitted(self, tenant: str, kind: str) -> Iterator[None]:
        """A request of a tenant, `kind` what it will use most. Raises OverQuota, with when to come again."""
        counts = self._begin(tenant, kind)
        try:
            yield
        finally:
            with self._lock:
                counts.at_once -= 1

    def add(self, tenant: str, kind: str, count: int) -> None:
        """Count what was used."""
        with self._lock:
            counts = self._hour(tenant)
            counts.own[kind] += count
            self._change(counts)

    def check(self, tenant: str, kind: str, asked: int = 0) -> None:
        """Raises OverQuota where the tenant has used what it may, `asked` of it not counted yet."""
        with self._lock:
            counts = self._hour(tenant)
            due = self._clock_s() - counts.synced_s >= self._age_s(counts)
            if due:
                counts.synced_s = self._clock_s()
        if due:
            self._sync(tenant, counts)
        with self._lock:
            self._check(tenant, counts, kind, asked)

    def used(self, tenant: str, kind: str) -> int:
        """What all processes used of it this hour, as far as this one knows."""
        with self._lock:
            counts = self._hour(tenant)
            return counts.own[kind] + counts.others[kind]

    def flush_due(self) -> None:
        """Write what was counted, of tenants that were not written for a while."""
        now_s = self._clock_s()
        with self._lock:
            waiting = [
                (name, counts)
                for name, counts in self._hours.changed()
                if now_s - counts.written_s >= self._age_s(counts)
            ]
            waiting += self._hours.take_over()
        for tenant, counts in waiting:
            self._write(tenant, counts)

    def flush(self) -> None:
        """Write what was counted and not yet written, as far as the store takes it."""
        with self._lock:
            waiting = [*self._hours.changed(), *self._hours.take_over()]
        for tenant, counts in waiting:
            self._write(tenant, counts)

    def _begin(self, tenant: str, kind: str) -> _Hour:
        with self._lock:
            counts = self._hour(tenant)
            due = self._clock_s() - counts.synced_s >= METER_AGE_S_MAX
            if due:
                counts.synced_s = self._clock_s()
        if due:
            self._sync(tenant, counts)
        with self._lock:
            try:
                self._check(tenant, counts, kind)
            except OverQuota:
                counts.own[REFUSED] += 1
                self._change(counts)
                raise
            counts.own[REQUESTS] += 1
            self._change(counts)
            counts.at_once += 1
        return counts

    def _change(self, counts: _Hour) -> None:
        """There is something to write; who has the lock may say so."""
        counts.changed = True
        if self._later is not None:
            self._later.ask()

    @staticmethod
    def _age_s(counts: _Hour) -> float:
        """How old what is known of a tenant may be."""
        limited = counts.policy.quotas.ingest_bytes_per_hour is not None
        return METER_AGE_S_MAX if limited or not counts.own[STREAMED] else METER_UNLIMITED_AGE_S

    def _check(self, tenant: str, counts: _Hour, kind: str, asked: int = 0) -> None:
        quotas = counts.policy.quotas
        most = quotas.requests_at_once
        if most is not None and counts.at_once >= most:
            raise OverQuota(
                f"tenant {tenant!r} has {counts.at_once} requests at once, quota {most}",
                hint="wait for one of them",
                retry_after_s=_AT_ONCE_WAIT_S,
            )
        quota = {
            INGESTED: quotas.ingest_bytes_per_hour,
            STREAMED: quotas.ingest_bytes_per_hour,
            SCANNED: quotas.scan_bytes_per_hour,
        }.get(kind)
        used = counts.own[kind] + counts.others[kind] + asked
        if kind == INGESTED:  # what came past the API is sent as well
            used = max(used, counts.own[STREAMED] + counts.others[STREAMED])
        if quota is not None and used >= quota:
            left_ns = HOUR_NS - self._clock_ns() % HOUR_NS
            what = "scanned" if kind == SCANNED else "sent"
            raise OverQuota(
                f"tenant {tenant!r} has {what} {used} bytes this hour, quota {quota}",
                hint="narrow the question, or wait for the next hour"
                if kind == SCANNED
                else "frames wait in the agent's log",
                retry_after_s=-(-left_ns // SECOND_NS),
            )

    def _hour(self, tenant: str) -> _Hour:
        """The tenant's counts of this hour; who has the lock may ask."""
        return self._hours.of(tenant, self._clock_ns())

    def _sync(self, tenant: str, counts: _Hour) -> None:
        self.flush()
        try:
            counts.policy = read_policy(self._store, tenant)
            found = read_hour(self._store, tenant, counts.hour, leave_out=self._process)
            counts.others = found
            if self._resume and not counts.resumed:
                counts.own.update(read_own(self._store, tenant, counts.hour, self._process))
                counts.resumed = True
        except RanklogError:
            pass  # what was known before holds until the store answers

    def _write(self, tenant: str, counts: _Hour) -> None:
        with self._lock:
            said, counts.changed = dict(counts.own), False
            counts.written_s = self._clock_s()
        try:
            key = keys.usage_key(tenant, counts.hour, self._process)
            self._store.put(key, json.dumps({"version": 1, "counts": said}).encode())
        except RanklogError:
            with self._lock:
                self._hours.not_written(tenant, counts)


def read_hour(store: Store, tenant: str, hour: int, *, leave_out: str = "") -> Counter[str]:
    """What all processes counted in an hour, but for one."""
    total: Counter[str] = Counter()
    for info in store.list(keys.usage_prefix(tenant, hour)):
        if info.key.endswith(f"/{leave_out}.json"):
            continue
        try:
            said = json.loads(store.get(info.key))["counts"]
            total.update({str(name): int(count) for name, count in said.items()})
        except NotFound:
            continue
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise Corrupt(f"{info.key} holds no counts: {error}") from error
    return total


def read_own(store: Store, tenant: str, hour: int, process: str) -> Counter[str]:
    """What a process of that name counted in an hour."""
    try:
        said = json.loads(store.get(keys.usage_key(tenant, hour, process)))["counts"]
        return Counter({str(name): int(count) for name, count in said.items()})
    except (NotFound, ValueError, KeyError, TypeError, AttributeError):
        return Counter()


def read_usage(store: Store, tenant: str, hours: range) -> dict[int, Counter[str]]:
    """Hour -> counts, of the hours that have some."""
    found = {hour: read_hour(store, tenant, hour) for hour in hours}
    return {hour: counts for hour, counts in found.items() if counts}
