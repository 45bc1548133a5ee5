"""Bytes of a tombstone: versioned JSON. Ranges are a flat list of steps: from the end before to the
first seq, and how many.

Pure. `tests/delete/test_codec.py` has the golden bytes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ranklog.errors import Corrupt, NewerVersion
from ranklog.model.tombstone import Deleted, Tombstone

VERSION = 1


def encode_tombstone(tombstone: Tombstone) -> bytes:
    """JSON; the same tombstone has the same bytes."""
    body = {
        "version": VERSION,
        "kind": tombstone.kind,
        "when_ns": tombstone.when_ns,
        "who": tombstone.who,
        "why": tombstone.why,
        "query": tombstone.query,
        "launches": [list(names) for names in tombstone.launches],
        "rows": [
            [
                item.stream_id,
                item.run,
                item.launch,
                item.attempt,
                item.rank,
                item.hour,
                item.lines,
                steps_of(item.ranges),
            ]
            for item in tombstone.rows
        ],
        "frames": [list(frames) for frames in tombstone.frames],
    }
    return json.dumps(body, sort_keys=True, separators=(",", ":")).encode()


def decode_tombstone(data: bytes, key: str) -> Tombstone:
    """Inverse of `encode_tombstone`. Raises Corrupt, NewerVersion."""
    try:
        body = json.loads(data)
        if body["version"] > VERSION:
            raise NewerVersion(
                f"{key} was written by a newer ranklog: version {body['version']}",
                hint="upgrade ranklog: what it deletes would be shown",
            )
        return _tombstone(body)
    except (ValueError, KeyError, TypeError) as error:
        raise Corrupt(f"{key} is damaged: {error}") from error


def _tombstone(body: dict[str, Any]) -> Tombstone:
    kind = str(body["kind"])
    return Tombstone(
        frames=tuple((str(agent), first, end) for agent, first, end in body["frames"]),
        kind=kind,
        when_ns=int(body["when_ns"]),
        who=str(body["who"]),
        why=str(body["why"]),
        query=str(body["query"]),
        launches=tuple((str(run), str(launch)) for run, launch in body["launches"]),
        rows=tuple(
            Deleted(stream_id, run, launch, attempt, rank, hour, lines, ranges_of(steps), kind)
            for stream_id, run, launch, attempt, rank, hour, lines, steps in body["rows"]
        ),
    )


def steps_of(ranges: Sequence[tuple[int, int]]) -> list[int]:
    """Ascending half-open ranges as steps: scattered lines take two small numbers each."""
    steps, end = [], 0
    for first, stop in ranges:
        steps += [first - end, stop - first]
        end = stop
    return steps


def ranges_of(steps: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Inverse of `steps_of`. Raises ValueError for what `steps_of` never writes."""
    ranges, end = [], 0
    for gap, size in zip(steps[::2], steps[1::2], strict=True):
        if gap < 0 or size <= 0:
            raise ValueError(f"steps {gap}, {size} go back")
        ranges.append((end + gap, end + gap + size))
        end += gap + size
    return tuple(ranges)
