"""Stories of processes that die: memory, signals, exceptions, data loaders, hardware."""

from __future__ import annotations

from collections.abc import Callable

from tests.faults.attempts import begin, fault_iteration, launch, open_attempt, run_until
from tests.faults.endings import Exits, go_down, peers_closed
from tests.faults.stamps import MS, SECOND
from tests.faults.striking import die_silently, of_node, of_rank, of_word, strike
from tests.faults.text_launch import OOM_KILLED, dmesg, oom_killer, step_cancelled, xid
from tests.faults.text_nccl import nccl, remote_closed
from tests.faults.text_python import (
    BACKWARD,
    dead_loader,
    device_memory,
    loader_error,
    script_frames,
    segfault,
    tagged,
    traceback_lines,
)
from tests.faults.text_startup import missing_file, missing_module
from tests.faults.truth import ALL, Truth
from tests.faults.world import World


def _until_fault(w: World) -> tuple[int, int]:
    """Healthy up to some iteration: (when in it, its number)."""
    training = begin(w)
    k = fault_iteration(w, training)
    run_until(w, training, k)
    return training.time_of(k), training.number(k)


def oom_rank(w: World) -> Truth:
    """One rank's GPU runs out of memory; its peers' watchdogs or sockets report too."""
    t, it = _until_fault(w)
    rank = w.any_rank()
    way = strike(w, t, rank, tagged(w, rank, device_memory(w, rank)), 1, it)
    return of_rank(w, "oom_rank", rank, "oom_device", t, it, note=way)


def oom_all(w: World) -> Truth:
    """The model does not fit: every rank runs out of memory in the first iteration."""
    training = begin(w, earlier=False)
    t = training.start_ns + 2 * SECOND
    _everyone(w, t, lambda rank: tagged(w, rank, device_memory(w, rank)), it=training.number(0))
    return of_word("oom_all", ALL, "oom_device", t, training.number(0))


def sigkill_rank(w: World) -> Truth:
    """Somebody's kill -9 of one process, or an OOM killer that nobody's log shows."""
    t, it = _until_fault(w)
    rank = w.any_rank()
    die_silently(w, t, rank, -9)
    return of_rank(
        w, "sigkill_rank", rank, "external_kill", t, it, "crash_signal", note="no word why"
    )


def oom_killer_rank(w: World) -> Truth:
    """The kernel's OOM killer takes one or two processes of a host; kernel log or Slurm say so."""
    t, it = _until_fault(w)
    rank = w.any_rank()
    ranks = {rank}
    on_node = list(w.topo.on_node(w.topo.node(rank)))
    if w.chance(0.25) and len(on_node) > 2:
        ranks.add(next(r for r in w.shuffled(on_node) if r != rank))
    node = w.topo.node(rank)
    told = w.scene.kernel_logs
    if told:
        w.say_kernel(node, t, *oom_killer(w, node, t, sorted(ranks)))
    by_slurm = not told or (not w.scene.torchrun and w.chance(0.5))
    if by_slurm:
        count = len(ranks)
        w.say_launcher(
            t + 400 * MS,
            f"slurmstepd: error: Detected {count} oom_kill event{'s' if count > 1 else ''} in StepId="
            f"{w.job_id}.0. Some of the step tasks have been OOM Killed.",
        )
    exits = peers_closed(w, t, ranks) if w.chance(0.7) else {}
    killed = OOM_KILLED if by_slurm and not w.scene.torchrun else -9
    exits |= dict.fromkeys(ranks, (t, killed))
    go_down(w, exits)
    if len(ranks) == 1:
        return of_rank(w, "oom_killer_rank", rank, "oom_host", t, it)
    return Truth("oom_killer_rank", frozenset(ranks), "oom_host", t, it, frozenset(ranks))


def segfault_rank(w: World) -> Truth:
    """One rank crashes: faulthandler's dump, UCX's backtrace, or only exit code -11."""
    t, it = _until_fault(w)
    rank, lines = w.any_rank(), None
    lines = segfault(w, rank)
    if lines:
        strike(w, t, rank, lines, -11, it, way=w.pick("quick", "led"))
    else:
        die_silently(w, t, rank, w.rng.choice([-11, -7, -6]).item())
    return of_rank(w, "segfault_rank", rank, "crash_signal", t, it)


def segfault_all(w: World) -> Truth:
    """A broken library crashes every rank at start."""
    launch_ns = launch(w)
    t = open_attempt(w, launch_ns)
    dump = next(lines for _ in range(99) if (lines := segfault(w, 0)))
    handler = dump[0].startswith("Fatal")
    _everyone(
        w,
        t,
        lambda rank: next(
            lines
            for _ in range(999)
            if (lines := segfault(w, rank)) and lines[0].startswith("Fatal") == handler
        ),
        code=-11,
    )
    return of_word("segfault_all", ALL, "crash_signal", t, None)


def exception_rank(w: World) -> Truth:
    """A bug in the program that strikes one rank; or that rank exits with a code and no word."""
    t, it = _until_fault(w)
    rank = w.any_rank()
    if w.chance(0.25):
        die_silently(w, t, rank, int(w.rng.choice([3, 7, 42])))
        return of_rank(w, "exception_rank", rank, "unknown", t, it, note="exit code only")
    error = w.pick(
        "IndexError: index 32768 is out of bounds for dimension 0 with size 32768",
        "AssertionError: expected 4 experts, got 3",
        "KeyError: 'position_ids'",
        "RuntimeError: The size of tensor a (4096) must match the size of tensor b (4095) at non-singleton dimension 1",
        "ZeroDivisionError: division by zero",
    )
    frames = script_frames(w, ("/workspace/model/moe.py", 88, "route", "probs = self.gate(tokens)"))
    way = strike(w, t, rank, tagged(w, rank, list(traceback_lines(frames, error))), 1, it)
    return of_rank(w, "exception_rank", rank, "unknown", t, it, note=way)


