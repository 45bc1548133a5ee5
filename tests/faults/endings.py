"""How a job goes down after one process has: peers' errors, the launcher's reaping, its tables.

`Exits` maps ranks to (true time, exit code); negative codes are signals, as Python writes them.
"""

from __future__ import annotations

from tests.faults.stamps import MS, SECOND
from tests.faults.text_c10d import store_gone
from tests.faults.text_launch import (
    agent_closing,
    agent_failed,
    agent_traceback,
    failure_table,
    srun_exits,
    step_cancelled,
)
from tests.faults.text_nccl import gloo_closed, remote_closed
from tests.faults.text_python import BACKWARD, script_frames, tagged, traceback_lines
from tests.faults.world import World

Exits = dict[int, tuple[int, int]]


def peers_closed(w: World, t: int, dead: set[int]) -> Exits:
    """Peers that see a socket close and raise at once.

    Only those with a connection to a dead rank do, and of them only some before they are killed.
    """
    share = 0.8 if w.topo.ranks <= 16 else float(w.rng.uniform(0.05, 0.4))
    exits: Exits = {}
    peer = min(dead)
    for rank in w.some([r for r in range(w.topo.ranks) if r not in dead], share):
        at = t + int(w.rng.uniform(2, 600) * MS)
        if w.scene.gloo:
            error = gloo_closed(w, rank, peer)
        else:
            at = w.say_all(rank, at, remote_closed(w, rank, peer))
            error = (
                "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/"
                "NCCLUtils.cpp:328, remote process exited or there was a network error, NCCL version 2.21.5"
            )
        lines = tagged(w, rank, list(traceback_lines(script_frames(w, *BACKWARD), error)))
        at = w.say_all(rank, at + MS, lines)
        exits[rank] = (at + int(w.rng.uniform(700, 1500) * MS), 1)
    return exits


def go_down(
    w: World, exits: Exits, *, hung: set[int] | None = None, dark: int | None = None
) -> int:
    """The launcher reaps what exited, ends the rest, and says so. Returns when all is over.

    `hung` ranks don't react to SIGTERM and are killed. The agent of a `dark` node is gone, too.
    """
    first = min(t for t, _ in exits.values())
    if w.topo.nodes > 1 and w.scene.torch >= "2.4" and w.chance(0.4):
        for rank in w.some(range(w.topo.per_node, w.topo.ranks), 0.5):
            if rank not in exits and w.topo.node(rank) != dark and rank not in (hung or ()):
                at = first + int(w.rng.uniform(300, 2500) * MS)
                w.say(rank, at, store_gone(w, rank, at))
    if w.scene.torchrun:
        nodes = [node for node in range(w.topo.nodes) if node != dark]
        return max(_reap_node(w, node, exits, first, hung or set()) for node in nodes)
    return _reap_step(w, exits, first, hung or set())


def _reap_node(w: World, node: int, exits: Exits, first: int, hung: set[int]) -> int:
    """One agent. It polls: what exited before the poll are failures, the rest gets a SIGTERM."""
    ranks = list(w.topo.on_node(node))
    own = {rank: exits[rank] for rank in ranks if rank in exits}
    if own:
        poll = min(t for t, _ in own.values()) + int(w.rng.uniform(0.02, 1.2) * SECOND)
    else:  # the other nodes' agents hear of it at the rendezvous
        poll = first + int(w.rng.uniform(2, 12) * SECOND)
    failed = {rank: exit for rank, exit in own.items() if exit[0] <= poll}
    alive = [rank for rank in ranks if rank not in failed]
    w.silence(alive, poll + 30 * MS)
    at = w.say_agent(node, poll, agent_closing(w, node, poll, alive))
    waits_s = 30.0 if hung & set(alive) else float(w.rng.uniform(0.1, 1.5))
    over = at + int(waits_s * SECOND)
    if not failed:  # a worker that was told to end is what this node's summary names
        failed = {ranks[0]: (poll, -15)}
    # Time stamps have whole seconds: the lowest local rank among equals is "first observed".
    root = min(failed, key=lambda rank: (failed[rank][0] // SECOND, rank))
    w.say_agent(node, over, [agent_failed(w, node, over, root, failed[root][1])])
    table = dict(failed)
    for rank in alive:
        table[rank] = (poll, -9 if rank in hung else -15)
    w.say_agent(node, over + MS, [*agent_traceback(w), *failure_table(w, over, root, table)])
    return over + SECOND


def _reap_step(w: World, exits: Exits, first: int, hung: set[int]) -> int:
    """srun --kill-on-bad-exit: the first bad exit ends the step."""
    kill = first + int(w.rng.uniform(0.3, 4) * SECOND)
    failed = {rank: code for rank, (t, code) in exits.items() if t <= kill}
    alive = [rank for rank in range(w.topo.ranks) if rank not in failed]
    w.silence(alive, kill + 30 * MS)
    w.say_launcher(kill, *srun_exits(w, failed), f"srun: Terminating StepId={w.job_id}.0")
    node = w.topo.node(min(failed))
    w.say_launcher(kill + 200 * MS, step_cancelled(w, node, kill))
    over = kill + int((30 if hung else w.rng.uniform(0.5, 3)) * SECOND)
    ended = {rank: -9 if rank in hung else -15 for rank in alive}
    w.say_launcher(over, *srun_exits(w, ended))
    w.say_launcher(over + SECOND, f"srun: Force Terminated StepId={w.job_id}.0")
    return over + SECOND
