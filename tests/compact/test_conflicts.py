"""Two frames that claim one number with different lines: every reader shows that of the smaller hash.

Neither the order in which they came, nor how batches were cut, nor compaction changes which one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ranklog.client import Client
from ranklog.client.audit import audit
from ranklog.client.points import search_points
from ranklog.client.reader import local_reader
from ranklog.client.words import read_query
from ranklog.ingest.batch import ingest_batch
from ranklog.limits import HOUR_NS
from ranklog.model.answer import Completeness
from ranklog.model.frame import Frame
from ranklog.model.record import Record
from ranklog.stream.frames import encode_frame, header_hash
from tests.compact.stores import DAY_NS, GRACE_NS, SteppedStore, compact
from tests.ingest.frames import STREAM, T0, Row, make_frame, stream
from tests.point_frames import Record as PointRecord
from tests.point_frames import point_frame

ASKED = read_query("kind:point", {"run": "llama"}, now_ns=T0 + HOUR_NS)
BOUNDS: dict[str, Any] = {"since": "2026-02-28T00:00:00Z", "until": "2026-03-03T00:00:00Z"}


@dataclass(frozen=True, slots=True)
class Claimed:
    """A frame of one stream: seq of its first line, and the hour of each."""

    number: int
    first: int
    hours: tuple[int, ...]

    def frame(self) -> Frame:
        rows = [
            Row(
                f"frame {self.number} line {self.first + i}",
                ts=T0 + hour * HOUR_NS + self.first + i,
            )
            for i, hour in enumerate(self.hours)
        ]
        return make_frame(rows, first_seq={STREAM: self.first}, number=self.number)


@st.composite
def claimed_frames(draw: st.DrawFn) -> list[Claimed]:
    found = []
    for number in range(draw(st.integers(2, 4))):
        hours = draw(st.lists(st.integers(0, 2), min_size=1, max_size=4))
        found.append(Claimed(number, draw(st.integers(0, 5)), tuple(sorted(hours))))
    return found


@st.composite
def deliveries(draw: st.DrawFn, count: int) -> list[tuple[list[int], bool]]:
    """Batches of frames, each frame at least once, and whether there is a pass of compaction then."""
    some = st.lists(st.integers(0, count - 1), min_size=1, max_size=count)
    batches = draw(st.lists(st.tuples(some, st.booleans()), max_size=3))
    left = draw(st.permutations(range(count)))
    cut = draw(st.integers(0, count))
    rest = [(part, draw(st.booleans())) for part in (left[:cut], left[cut:]) if part]
    return [*batches, *rest]


def deliver(store: SteppedStore, frames: Sequence[Frame], name: str) -> None:
    records = [
        Record(encode_frame(frame), T0 + DAY_NS, f"{name}.{i}") for i, frame in enumerate(frames)
    ]
    report = ingest_batch(records, store=store, source="k", first=name, last=name)
    assert report.bad == []


def shown(store: SteppedStore) -> tuple[dict[int, str], Completeness]:
    """Text by number, for a reader without a cache; each number once."""
    client = Client(store=store, tenant="acme")
    answer = client.search("line OR nothing", limit=None, order="oldest", groups=False, **BOUNDS)
    assert client.count("line", **BOUNDS).count == len(answer.lines)
    found = {line.seq: line.text for line in answer.lines}
    assert len(found) == len(answer.lines)
    return found, answer.completeness


def expected(claims: Sequence[Claimed]) -> dict[int, str]:
    """By the rule: of the frames that claim a number, that of the smallest hash."""
    found: dict[int, tuple[str, str]] = {}
    for one in claims:
        digest = header_hash(one.frame())
        for i in range(len(one.hours)):
            seq = one.first + i
            found[seq] = min((digest, f"frame {one.number} line {seq}"), found.get(seq, ("g", "")))
    return {seq: text for seq, (_, text) in found.items()}


def rivals(claims: Sequence[Claimed]) -> set[int]:
    held = [seq for one in claims for seq in range(one.first, one.first + len(one.hours))]
    return {seq for seq in held if held.count(seq) > 1}


def told(completeness: Completeness) -> set[int]:
    return {
        seq
        for item in completeness.conflicts
        for seq in range(item["first_seq"], item["last_seq"] + 1)
    }


@settings(deadline=None, max_examples=120)
@given(st.data())
def test_order_of_arrival_cut_of_batches_and_compaction_do_not_change_the_winner(
    data: st.DataObject,
) -> None:
    claims = data.draw(claimed_frames())
    store = SteppedStore()
    for number, (batch, compacted) in enumerate(data.draw(deliveries(len(claims)))):
        deliver(store, [claims[at].frame() for at in batch], f"{number:03d}")
        if compacted:
            compact(store)
            store.clock_ns += GRACE_NS
    found, completeness = shown(store)
    assert found == expected(claims)
    assert told(completeness) == rivals(claims)


def test_a_frame_that_comes_again_is_no_conflict() -> None:
    store = SteppedStore()
    frame = Claimed(0, 0, (0, 0, 1)).frame()
    for name in ("1", "2"):
        deliver(store, [frame], name)
    assert shown(store)[1].conflicts == []
    compact(store)
    assert shown(store)[1].conflicts == []


def test_of_who_has_two_versions_of_a_line_nobody_knows_that_he_did_not_say_it() -> None:
    store = SteppedStore()
    other = stream(4)
    deliver(store, [make_frame([Row("calm"), Row("boom", stream=other)], number=0)], "1")
    deliver(store, [make_frame([Row("boom")], number=1)], "2")
    client = Client(store=store, tenant="acme")
    rows = {row["rank"]: row for row in client.missing("boom", everyone=True, **BOUNDS).rows}
    assert rows[3]["said"] in ("yes", "unknown")
    assert rows[3]["said"] == "yes" or "conflicts" in rows[3]["why"]
    assert rows[4]["said"] == "yes"


def test_audit_names_the_frame_whose_lines_another_one_has() -> None:
    store = SteppedStore()
    claims = [Claimed(0, 0, (0, 0, 0)), Claimed(1, 1, (0, 0, 0))]
    deliver(store, [claims[0].frame()], "1")
    deliver(store, [claims[1].frame()], "2")
    loser = max(claims, key=lambda one: header_hash(one.frame()))
    for _ in range(2):
        found = {fate.number: fate for fate in audit(local_reader(store, "acme")).frames}
        assert {n: fate.state for n, fate in found.items()} == {
            one.number: "altered" if one is loser else "verified" for one in claims
        }
        assert found[loser.number].lines == 2
        compact(store)


def test_of_points_the_smaller_hash_wins_as_well() -> None:
    frames = [
        point_frame([PointRecord({"loss": float(i)}, iteration=seq) for seq in range(2)], number=i)
        for i in range(2)
    ]
    winner = min(range(2), key=lambda i: header_hash(frames[i]))
    for order in ((0, 1), (1, 0)):
        store = SteppedStore()
        for place in order:
            deliver(store, [frames[place]], str(place))
        for _ in range(2):
            answer = search_points(local_reader(store, "acme"), ASKED)
            assert answer.table.column("value").to_pylist() == [float(winner)] * 2
            compact(store)
