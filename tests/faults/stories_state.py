"""Stories of numbers, storage, the network and the outside, and of runs that are well."""

from __future__ import annotations

import numpy as np

from tests.faults.attempts import begin, fault_iteration, finish, run_until
from tests.faults.endings import Exits, go_down
from tests.faults.frameworks import FRAMEWORKS
from tests.faults.stamps import MS, SECOND, iso_t
from tests.faults.stories_waiting import finish_or_go_on
from tests.faults.striking import of_node, of_rank, of_word, strike
from tests.faults.text_launch import agent_signal, dmesg, srun_exits, step_cancelled
from tests.faults.text_nccl import REMOTE_ERROR, nccl_completion
from tests.faults.text_python import BACKWARD, SITE, Frame, script_frames, tagged, traceback_lines
from tests.faults.training import Training
from tests.faults.truth import ALL, NOBODY, UNDECIDABLE, Truth
from tests.faults.waiting import time_out
from tests.faults.world import World


# --- numbers --------------------------------------------------------------------------------------
def nan_rank(w: World) -> Truth:
    """One rank's numbers break first; one all-reduce later everybody's have."""
    training = begin(w)
    k, rank = fault_iteration(w, training), w.any_rank()
    t, it = training.time_of(k), training.number(k)
    if w.scene.per_rank and w.scene.framework in ("plain", "deepspeed", "sdk"):
        _spread_nan(w, training, k, [rank])
        return of_rank(w, "nan_rank", rank, "numeric", t, it)
    run_until(w, training, k)
    host, device = w.topo.host(rank), w.topo.local(rank)
    if w.scene.framework == "megatron" and w.chance(0.5):
        text = f"Unexpected result nan on rank {rank} at iteration #{it} invocation #1 (message='found NaN in local grad norm')"
        w.say(rank, t, f"ERROR:megatron.core.rerun_state_machine:{text}", it)
    error = (
        f"AssertionError: Rank {rank}: found NaN in local grad norm in backward pass before data-parallel "
        f"communication collective. Device: {device}, node: {host}"
    )
    if w.scene.framework != "megatron":
        error = f"FloatingPointError: non-finite gradient in layers.11.attention.wq.weight on rank {rank}"
    lines = tagged(w, rank, list(traceback_lines(script_frames(w), error)))
    way = strike(w, t, rank, lines, 1, it)
    return of_rank(w, "nan_rank", rank, "numeric", t, it, note=way)


def nan_replica(w: World) -> Truth:
    """The ranks that share one bad batch break together, then everybody."""
    training = begin(w)
    k, rank = fault_iteration(w, training), w.any_rank()
    ranks = frozenset(w.topo.replica(rank))
    _spread_nan(w, training, k, sorted(ranks))
    t, it = training.time_of(k), training.number(k)
    if len(ranks) == w.topo.ranks:
        return of_word("nan_replica", ALL, "numeric", t, it)
    if len(ranks) == 1:
        return of_rank(w, "nan_replica", rank, "numeric", t, it)
    return Truth("nan_replica", ranks, "numeric", t, it, ranks)


def _spread_nan(w: World, training: Training, k: int, ranks: list[int]) -> None:
    training.loss[k, ranks] = np.nan
    training.loss[k + 1 :] = np.nan
    training.grad_norm[k + 1 :] = np.nan
    upto = min(training.count, k + int(w.rng.integers(3, 20)))
    run_until(w, training, upto)
    if w.chance(0.4):
        t = int(training.end_ns[upto - 1]) + SECOND
        w.say_launcher(t, step_cancelled(w, 0, t))


def loss_spike(w: World) -> Truth:
    """The loss jumps on all ranks at once, and comes back or does not."""
    training = begin(w)
    k = fault_iteration(w, training)
    left = np.arange(training.count - k)
    comes_back = w.chance(0.6)
    height = float(w.rng.uniform(2.5, 7))
    curve = 1 + height * (np.exp(-left / w.rng.uniform(2, 9)) if comes_back else 1 + 0.15 * left)
    training.loss[k:] *= curve[:, None]
    training.grad_norm[k:] *= (curve * w.rng.uniform(8, 60))[:, None]
    if not comes_back and w.chance(0.5):
        training.loss[k + 2 :] = np.nan
        training.grad_norm[k + 2 :] = np.nan
    run_until(w, training, training.count)
    finish_or_go_on(w, training)
    return of_word("loss_spike", ALL, "numeric", training.time_of(k), training.number(k))


