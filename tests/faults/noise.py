"""What healthy runs print that looks like trouble: at the start, now and then, and at the end."""

from __future__ import annotations

from collections.abc import Iterable

from tests.faults.frameworks import FRAMEWORKS
from tests.faults.stamps import MS, SECOND, c10d
from tests.faults.text_launch import dmesg
from tests.faults.text_nccl import nccl
from tests.faults.text_python import SITE, traceback_lines
from tests.faults.training import Training
from tests.faults.world import World


def start_noise(w: World, rank: int, t: int, kinds: Iterable[str]) -> int:
    """Warnings and benign tracebacks while modules are imported."""
    for kind in kinds:
        lines = [_LINES[kind]] if kind in _LINES else _RECORDS[kind]()
        t = w.say_all(rank, t, lines)
    return t


def start_kinds(w: World) -> list[str]:
    """Which of them a job has: all its ranks say the same."""
    return [kind for kind in (*_LINES, *_RECORDS) if w.chance(0.12)]


def _optional_import() -> list[str]:
    lines = traceback_lines(
        [
            (
                "/workspace/NeMo/nemo/utils/import_utils.py",
                319,
                "safe_import_from",
                "return getattr(imported_module, symbol), True",
            )
        ],
        "AttributeError: module 'megatron.core.fusions' has no attribute 'fused_quick_gelu'",
    )
    first, *rest = lines
    name = "Import of fused_quick_gelu from megatron.core.fusions"
    return [f"{name} failed with: {first}", *rest, ""]


def _future_warning() -> list[str]:
    return [
        f"{SITE}/torch/storage.py:414: FutureWarning: You are using `torch.load` with `weights_only=False`",
        "  return torch.load(io.BytesIO(b))",
    ]


_LINES = {
    "nvfuser": "[W init.cpp:767] Warning: nvfuser is no longer supported in torch script, use "
    "_jit_set_nvfuser_enabled is deprecated and a no-op (function operator())",
    "gdrcopy": "gdrcopy open failed",
    "zarr": "`zarr` distributed checkpoint backend is deprecated. Please switch to PyTorch Distributed "
    "format (`torch_dist`).",
    "end of life": "WARNING:megatron.core.utils:fused_indices_to_multihot has reached end of life. "
    "Please migrate to a non-experimental function.",
}
_RECORDS = {"optional import": _optional_import, "future": _future_warning}


def run_noise(w: World, training: Training, upto: int) -> None:
    """Retries, lost telemetry, skipped steps: all of it survives."""
    if upto < 3:
        return
    for _ in range(int(w.rng.poisson(0.5))):
        k, rank = int(w.rng.integers(1, upto - 1)), w.any_rank()
        if not w.chance(0.6):
            rank = 0
        t = int(training.end_ns[k]) - int(w.rng.uniform(0, 300) * MS)
        kind = int(w.rng.integers(4))
        _RUN[kind](w, rank, max(t, training.start_ns), training.number(k))


def _retry(w: World, rank: int, t: int, number: int) -> None:
    note = FRAMEWORKS[w.scene.framework].note
    shard = f"s3://corpus/v7/shard-{int(w.rng.integers(0, 9000)):05d}.tar"
    for attempt in range(1, int(w.rng.integers(2, 5))):
        text = f"Read timeout on endpoint for {shard}; retrying (attempt {attempt}/5)"
        w.say(rank, t, note(w, rank, t, "WARNING", text), number)
        t += int(w.rng.uniform(5, 60) * MS)


def _telemetry(w: World, rank: int, t: int, number: int) -> None:
    note = FRAMEWORKS[w.scene.framework].note
    text = "failed to push metrics, will try again at the next step"
    w.say(rank, t, note(w, rank, t, "ERROR", text), number)
    frames = [
        (f"{SITE}/requests/adapters.py", 700, "send", "raise ConnectionError(e, request=request)")
    ]
    error = (
        "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='metrics.internal', port=443): Max "
        "retries exceeded with url: /api/runs (Caused by NewConnectionError('Connection refused'))"
    )
    w.say_all(rank, t + MS, traceback_lines(frames, error), number)


