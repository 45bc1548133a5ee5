"""From launch to the last healthy iteration: launchers, start-up, earlier attempts, a good end."""

from __future__ import annotations

from tests.faults.frameworks import FRAMEWORKS
from tests.faults.noise import kernel_noise, run_noise, start_kinds, start_noise, teardown_noise
from tests.faults.stamps import MS, SECOND, ampm
from tests.faults.text_launch import agent_line, agent_start, kernel_start, step_cancelled
from tests.faults.text_nccl import nccl_start
from tests.faults.training import Training, make_training
from tests.faults.world import World

_ARGUMENTS = (
    "hidden_size",
    "num_layers",
    "seq_length",
    "micro_batch_size",
    "lr_warmup_iters",
    "seed",
)


def launch(w: World) -> int:
    """The launcher's first words. Returns when processes start."""
    t = w.start_ns
    tasks = w.topo.ranks
    if not w.scene.torchrun:
        w.say_launcher(
            t,
            f"+ srun -l --ntasks={tasks} --ntasks-per-node={w.topo.per_node} --kill-on-bad-exit=1 "
            f"{w.scene.python} {w.scene.script}",
        )
    if w.scene.kernel_logs:
        for node in range(w.topo.nodes):
            w.say_kernel(node, t, *kernel_start(w, node, t - 4000 * SECOND))
    return t + 2 * SECOND


def open_attempt(w: World, t: int) -> int:
    """Start-up of every rank, in whatever order; returns when the process group exists."""
    framework, kinds = FRAMEWORKS[w.scene.framework], start_kinds(w)
    if w.scene.torchrun:
        for node in range(w.topo.nodes):
            w.say_agent(node, t + int(w.rng.uniform(0, 3) * SECOND), agent_start())
    began = t + (w.rng.uniform(4, 14, w.topo.ranks) * SECOND).astype("int64")
    ready = int(began.max()) + 3 * SECOND
    speaks_nccl, comm = (not w.scene.gloo) and w.scene.nccl_info, int(w.rng.integers(1 << 62))
    for rank in range(w.topo.ranks):
        start_noise(w, rank, int(began[rank]), kinds)
        at = ready + int(w.rng.uniform(0, 900) * MS)
        if _says_nothing_of_ranks(w):
            text = f"| distributed init (rank {rank}): env://"
            w.say(rank, int(began[rank]) + SECOND, text, channel="stdout")
        for text in framework.start(w, rank, at):
            w.say(rank, at, text)
            at += MS // 10
        if speaks_nccl:
            w.say_all(rank, at, nccl_start(w, rank, comm))
    if w.chance(0.5):
        lines = [
            f"  {name} {'.' * (40 - len(name))} {int(w.rng.integers(1, 9000))}"
            for name in _ARGUMENTS
        ]
        w.say_all(0, int(began[0]) + SECOND, ["------ arguments ------", *lines])
    return ready + 2 * SECOND


def _says_nothing_of_ranks(w: World) -> bool:
    """Under labels and paths with local ranks some line has to say which rank is which."""
    silent = w.scene.framework in ("megatron", "mxnet", "hf") or not w.scene.per_rank
    return silent and w.scene.layout in ("tee", "torchrun_dir")


def begin(w: World, *, earlier: bool | None = None) -> Training:
    """The attempt that the story is about, its iterations not yet written.

    In a fifth of the jobs an earlier attempt was ended on purpose: the later one does its last
    iterations again from a checkpoint.
    """
    t = launch(w)
    if earlier is None:
        earlier = w.chance(0.2)
    first = None
    if earlier:
        t, first = _earlier_attempt(w, t)
        w.attempt += 1
    training = make_training(w, open_attempt(w, t), first)
    if first is not None:
        note = FRAMEWORKS[w.scene.framework].note
        at = training.start_ns - SECOND
        text = f"loaded checkpoint from iteration {first - training.framework.every}"
        w.say(0, at, note(w, 0, at, "INFO", text), None)
    return training


def _earlier_attempt(w: World, t: int) -> tuple[int, int]:
    training = make_training(w, open_attempt(w, t))
    upto = int(w.rng.integers(training.count // 2, training.count))
    saved = training.number(int(w.rng.integers(upto // 3, upto - 2)))
    training.write(upto)
    end = int(training.end_ns[upto - 1]) + SECOND
    note = FRAMEWORKS[w.scene.framework].note
    if w.scene.torchrun:
        for node in range(w.topo.nodes):
            text = "[default] Detected 1 new nodes from group_rank=0; will restart worker group"
            w.say_agent(node, end, [agent_line(w, node, end, "I", "agent/server/api.py:933", text)])
    else:
        text = "received SIGUSR1, exiting after this iteration to be requeued"
        w.say(0, end - 500 * MS, note(w, 0, end - 500 * MS, "WARNING", text))
        w.say_launcher(end, step_cancelled(w, 0, end, "JOB REQUEUE"))
    return end + int(w.rng.uniform(20, 200) * SECOND), saved + training.framework.every


def run_until(w: World, training: Training, upto: int) -> None:
    """Healthy iterations before `upto` with their noise."""
    training.write(upto)
    run_noise(w, training, upto)
    kernel_noise(w, training.start_ns)


def fault_iteration(w: World, training: Training) -> int:
    """Somewhere after the start, before the end."""
    return int(w.rng.integers(max(3, training.count // 3), training.count - 1))


def finish(w: World, training: Training) -> None:
    """A good end: last words, success, and the noise of a teardown."""
    note, t = FRAMEWORKS[w.scene.framework].note, int(training.end_ns[-1]) + SECOND
    style = int(w.rng.integers(4))
    seconds = w.clock(0, t) // SECOND
    if style == 0:
        text = f"training completed: {training.count} iterations"
        w.say(0, t, note(w, 0, t, "INFO", text), channel="stdout")
    elif style == 1:
        for rank in range(w.topo.ranks) if w.scene.per_rank else [0]:
            w.say(rank, t, f"rank {rank} done", channel="stdout")
    elif style == 2:
        ms = w.clock(0, t) // MS
        w.say(
            0,
            t,
            f':::MLLOG {{"namespace": "", "time_ms": {ms}, "event_type": "INTERVAL_END", "key": "run_stop", '
            '"value": null, "metadata": {"file": "/workspace/train.py", "lineno": 1229, "status": "success"}}',
            channel="stdout",
        )
    else:
        w.say(0, t, f"ENDING TIMING RUN AT {ampm(seconds)}", channel="stdout")
        w.say(
            0,
            t,
            f"RESULT,LLM_PRETRAINING,,{training.count * 7},lab,{ampm(seconds - 900)}",
            channel="stdout",
        )
    if w.chance(0.6):
        teardown_noise(w, t + SECOND)
    if not w.scene.torchrun and w.chance(0.5):
        w.say_launcher(t + 20 * SECOND, f"RUNANDTIME_STOP {seconds + 20}", "+ set -e")