# --- storage --------------------------------------------------------------------------------------
def checkpoint_stuck(w: World) -> Truth:
    """One writer begins its shard and never says that it is done; the barrier after it waits."""
    training = begin(w)
    k = fault_iteration(w, training)
    run_until(w, training, k)
    rank, it = w.any_rank(), training.number(k - 1)
    t = int(training.end_ns[k - 1]) + SECOND
    last = training.checkpoint(it, t, stuck={rank})
    if w.chance(0.7):
        wait = time_out(w, last, {rank}, speaks=w.chance(0.5))
        go_down(w, wait.exits, hung={rank})
    else:
        end = t + int(w.rng.uniform(2000, 7000) * SECOND)
        w.say_launcher(end, step_cancelled(w, 0, end, "TIME LIMIT"))
    return of_rank(w, "checkpoint_stuck", rank, "storage", t, it)


def checkpoint_error(w: World) -> Truth:
    """One rank cannot write its shard."""
    training = begin(w)
    k = fault_iteration(w, training)
    run_until(w, training, k)
    rank, it = w.any_rank(), training.number(k - 1)
    t = int(training.end_ns[k - 1]) + SECOND
    training.checkpoint(it, t, stuck={rank})
    path = f"/lustre/ckpt/{w.run_id}/iter_{it:07d}/shard_{rank:05d}.distcp"
    error = w.pick(
        f"OSError: [Errno 5] Input/output error: '{path}'",
        f"OSError: [Errno 116] Stale file handle: '{path}'",
        f"OSError: [Errno 122] Disk quota exceeded: '{path}'",
        f"RuntimeError: [enforce fail at inline_container.cc:664] . unexpected pos 704 vs 598, file {path}",
    )
    lines = tagged(w, rank, list(traceback_lines(_save_frames(w), error)))
    way = strike(w, t + 3 * SECOND, rank, lines, 1, it)
    return of_rank(w, "checkpoint_error", rank, "storage", t, it, note=way)


def disk_full_node(w: World) -> Truth:
    """A node's local disk is full: all its ranks fail to write, the others do not."""
    training = begin(w)
    k, node = fault_iteration(w, training), w.any_node()
    run_until(w, training, k)
    t, it = int(training.end_ns[k - 1]) + SECOND, training.number(k - 1)
    ranks = set(w.topo.on_node(node))
    training.checkpoint(it, t, stuck=ranks)
    exits: Exits = {}
    for rank in ranks:
        at = t + int(w.rng.uniform(3000, 3600) * MS)
        error = f"OSError: [Errno 28] No space left on device: '/scratch/ckpt/iter_{it:07d}/shard_{rank:05d}.distcp'"
        w.say_all(rank, at, tagged(w, rank, list(traceback_lines(_save_frames(w), error))), it)
        exits[rank] = (at + int(w.rng.uniform(700, 1500) * MS), 1)
    go_down(w, exits)
    if w.topo.nodes == 1:
        return of_word("disk_full_node", ALL, "storage", t, it)
    return of_node(w, "disk_full_node", node, "storage", t, it)


def _save_frames(w: World) -> list[Frame]:
    return [
        (w.scene.script, 122, "main", "save_checkpoint(iteration, model, optimizer)"),
        (
            f"{SITE}/torch/distributed/checkpoint/filesystem.py",
            424,
            "_write_item",
            "torch.save(tensor, cast(IO[bytes], stream))",
        ),
        (
            f"{SITE}/torch/serialization.py",
            966,
            "save",
            "with _open_zipfile_writer(f) as opened_zipfile:",
        ),
    ]


