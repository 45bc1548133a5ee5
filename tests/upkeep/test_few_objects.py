"""Small objects never pile up: a long ingest of tiny batches, tended every hour, against a bound for each kind.

A kind of object that has no bound here fails, so that whoever adds one says what bounds it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from ranklog import limits
from ranklog.access.meter import SCANNED, Meter
from ranklog.client import Client
from ranklog.client.reader import local_reader
from ranklog.delete import merging
from ranklog.delete.retention import Policy, Rule, save_policy
from ranklog.errors import Forged
from ranklog.ingest.batch import ingest_batch
from ranklog.ingest.quarantine import expire, set_aside
from ranklog.layout import keys
from ranklog.model.frame import Frame
from ranklog.model.record import Record
from ranklog.objectives.keeping import Part, put_part, roll_up
from ranklog.objectives.measures import Measures
from ranklog.stream.frames import encode_frame
from ranklog.upkeep.passes import compact_tenant, retain_tenant, sweep_tenant
from tests.compact.stores import SteppedStore
from tests.ingest.frames import T0, Row, make_frame, stream
from tests.point_frames import STREAM as POINTS
from tests.point_frames import Record as PointRecord
from tests.point_frames import point_frame

HOUR, MINUTE, DAY = limits.HOUR_NS, limits.HOUR_NS // 60, limits.DAY_NS
HOURS, BATCHES, PROCESSES = 40, 5, 2
TOMBSTONES, NOTES_HOURS = 6, 4
# Rows of one launch, of lines and of points; a batch has one of each, every fifth one is a day late.
LATE_EVERY = 5


@dataclass
class Job:
    """Writes tiny batches; the clock is the store's."""

    store: SteppedStore
    batches: int = 0

    def batch(self, now_ns: int) -> None:
        at, self.store.clock_ns = self.batches, now_ns
        self.batches += 1
        ts = now_ns - (20 * HOUR if at % LATE_EVERY == 0 else 0)
        late = at % LATE_EVERY == 0
        of_lines = stream(1 if late else 0)
        row = Row(f"line {at}", ts=ts, stream=of_lines)
        self._put(make_frame([row], first_seq={of_lines: at}, number=2 * at), now_ns, "k")
        of_points = replace(POINTS, run="llama", incarnation="late" if late else "0")
        record = PointRecord({"loss": float(at)}, ts=ts, stream=of_points)
        frame = point_frame([record], first_seq={of_points: at}, number=2 * at + 1)
        self._put(frame, now_ns, "p")

    def _put(self, frame: Frame, now_ns: int, source: str) -> None:
        name = f"{frame.number:08d}"
        record = Record(encode_frame(frame), now_ns, name)
        report = ingest_batch([record], store=self.store, source=source, first=name, last=name)
        assert report.bad == []


def live(store: SteppedStore, now_ns: int) -> None:
    """An hour of an API's and ingest's own objects, and one frame that nobody takes."""
    for process in range(PROCESSES):
        meter = Meter(store, clock_ns=lambda: now_ns, process=f"{now_ns}-{process}")
        meter.add("acme", SCANNED, 1)
        meter.flush()
        measures = Measures()
        measures.count("requests")
        put_part(store, "acme", keys.hour_of(now_ns), f"{now_ns}-{process}", Part({0: measures}))
    bad = Record(b"junk", now_ns, str(now_ns))
    frame = encode_frame(make_frame([Row("x")], number=0))
    set_aside(store, replace(bad, data=frame), Forged("nobody's"), "s")


def tend(store: SteppedStore) -> None:
    """What upkeep does each hour."""
    now_ns = store.clock_ns
    reader = local_reader(store, "acme")
    reader.now_ns = lambda: now_ns
    retain_tenant(reader, who="t")
    compact_tenant(store, "acme", now_ns)
    sweep_tenant(store, "acme", now_ns)
    roll_up(store, "acme", now_ns)
    expire(store, "acme", now_ns)


