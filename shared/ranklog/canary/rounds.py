"""One round: write, look until all is found or the time is over, look once more for what is doubled."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from ranklog.canary.lines import Found, Outcome, Round
from ranklog.client import Client
from ranklog.errors import BadInput, Forbidden, NotFound, RanklogError, Unauthorized
from ranklog.layout import keys

# Between two searches; each wait is half as long again, since each search on AWS costs.
LOOK_S, LOOK_S_MAX = 0.2, 3.0
# How long lines are looked for that were not all acknowledged.
REFUSED_S = 5.0
# Not the store's or the stream's fault: asking again does not help.
_OURS = (BadInput, Forbidden, Unauthorized)


class Writer(Protocol):
    """The way in."""

    def write(self, lines: Round) -> None:
        """Returns when all lines are acknowledged. Raises RanklogError."""
        ...


def run_round(
    writer: Writer,
    client: Client,
    *,
    lines: int,
    timeout_s: float,
    clock_ns: Callable[[], int] = time.time_ns,
    clock_s: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Outcome:
    """What became of a round. Raises BadInput, Unauthorized, Forbidden: what can't be asked like that,
    before anything is written.

    A stream or store that does not take or show the lines in time is an outcome: they are missing.
    """
    one = Round(uuid.uuid4().hex[:16], lines, keys.day_text(clock_ns()))
    found = Found(one)
    error = _look(client, found, clock_ns)
    begun_s = clock_s()
    try:
        writer.write(one)
    except _OURS:
        raise
    except RanklogError as failure:  # some may have got through, so look, but not for long
        error = f"not all was written: {failure.message}"
        timeout_s = clock_s() - begun_s + min(timeout_s, REFUSED_S)
    wait_s = LOOK_S
    while True:
        error = _look(client, found, clock_ns) or error
        left_s = begun_s + timeout_s - clock_s()
        if found.is_all or left_s <= 0:
            break
        sleep(min(wait_s, max(left_s, 0.001)))
        wait_s = min(LOOK_S_MAX, 1.5 * wait_s)
    outcome = found.outcome(_count(client, one), clock_s() - begun_s)
    return outcome if outcome.is_well else _with_error(outcome, error)


def _look(client: Client, found: Found, clock_ns: Callable[[], int]) -> str | None:
    """One search; why it failed, where it did for now."""
    one = found.round
    try:
        # doubled lines, too: a few more than there should be
        answer = client.search(one.query, run=one.run_id, limit=2 * one.lines + 100, order="oldest")
    except NotFound:  # the day's first, and not there yet
        return None
    except _OURS:
        raise
    except RanklogError as error:
        return f"not read: {error.message}"
    found.look(answer.lines, clock_ns())
    return None


def _count(client: Client, one: Round) -> int:
    """How many there are by a count, which may be answered from indexes alone."""
    try:
        return client.count(one.query, run=one.run_id).count or 0
    except _OURS:
        raise
    except RanklogError:
        return 0


def _with_error(outcome: Outcome, error: str | None) -> Outcome:
    return replace(outcome, error=error)
