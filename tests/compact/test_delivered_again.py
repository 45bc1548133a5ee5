"""However frames are delivered, cut into batches, merged and bundled: every count is as of each once."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ranklog.answer.render import completeness_json
from ranklog.client import Client
from ranklog.ingest.batch import ingest_batch
from ranklog.limits import HOUR_NS, SECOND_NS
from ranklog.model.frame import Drop, Fence, Frame, FrameStream, StreamEnd
from ranklog.model.record import Record
from ranklog.stream.frames import encode_frame
from tests.compact.stores import DAY_NS, GRACE_NS, SteppedStore, compact
from tests.corpus_lines import TENANT
from tests.ingest.frames import T0, Row, make_frame, stream

STEP_NS = 1200 * SECOND_NS  # so that some batches span hours
TWO = [stream(0, world_size=2), stream(1, world_size=2)]
REASONS = ("quota", "progress", "ring full: info")


def random_frames(chance: random.Random, count: int) -> list[Frame]:
    """Frames of an agent: lines of two streams, drops of both, also where they have no line. Lines are
    equally long: of those that were stored twice in part a share of the bytes counts."""
    frames, seqs = [], [0, 0]
    began: dict[tuple[int, int], int] = {}  # (stream, hour) -> first seq

    def fence(place: int, number: int, end: int) -> tuple[Fence, ...]:
        hour = (T0 + STEP_NS * number) // HOUR_NS
        first = began.setdefault((place, hour), seqs[place])
        return (Fence(hour, ((first, end),)),) if first < end else ()

    for number in range(1, count + 1):
        sizes = [chance.randint(0, 3) for _ in TWO]
        rows = [
            Row(f"step {number} {i}", ts=T0 + number * STEP_NS + i * SECOND_NS, stream=one)
            for one, size in zip(TWO, sizes, strict=True)
            for i in range(size)
        ]
        notes = [
            FrameStream(
                one,
                seqs[place],
                0,
                fences=fence(place, number, seqs[place] + sizes[place]),
                # a frame may tell of the same reason twice
                drops=tuple(
                    Drop(chance.randint(1, 9), chance.choice(REASONS))
                    for _ in range(chance.randint(0, 3))
                ),
                end=StreamEnd(seqs[place] + sizes[place], 0) if number == count else None,
                alive_ns=T0 + number * STEP_NS,
            )
            for place, one in enumerate(TWO)
        ]
        frames.append(make_frame(rows, streams=notes, number=number))
        seqs = [seq + size for seq, size in zip(seqs, sizes, strict=True)]
    return frames


def deliver(store: SteppedStore, frames: list[Frame], name: str) -> None:
    records = [
        Record(encode_frame(frame), T0 + DAY_NS, f"{name}.{at}") for at, frame in enumerate(frames)
    ]
    report = ingest_batch(records, store=store, source="k", first=name, last=name)
    assert report.bad == []


def told(store: SteppedStore) -> dict[str, Any]:
    client = Client(store=store, tenant=TENANT)
    searched = client.search("", run="llama", limit=None)
    return {
        "completeness": completeness_json(searched.completeness),
        "lines": sorted(line.id for line in searched.lines),
        "runs": client.runs().rows,
        "streams": client.streams().rows,
    }


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.randoms(use_true_random=False))
def test_every_count_is_as_of_each_frame_once(chance: random.Random) -> None:
    frames = random_frames(chance, chance.randint(1, 6))
    once, often = SteppedStore(), SteppedStore()
    for frame in frames:
        deliver(once, [frame], str(frame.number))
    left = [*frames, *chance.choices(frames, k=chance.randint(1, 8))]
    chance.shuffle(left)
    batch = 0
    while left:
        taken = [left.pop() for _ in range(min(len(left), chance.randint(1, 4)))]
        batch += 1
        deliver(often, taken, f"b{batch}")
        if chance.random() < 0.4:
            compact(often)
            often.clock_ns += chance.choice((0, GRACE_NS))
    assert told(often) == told(once)
    compact(often)
    assert told(often) == told(once)
