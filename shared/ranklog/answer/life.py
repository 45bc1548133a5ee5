"""Signs of life of streams that did not end: late, gone or silent, against the rest of their attempt. Pure.

Not against the clock of who asks: the same question about the same store has the same answer, and what all
streams do at once is no stream's. `ranklog watch` judges by the clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from ranklog.limits import SECOND_NS
from ranklog.model.stream import Stream

LATE, GONE, SILENT = "late", "gone", "silent"
_Attempt: TypeAlias = tuple[str, str, int]
_Speaker: TypeAlias = tuple[_Attempt, object]
# A quiet process sends a heartbeat a minute: three are missing.
GONE_NS = 180 * SECOND_NS
# It is alive, and says nothing for so long while others do.
SILENT_NS = 300 * SECOND_NS


@dataclass(frozen=True, slots=True)
class Pulse:
    """A stream as far as it was heard of: its first and last line, its last heartbeat. `owed`: lines of it
    are known of and have not arrived."""

    stream: Stream
    stream_id: str
    last_ns: int | None
    alive_ns: int | None
    owed: bool
    ended: bool
    first_ns: int | None = None

    @property
    def heard_ns(self) -> int | None:
        return max((ns for ns in (self.last_ns, self.alive_ns) if ns is not None), default=None)


def quiet_streams(pulses: Iterable[Pulse]) -> list[dict[str, Any]]:
    """The member `quiet` of completeness: one object per stream of which there is something to say."""
    every = list(pulses)
    newest: dict[_Attempt, int] = {}
    began: dict[_Attempt, int] = {}
    spoke: dict[_Speaker, int] = {}
    for pulse in every:
        key, speaker, heard = _attempt(pulse), _speaker(pulse), pulse.heard_ns
        if heard is not None:
            newest[key] = max(newest.get(key, heard), heard)
        if pulse.first_ns is not None:
            began[key] = min(began.get(key, pulse.first_ns), pulse.first_ns)
        if pulse.last_ns is not None:
            spoke[speaker] = max(spoke.get(speaker, pulse.last_ns), pulse.last_ns)
    found = []
    for pulse in every:
        key = _attempt(pulse)
        verdict = _verdict(pulse, newest.get(key, 0), spoke.get(_speaker(pulse), began.get(key)))
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


def _attempt(pulse: Pulse) -> _Attempt:
    stream = pulse.stream
    return stream.run, stream.launch, stream.attempt


def _speaker(pulse: Pulse) -> _Speaker:
    """Whose streams one speaks in, and need not speak in all: a rank's, else a process's."""
    stream = pulse.stream
    who = (stream.host, stream.incarnation) if stream.rank is None else stream.rank
    return _attempt(pulse), who


def _verdict(pulse: Pulse, newest_ns: int, spoke_ns: int | None) -> str | None:
    """late: what it said is on its way; gone: its process is heard of no more; silent: it lives, and says
    nothing in any of its streams. A stream whose process never sent a heartbeat may be either, and is
    called neither. `spoke_ns`: when its speaker last did; who never did is silent since the first line of
    the attempt."""
    if pulse.ended:
        return None
    if pulse.owed:
        return LATE
    heard = pulse.heard_ns
    if pulse.alive_ns is None or heard is None:
        return None
    if newest_ns - heard > GONE_NS:
        return GONE
    return SILENT if spoke_ns is not None and heard - spoke_ns > SILENT_NS else None