def data_loader_death(w: World) -> Truth:
    """A data loader's worker of one rank is killed, or meets a broken shard."""
    t, it = _until_fault(w)
    rank = w.any_rank()
    lines = dead_loader(w, rank) if w.chance(0.7) else loader_error(w, rank)
    way = strike(w, t, rank, tagged(w, rank, lines), 1, it)
    return of_rank(w, "data_loader_death", rank, "data_loader", t, it, note=way)


# --- the same on every rank -----------------------------------------------------------------------
def missing_file_all(w: World) -> Truth:
    """The data set or the checkpoint is not where every rank looks for it."""
    t = _before_training(w)
    lines = missing_file(w)
    _everyone(w, t, lambda rank: lines)
    return of_word("missing_file_all", ALL, "import_or_config", t, None, "storage")


def import_error_all(w: World) -> Truth:
    """A module is missing or an argument wrong: every rank ends at once."""
    t = _before_training(w)
    lines, kind = missing_module(w)
    code = 2 if "usage" in lines[0] else 1
    _everyone(w, t, lambda rank: lines, code=code)
    return of_word("import_error_all", ALL, "import_or_config", t, None, note=kind)


def _before_training(w: World) -> int:
    began = launch(w)
    return open_attempt(w, began) if w.chance(0.5) else began + 8 * SECOND


def _everyone(
    w: World, t: int, lines_of: Callable[[int], list[str]], *, code: int = 1, it: int | None = None
) -> None:
    """Every rank fails alike within a second; the launcher ends some before they could say so."""
    exits: Exits = {}
    share = 1.0 if w.chance(0.5) else float(w.rng.uniform(0.6, 1.0))
    speaking = set(w.some(range(w.topo.ranks), share)) | {0, w.topo.ranks - 1}
    for rank in sorted(speaking):
        at = t + int(w.rng.uniform(0, 700) * MS)
        end = w.say_all(rank, at, lines_of(rank), it)
        exits[rank] = (max(end, t + 800 * MS) + int(w.rng.uniform(0, 500) * MS), code)
    go_down(w, exits)


# --- hardware -------------------------------------------------------------------------------------
_CUDA = (
    "CUDA error: uncorrectable ECC error encountered",
    "CUDA error: unspecified launch failure",
)


def xid_host(w: World) -> Truth:
    """A GPU fails: the kernel of its host names the Xid, the rank a CUDA error or nothing."""
    t, it = _until_fault(w)
    rank = w.any_rank()
    number = int(w.rng.choice([79, 48, 94, 95, 74, 119]))
    w.say_kernel(w.topo.node(rank), t, *xid(w, rank, t, number))
    host, spoke = w.topo.host(rank), w.chance(0.6)
    if spoke:
        error = f"RuntimeError: {_CUDA[0] if number in (48, 94, 95) else _CUDA[1]}"
        way = strike(w, t + 80 * MS, rank, _cuda_lines(w, rank, error), 1, it)
    else:  # the process hangs in its driver: the kernel names its GPU, the host is what is known
        way = strike(w, t, rank, [], -9, it, way="late")
    return Truth(
        fault="xid_host",
        culprit=rank if spoke else host,
        fault_class="hardware",
        first_ns=t,
        iteration=it,
        ranks=frozenset([rank]),
        or_host=host,
        note=f"Xid {number}, {way}",
    )


def _cuda_lines(w: World, rank: int, error: str) -> list[str]:
    frames = script_frames(w, *BACKWARD)
    more = [
        "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.",
        "For debugging consider passing CUDA_LAUNCH_BLOCKING=1",
        "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.",
        "",
    ]
    return tagged(w, rank, [*traceback_lines(frames, error), *more])


def ecc_rank(w: World) -> Truth:
    """A GPU's memory fails and only its process says so."""
    t, it = _until_fault(w)
    rank = w.any_rank()
    lines = _cuda_lines(w, rank, f"RuntimeError: {_CUDA[0]}")
    text = "Cuda failure 214 'uncorrectable ECC error encountered'"
    if w.chance(0.5) and not w.scene.gloo:
        lines = ["", nccl(w, rank, text, "enqueue.cc:1556"), *lines]
    way = strike(w, t, rank, lines, 1, it)
    return of_rank(w, "ecc_rank", rank, "hardware", t, it, note=way)


def node_lost(w: World) -> Truth:
    """A node goes dark: its ranks just stop, the others lose them, Slurm reports a failed node."""
    t, it = _until_fault(w)
    node = w.any_node()
    gone = set(w.topo.on_node(node))
    w.silence(gone, t)
    exits: Exits = {}
    others = [rank for rank in range(w.topo.ranks) if rank not in gone]
    for rank in w.some(others, 0.7) or others[:1]:
        at = t + int(w.rng.uniform(5, 30) * SECOND)
        peer = w.shuffled(gone)[0]
        at = w.say_all(rank, at, remote_closed(w, rank, peer))
        exits[rank] = (at + 900 * MS, 1)
    host, end = w.topo.hosts[node], t + 70 * SECOND
    if w.scene.torchrun:
        go_down(w, exits, dark=node)
    w.silence(range(w.topo.ranks), end)
    reason = "NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS"
    w.say_launcher(
        end,
        f"srun: error: Node failure on {host}",
        step_cancelled(w, 0 if node else w.topo.nodes - 1, end, reason),
    )
    if w.scene.kernel_logs:
        w.say_kernel(
            node,
            t - 40 * SECOND,
            dmesg(w, node, t - 40 * SECOND, "mce: [Hardware Error]: Machine check events logged"),
        )
    return of_node(w, "node_lost", node, "hardware", t, it)
