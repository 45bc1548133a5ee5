"""Work of the store's actors as tasks of a stage, with what happens to them."""

from __future__ import annotations

from collections.abc import Callable

from ranklog.delete.retention import Policy, save_policy
from ranklog.errors import RanklogError
from ranklog.limits import DAY_NS
from tests.matrix import actors
from tests.matrix import faults as f
from tests.matrix.actors import DOOMED, RUN, SCRATCH
from tests.matrix.baton import Task
from tests.matrix.boundary import Killed
from tests.matrix.deliveries import Delivery
from tests.matrix.faults import ActorPlan, Injection
from tests.matrix.machine import TENANT
from tests.matrix.play import Play

# Between which steps of a commit a writer may stand still.
_PAUSES = (
    ("segment.put", f.STALL_AFTER),
    ("marker.put", f.STALL_BEFORE),
    ("index.put", f.STALL_BEFORE),
)


def add_ingest(
    play: Play, delivery: Delivery, plan: ActorPlan | None = None, *, resent: bool = True
) -> Task:
    """A batch is tried. If it stands still it is given up, where it is `resent`, and comes again beside
    itself."""
    source = f"{play.site.stream_name}-{delivery.shard}"
    arguments = (delivery.records, source, play.rng.randrange(2))
    injection = None if plan else play.sigkill(f.INGEST)

    def work(task: Task) -> None:
        if injection is not None:
            play.in_child(injection, "ingest", arguments)
            play.deliveries.failed(delivery)
            return
        boundary, failed = play.boundary(f.INGEST, task, plan), False
        proven = [one for one in delivery.records if play.is_proven(one)]
        if resent:
            boundary.on_stall = lambda: play.deliveries.failed(delivery)
        try:
            bad = actors.ingest(play.site, boundary, *arguments)
            expected = {(source, one.sequence) for one in delivery.records if one not in proven}
            told = f"{play.where}: set aside {sorted(bad)}, and not {sorted(expected)}"
            play.truth.note("broken", len(bad ^ expected), told)
            if play.keys is not None:
                play.keys.refused |= bad
        except (Killed, RanklogError):
            failed = True
        if boundary.stalled and resent:
            return  # who is given up is not heard
        if failed:
            play.deliveries.failed(delivery)
        else:
            stored = play.held_back.park(source, proven) if play.held_back else proven
            play.deliveries.done(delivery, stored)

    return play.stage.add(f"ingest {delivery.records[0].sequence}", work)


def pause_one(play: Play) -> None:
    """A writer stands still between two of its steps for minutes, while compaction goes by."""
    if not play.deliveries.waiting:
        return
    step, fault = play.rng.choice(_PAUSES)
    [delivery] = play.deliveries.take(1)
    plan = ActorPlan([Injection(f.INGEST, step, fault)])
    task = add_ingest(play, delivery, plan, resent=play.rng.random() < 0.3)
    play.run_stage()
    play.clock.advance(play.rng.choice([100, 200, 290]))
    add_compaction(play)
    play.run_stage()
    if play.rng.random() < 0.6:
        task.stalled = False
        play.run_stage()


def add_late(play: Play, held: list[Delivery]) -> Task | None:
    """The writer of a batch that nobody else has, if there is one: it stands still when its segment is there,
    until that is old enough for an orphan."""
    if not held:
        return None
    plan = ActorPlan([Injection(f.INGEST, "segment.put", f.STALL_AFTER)])
    return add_ingest(play, held[0], plan, resent=False)


def add_compaction(play: Play) -> None:
    """A pass over the tenant."""
    _add(play, f.COMPACTION, "compact", actors.compact)


def add_deletion(play: Play) -> None:
    """Lines of a user, of a rank's perhaps; or a launch whole."""
    text = play.rng.choice(["u4711q", "u4712q", ""])
    run, rank = (RUN, play.rng.choice([None, None, 2, 5])) if text else (DOOMED, None)
    _add(play, f.DELETION, "delete_lines", actors.delete_lines, text, run, rank)


def keep_a_day(play: Play, run: str) -> None:
    """From now on lines of this run, too, are kept for a day."""
    play.kept_a_day.append(run)
    policy = Policy()
    for name in play.kept_a_day:
        policy = policy.with_rule(f"{name}*", DAY_NS)
    save_policy(play.site.sure_store(), TENANT, policy)


def add_retention(play: Play) -> None:
    """Lines of the scratch run are kept for a day."""
    if SCRATCH not in play.kept_a_day:
        keep_a_day(play, SCRATCH)
    _add(play, f.RETENTION, "retain", actors.retain)


def _add(play: Play, actor: str, name: str, act: Callable[..., object], *arguments: object) -> None:
    injection = play.sigkill(actor)

    def work(task: Task) -> None:
        if injection is not None:
            play.in_child(injection, name, arguments)
        else:
            act(play.site, play.boundary(actor, task), *arguments)

    play.stage.add(actor, work)
