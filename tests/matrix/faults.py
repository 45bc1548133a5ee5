"""What can happen to whom: actors, the named steps of each, and faults that fit a step.

A step of a store's actor is `<kind of object>.<request>`: `index.put` is the PUT of an index, whoever does
it. Steps of producers and agents are what they do to ring, log and spool.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.matrix import proxy

KILL_BEFORE, KILL_AFTER = "kill before", "kill after"
SIGKILL_BEFORE, SIGKILL_AFTER = "SIGKILL before", "SIGKILL after"
STALL_BEFORE, STALL_AFTER = "stall before", "stall after"
DOWN = "down"  # every attempt of the request is answered 503
KILLS = (KILL_BEFORE, KILL_AFTER)
SIGKILLS = (SIGKILL_BEFORE, SIGKILL_AFTER)
STALLS = (STALL_BEFORE, STALL_AFTER)
_REQUEST = (
    *(proxy.RESET_BEFORE, proxy.RESET_AFTER, proxy.ERROR_500, proxy.LOST_503),
    *(proxy.SLOW_DOWN, proxy.LATE, DOWN),
)
_READ = (proxy.RESET_BEFORE, proxy.TORN, proxy.ERROR_500, proxy.SLOW_DOWN, proxy.LATE, DOWN)
_OF_PUT_RECORDS = (*_REQUEST, proxy.PARTIAL, proxy.TWICE)

PRODUCER, AGENT, INGEST = "producer", "agent", "ingest"
COMPACTION, DELETION, RETENTION, QUERY = "compaction", "deletion", "retention", "query"
ACTORS = (PRODUCER, AGENT, INGEST, COMPACTION, DELETION, RETENTION, QUERY)

STEPS: dict[str, tuple[str, ...]] = {
    PRODUCER: ("announce", "define", "write", "close"),
    AGENT: ("log.append", "ring.free", "send", "log.mark", "acknowledge", "unlink"),
    INGEST: ("config.get", "segment.put", "marker.put", "pointer.put", "index.put"),
    COMPACTION: (
        *("tombstone.list", "tombstone.get", "pin.list", "index.folders", "lease.put", "lease.get"),
        *("index.list", "index.get", "segment.get", "segment.put", "index.put", "segment.list"),
        *("index.delete", "segment.delete", "lease.delete", "pointer.list", "pointer.delete"),
    ),
    DELETION: (
        *("marker.folders", "marker.list", "index.list", "index.get", "tombstone.list"),
        *("tombstone.get", "segment.range", "action.put", "tombstone.put"),
    ),
    RETENTION: (
        *("config.get", "marker.folders", "marker.list", "index.folders", "index.list"),
        *("index.get", "tombstone.list", "tombstone.get", "pin.list", "segment.range"),
        *("action.put", "tombstone.put", "index.delete", "segment.delete"),
        *("marker.delete", "tombstone.delete"),
    ),
    QUERY: (
        *("marker.folders", "marker.list", "index.folders", "index.list", "index.get"),
        *("tombstone.list", "tombstone.get", "segment.range"),
    ),
}


def faults_of(actor: str, step: str) -> tuple[str, ...]:
    """What can be done to an actor at a step."""
    if actor == PRODUCER:
        return SIGKILLS
    if actor == AGENT:
        return (*KILLS, *SIGKILLS, *(_OF_PUT_RECORDS if step == "send" else ()))
    request = _REQUEST if step.endswith((".put", ".delete")) else _READ
    return (*KILLS, *SIGKILLS, *STALLS, *request)


def catalogue(actor: str) -> list[tuple[str, str]]:
    """Every (step, fault) of an actor, faults of a step apart from one another."""
    found = [(step, fault) for step in STEPS[actor] for fault in faults_of(actor, step)]
    random.Random(actor).shuffle(found)
    return found


@dataclass(frozen=True, slots=True)
class Injection:
    """A fault at the step's occurrence number `nth` (from 0) of an actor in a schedule."""

    actor: str
    step: str
    fault: str
    nth: int = 0


@dataclass(slots=True)
class ActorPlan:
    """What is still to happen to an actor in a schedule, and what has."""

    waiting: list[Injection] = field(default_factory=list)
    fired: list[Injection] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)

    def meet(self, step: str) -> str | None:
        """The actor is at the step: what happens to it there."""
        number = self.seen[step]
        self.seen[step] += 1
        for injection in self.waiting:
            if injection.step == step and injection.nth <= number:
                self.waiting.remove(injection)
                self.fired.append(injection)
                return injection.fault
        return None


# Of steps that a schedule has often: where among them a fault may strike.
_NTH_MAX = {INGEST: 10, COMPACTION: 4, QUERY: 5, DELETION: 1, RETENTION: 1, AGENT: 1, PRODUCER: 0}


def draw_plans(seed: int, rng: random.Random, extra: int = 2) -> dict[str, ActorPlan]:
    """Of each actor one (step, fault) by the seed, so that seeds in a row go through all of them, and
    `extra` drawn ones."""
    plans = {}
    for actor in ACTORS:
        every = catalogue(actor)
        chosen = [every[seed % len(every)], *(rng.choice(every) for _ in range(extra))]
        waiting = [
            Injection(actor, step, fault, rng.randint(0, _NTH_MAX[actor])) for step, fault in chosen
        ]
        plans[actor] = ActorPlan(waiting)
    return plans


# What is let go of only when days have passed, and everything else is done.
_LATE = {
    COMPACTION: ("pointer.delete",),
    RETENTION: ("index.delete", "segment.delete", "marker.delete"),
}


def late_injection(actor: str, seed: int) -> Injection:
    """What happens to an actor there, so that seeds in a row go through all of it."""
    every = [(step, fault) for step in _LATE[actor] for fault in faults_of(actor, step)]
    return Injection(actor, *every[seed % len(every)])


def every_row() -> Iterator[tuple[str, str, str]]:
    """All of the matrix."""
    for actor in ACTORS:
        for step in STEPS[actor]:
            for fault in faults_of(actor, step):
                yield actor, step, fault