@pytest.fixture(scope="module")
def tended() -> SteppedStore:
    """A day and a half of it, kept for a day; then two hours more in which nothing comes."""
    store = SteppedStore()
    job = Job(store)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging, "TOMBSTONES_MAX", TOMBSTONES)
        patch.setattr(limits, "RETENTION_NOTES_NS", NOTES_HOURS * HOUR)
        save_policy(store, "acme", Policy((Rule("*", DAY),)))
        for hour in range(HOURS):
            for at in range(BATCHES):
                job.batch(T0 + hour * HOUR + (10 * at + 1) * MINUTE)
            live(store, T0 + hour * HOUR + 50 * MINUTE)
            store.clock_ns = T0 + hour * HOUR + 59 * MINUTE
            tend(store)
        for more in range(3):
            store.clock_ns = T0 + (HOURS + more) * HOUR + 30 * MINUTE
            tend(store)
    return store


# Objects of each kind at most, by what they grow with. Hours: of event time, those that are kept, those
# whose notes are, and the one that ends; in the grace a replaced object lies beside what replaced it.
_KINDS_OF_ROWS = 2
_EVENT_HOURS = 24 + NOTES_HOURS + 2
_GRACE = 2
BOUNDS: dict[str, Callable[[], int]] = {
    "index": lambda: _KINDS_OF_ROWS * (_EVENT_HOURS + _GRACE),
    "data": lambda: _KINDS_OF_ROWS * (_EVENT_HOURS + _GRACE),
    # those of POINTER_AGE_S_MAX, each zero bytes
    "arrivals": lambda: _KINDS_OF_ROWS * HOURS * BATCHES // LATE_EVERY,
    # a marker per launch and event hour; here one launch without manifests and imports
    "runs": lambda: _EVENT_HOURS,
    "config": lambda: 1,
    "tombstones": lambda: TOMBSTONES + 2 + 2,
    # one per action that did something: at most two an hour of retention, and what people do
    "actions": lambda: 2 * (HOURS + 3),
    "usage": lambda: PROCESSES * (limits.USAGE_KEPT_HOURS + 1),
    "measures": lambda: HOURS + PROCESSES,
    "compaction": lambda: 0,
    # a frame and its reason, for QUARANTINE_KEPT_DAYS
    "quarantine": lambda: 2 * HOURS,
}


def test_every_kind_of_object_keeps_its_bound(tended: SteppedStore) -> None:
    counts = Counter(info.key.split("/")[1] for info in tended.list("acme/"))
    assert set(counts) <= set(BOUNDS), "what bounds this kind?"
    assert {kind: n for kind, n in counts.items() if n > BOUNDS[kind]()} == {}


@pytest.mark.parametrize("kind", ["line", "point"])
def test_a_closed_hour_that_is_kept_has_one_segment_and_one_index_of_each_kind(
    tended: SteppedStore, kind: str
) -> None:
    by_hour: Counter[str] = Counter()
    floor = keys.index_hour_prefix("acme", (tended.clock_ns - DAY) // HOUR)
    for info in tended.list("acme/index/"):
        if info.key >= floor and info.key.rpartition("/")[2].startswith(f"{kind}."):
            by_hour[info.key.rpartition("/")[0]] += 1
    assert by_hour and max(by_hour.values()) == 1


def test_nothing_that_is_kept_is_lost_by_tending(tended: SteppedStore) -> None:
    now_ns = tended.clock_ns
    floor_ns = (now_ns - DAY) // HOUR * HOUR
    found = Client(store=tended, tenant="acme").search("", run="llama", limit=None)
    kept = [
        T0
        + hour * HOUR
        + (10 * at + 1) * MINUTE
        - (20 * HOUR if (hour * BATCHES + at) % LATE_EVERY == 0 else 0)
        for hour in range(HOURS)
        for at in range(BATCHES)
    ]
    assert sorted(line.ts_ns for line in found.lines) == sorted(ts for ts in kept if ts >= floor_ns)


def test_what_was_counted_long_ago_goes(tended: SteppedStore) -> None:
    later = tended.clock_ns + (limits.USAGE_KEPT_HOURS + HOURS + 5) * HOUR
    compact_tenant(tended, "acme", later)
    assert tended.names("usage/") == []
    assert tended.names("arrivals/") == []