# --- the network ----------------------------------------------------------------------------------
def link_flap(w: World) -> Truth:
    """A node's link goes: its neighbours name it, it names its neighbours."""
    training = begin(w)
    k = fault_iteration(w, training)
    run_until(w, training, k)
    t, it, node = training.time_of(k), training.number(k), w.any_node()
    nodes, exits = w.topo.nodes, {}
    near = {(node - 1) % nodes, (node + 1) % nodes}
    if w.scene.kernel_logs:
        lines = [
            "mlx5_core 0000:1b:00.0 ib0: Link down",
            "mlx5_core 0000:1b:00.0: Port: 1 Link DOWN",
        ]
        w.say_kernel(node, t, *(dmesg(w, node, t, text) for text in lines))
    raises = w.chance(0.6)
    for other in sorted(near | {node}):
        for rank in w.some(w.topo.on_node(other), 0.8) or [w.topo.on_node(other)[0]]:
            at = t + int(w.rng.uniform(9000, 16000) * MS)
            far = node if other != node else sorted(near)[rank % len(near)]
            peer = far * w.topo.per_node + w.topo.local(rank)
            at = w.say_all(rank, at, nccl_completion(w, rank, min(peer, w.topo.ranks - 1)))
            if raises:
                lines = list(traceback_lines(script_frames(w, *BACKWARD), REMOTE_ERROR))
                at = w.say_all(rank, at + 400 * MS, tagged(w, rank, lines))
            exits[rank] = (at + int(w.rng.uniform(7000, 9000) * MS), 1 if raises else -6)
    go_down(w, exits)
    if nodes == 2 and not w.scene.kernel_logs:
        return of_word("link_flap", UNDECIDABLE, "network", t, it, note="each names the other")
    return of_node(w, "link_flap", node, "network", t, it)


# --- from outside ---------------------------------------------------------------------------------
def sigterm_outside(w: World) -> Truth:
    """Somebody cancels the job: SIGTERM to the launcher and from it to all."""
    return _ended(w, "sigterm_outside", "")


def time_limit(w: World) -> Truth:
    """The allocation's time is over."""
    return _ended(w, "time_limit", "TIME LIMIT")


def preemption(w: World) -> Truth:
    """Another job is worth more."""
    return _ended(w, "preemption", "PREEMPTION")


def _ended(w: World, fault: str, reason: str) -> Truth:
    training = begin(w)
    k = fault_iteration(w, training)
    run_until(w, training, k)
    t, it = training.time_of(k), training.number(k)
    told = w.some(range(w.topo.ranks), 0.5) if w.chance(0.5) else []
    for rank in told:
        at = t + int(w.rng.uniform(5, 400) * MS)
        text = f"[rank: {rank}] Received SIGTERM: 15"
        w.say(rank, at, text)
        if w.chance(0.2):
            error = f"torch.distributed.elastic.multiprocessing.api.SignalException: Process {w.topo.pids[rank]} got signal: 15"
            w.say_all(rank, at, tagged(w, rank, list(traceback_lines(script_frames(w), error))))
    if reason or not w.scene.torchrun:
        word = "JOB" if w.chance(0.4) else "STEP"
        wait = "srun: Job step aborted: Waiting up to 32 seconds for job step to finish."
        line = step_cancelled(w, 0, t, reason)
        if word == "JOB":
            line = line.replace(f"STEP {w.job_id}.0", f"JOB {w.job_id}")
        w.say_launcher(t, *([wait] if not w.scene.torchrun else []), line)
    if w.scene.torchrun:
        for node in range(w.topo.nodes):
            at = t + int(w.rng.uniform(1, 300) * MS)
            w.say_agent(node, at, agent_signal(w, node, at, w.topo.on_node(node)))
    else:
        ended = dict.fromkeys(range(w.topo.ranks), -15)
        w.say_launcher(t + 3 * SECOND, *srun_exits(w, ended))
    return of_word(fault, NOBODY, "external_kill", t, it, note=iso_t(t))


# --- well -----------------------------------------------------------------------------------------
def healthy(w: World) -> Truth:
    """Nothing is wrong, whatever is printed. Now and then the run is still going."""
    training = begin(w)
    if w.chance(0.15):
        run_until(w, training, int(w.rng.integers(training.count // 2, training.count)))
    else:
        run_until(w, training, training.count)
        finish(w, training)
    note = FRAMEWORKS[w.scene.framework].name
    return of_word("healthy", NOBODY, "none", None, None, note=note)
