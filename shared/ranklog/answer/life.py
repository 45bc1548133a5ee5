"""Signs of life of streams that did not end: late, gone or silent, against the rest of their attempt. Pure.

Not against the clock of who asks: the same question about the same store has the same answer, and what all
streams do at once is no stream's. `ranklog watch` judges by the clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ranklog.limits import SECOND_NS
from ranklog.model.stream import Stream

LATE, GONE, SILENT = "late", "gone", "silent"
# A quiet process sends a heartbeat a minute: three are missing.
GONE_NS = 180 * SECOND_NS
# It is alive, and says nothing for so long while others do.
SILENT_NS = 300 * SECOND_NS


@dataclass(frozen=True, slots=True)
class Pulse:
    """A stream as far as it was heard of. `owed`: lines of it are known of and have not arrived."""

    stream: Stream
    stream_id: str
    last_ns: int | None
    alive_ns: int | None
    owed: bool
    ended: bool

    @property
    def heard_ns(self) -> int | None:
        return max((ns for ns in (self.last_ns, self.alive_ns) if ns is not None), default=None)


def quiet_streams(pulses: Iterable[Pulse]) -> list[dict[str, Any]]:
    """The member `quiet` of completeness: one object per stream of which there is something to say."""
    every = list(pulses)
    newest: dict[tuple[str, str, int], int] = {}
    for pulse in every:
        key, heard = _attempt(pulse), pulse.heard_ns
        if heard is not None:
            newest[key] = max(newest.get(key, heard), heard)
    found = []
    for pulse in every:
        verdict = _verdict(pulse, newest.get(_attempt(pulse), 0))
        if verdict is not None:
            found.append(
                {
                    "stream": pulse.stream_id,
                    "rank": pulse.stream.rank,
                    "verdict": verdict,
                    "ts_ns": pulse.last_ns,
                    "alive_ns": pulse.alive_ns,
                }
            )
    return found


def _attempt(pulse: Pulse) -> tuple[str, str, int]:
    stream = pulse.stream
    return stream.run, stream.launch, stream.attempt


def _verdict(pulse: Pulse, newest_ns: int) -> str | None:
    """late: what it said is on its way; gone: its process is heard of no more; silent: it lives, and says
    nothing. A stream whose process never sent a heartbeat may be either, and is called neither."""
    if pulse.ended:
        return None
    if pulse.owed:
        return LATE
    heard = pulse.heard_ns
    if pulse.alive_ns is None or heard is None:
        return None
    if newest_ns - heard > GONE_NS:
        return GONE
    return SILENT if heard - (pulse.last_ns or 0) > SILENT_NS else None