def _async_event(w: World, rank: int, t: int, number: int) -> None:
    text = (
        f"NET/IB : mlx5_{w.topo.local(rank)}:1 Got non-fatal async event: client reregistration(17)"
    )
    w.say_all(rank, t, ["", nccl(w, rank, text, "transport/net_ib.cc:117")], number)


def _garbage(w: World, rank: int, t: int, number: int) -> None:
    note = FRAMEWORKS[w.scene.framework].note
    text = f"gradient overflow, skipping step {number}, reducing the loss scale to 32768.0"
    w.say(0, t, note(w, 0, t, "WARNING", text), number)


_RUN = (_retry, _telemetry, _async_event, _garbage)


def kernel_noise(w: World, t: int) -> None:
    """Corrected errors and slow interrupts: any host has them on any day."""
    if not w.scene.kernel_logs:
        return
    for _ in range(int(w.rng.poisson(1.0))):
        node = w.any_node()
        text = w.pick(
            "pcieport 0000:00:02.0: AER: Corrected error received: 0000:00:02.0",
            "mce: [Hardware Error]: Corrected error, no action required.",
            "perf: interrupt took too long (2534 > 2500), lowering kernel.perf_event_max_sample_rate to 78750",
            "EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0",
        )
        at = t + int(w.rng.uniform(10, 60) * SECOND)
        w.say_kernel(node, at, dmesg(w, node, at, text))


def teardown_noise(w: World, t: int) -> None:
    """A normal end of some jobs: every rank complains of the others' going, hundreds of times."""
    kinds = [kind for kind in _END if w.chance(0.35)]
    for rank in range(w.topo.ranks):
        at = t + int(w.rng.exponential(0.8) * SECOND)
        for kind in kinds:
            at = w.say_all(rank, at, _END[kind](w, rank, at), None, MS // 5)


def _proxies(w: World, rank: int, t: int) -> list[str]:
    lines = []
    for _ in range(int(w.rng.integers(1, 4))):
        peer = w.any_rank()
        for site, text in (
            ("proxy.cc:1458", "[Service thread] Accept failed Resource temporarily unavailable"),
            (
                "proxy.cc:1497",
                f"[Service thread] Could not receive type from localRank {w.topo.local(peer)}, res=3, closed=0",
            ),
            (
                "proxy.cc:1521",
                f"[Proxy Service {rank}] Failed to execute operation Close from rank {peer}, retcode 3",
            ),
        ):
            lines += ["", nccl(w, rank, text, site)]
    return lines


def _finalizers(w: World, rank: int, t: int) -> list[str]:
    if rank % 3:
        return []
    util = "/usr/lib/python3.11/multiprocessing"
    frames = [
        (f"{util}/util.py", 303, "_run_finalizers", "finalizer()"),
        (f"{util}/synchronize.py", 87, "_cleanup", "sem_unlink(name)"),
    ]
    return list(traceback_lines(frames, "FileNotFoundError: [Errno 2] No such file or directory"))


def _destroy(w: World, rank: int, t: int) -> list[str]:
    return [
        f"[rank{rank}]:[W{c10d(w.clock(rank, t))} ProcessGroupNCCL.cpp:1538] Warning: WARNING: "
        "destroy_process_group() was not called before program exit, which can leak resources. For more "
        "info, please see https://pytorch.org/docs/stable/distributed.html#shutdown (function operator())"
    ]


def _semaphores(w: World, rank: int, t: int) -> list[str]:
    where = "/usr/lib/python3.11/multiprocessing/resource_tracker.py:254"
    return [
        f"{where}: UserWarning: resource_tracker: There appear to be 5 leaked semaphore objects to clean "
        "up at shutdown",
        "  warnings.warn('resource_tracker: There appear to be %d '",
    ]


def _ucc(w: World, rank: int, t: int) -> list[str]:
    seconds = f"{w.clock(rank, t) // SECOND}.{t // 1000 % 1_000_000:06d}"
    head = f"[{seconds}] [{w.topo.host(rank)}:{w.topo.pids[rank]}:0]"
    return [
        f"{head}     ucc_context.c:906  UCC  WARN  tl ctx {w.pick('cuda', 'shm', 'ucp')} is still in use"
    ]


_END = {
    "proxies": _proxies,
    "finalizers": _finalizers,
    "destroy": _destroy,
    "semaphores": _semaphores,
    "ucc": _ucc,
}
