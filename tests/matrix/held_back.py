"""Schedules in which the tenant has a quota: frames over it wait in the store, and are stored when there is room.

`parked` are acknowledged, and in no answer yet. Who stores them is killed, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ranklog.access.policy import Quotas
from ranklog.errors import RanklogError
from ranklog.ingest.waiting import list_waiting
from ranklog.model.record import Record
from tests.matrix import actors
from tests.matrix import faults as f
from tests.matrix.baton import Task
from tests.matrix.faults import ActorPlan, Injection
from tests.matrix.machine import TENANT

if TYPE_CHECKING:
    from tests.matrix.play import Play

Frame = tuple[str, str]  # source and sequence
# A third of what a turn has, or so; hours in which all that waits is stored, and more.
QUOTA = Quotas(ingest_bytes_per_hour=16_000)
HOURS_MAX, DEATHS_MAX = 24, 4
_DEATHS = [
    (step, fault)
    for step in ("waiting.get", "segment.put", "index.put", "waiting.delete", "usage.put")
    for fault in (f.KILL_BEFORE, f.KILL_AFTER, f.DOWN)
]


def is_limited(seed: int) -> bool:
    """Whether the schedule is one of them: four of sixteen, which are sealed as well."""
    return seed % 16 > 11


@dataclass(slots=True)
class HeldBack:
    """What waits: records that were acknowledged and are not stored for sure."""

    play: Play
    parked: dict[Frame, Record] = field(default_factory=dict)
    count: int = 0

    def listed(self) -> set[Frame]:
        """What the store has of them now."""
        found = list_waiting(self.play.site.sure_store(), TENANT)
        return {(one.source, one.sequence) for one in found}

    def park(self, source: str, records: Iterable[Record]) -> list[Record]:
        """Those of an acknowledged batch that are stored; the others wait."""
        listed, stored = self.listed(), []
        for record in records:
            if (source, record.sequence) in listed:
                self.parked[source, record.sequence] = record
                self.count += 1
            else:
                stored.append(record)
        return stored

    def add_release(self, death: Injection | None = None) -> None:
        """Store what waits, as far as there is room."""
        plan = ActorPlan([] if death is None else [death])
        play = self.play

        def work(task: Task) -> None:
            try:
                actors.release(play.site, play.boundary(f.INGEST, task, plan))
            except RanklogError:
                return
            finally:
                play.plans[f.INGEST].fired += plan.fired
            gone = self.parked.keys() - self.listed()
            play.deliveries.store(self.parked.pop(name) for name in sorted(gone))

        play.stage.add("release", work)

    def death(self, number: int) -> Injection:
        """What happens to the one who stores them, from one time to the next."""
        step, fault = _DEATHS[(self.play.seed + number) % len(_DEATHS)]
        return Injection(f.INGEST, step, fault, self.play.seed // 16 % 3)

    def release_all(self) -> None:
        """Hours pass, and nobody says anything more."""
        for number in range(HOURS_MAX):
            if not self.listed():
                break
            self.play.clock.advance(3_600)
            self.add_release(self.death(number) if number < DEATHS_MAX else None)
            self.play.run_stage()
        left = self.listed()
        self.play.truth.note("lost", len(left), f"frames wait for ever: {sorted(left)[:3]}")
        self.play.truth.note("broken", int(not self.count), "no frame was over the quota")
