"""Launchers and hosts: torchrun's agent and its table, srun and slurmstepd, the kernel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tests.faults.stamps import SECOND, ctime, elastic, glog, iso_comma, iso_t
from tests.faults.text_c10d import ranges
from tests.faults.text_python import SITE
from tests.faults.world import World

OOM_KILLED = -1009  # no exit code: srun was told by the memory cgroup
SIGNALS = {6: "SIGABRT", 7: "SIGBUS", 9: "SIGKILL", 11: "SIGSEGV", 15: "SIGTERM"}
STARS = "*****************************************"
_ELASTIC = "torch/distributed/elastic"


def agent_start() -> list[str]:
    return [
        "",
        STARS,
        "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, to avoid your "
        "system being overloaded, please further tune the variable for optimal performance in your "
        "application as needed. ",
        STARS,
    ]


def agent_line(w: World, node: int, t: int, severity: str, site: str, text: str) -> str:
    """A line of torchelastic's agent, in the words of three generations."""
    at, agent = w.node_clock(node, t), w.topo.agents[node]
    module = "torch.distributed.elastic." + site.partition(".py")[0].replace("/", ".")
    level = {"I": "INFO", "W": "WARNING", "E": "ERROR"}[severity]
    if w.scene.torch < "2.0":
        return f"{level}:{module}:{text}"
    if w.scene.torch < "2.4":
        return f"[{iso_comma(at)}] {module}: [{level}] {text}"
    return f"{severity}{glog(at)} {agent} {_ELASTIC}/{site}] {text}"


def agent_closing(w: World, node: int, t: int, ranks: Iterable[int]) -> Iterator[str]:
    for rank in ranks:
        text = f"Sending process {w.topo.pids[rank]} closing signal SIGTERM"
        yield agent_line(w, node, t, "W", "multiprocessing/api.py:1028", text)


def agent_failed(w: World, node: int, t: int, rank: int, code: int) -> str:
    text = (
        f"failed (exitcode: {code}) local_rank: {w.topo.local(rank)} (pid: {w.topo.pids[rank]}) of binary: "
        f"{w.scene.python}"
    )
    return agent_line(w, node, t, "E", "multiprocessing/api.py:1002", text)


def agent_traceback(w: World, raised: str = "raise ChildFailedError(") -> Iterator[str]:
    yield "Traceback (most recent call last):"
    for file, line, name, source in (
        ("<frozen runpy>", 198, "_run_module_as_main", ""),
        ("<frozen runpy>", 88, "_run_code", ""),
        (f"{SITE}/torch/distributed/run.py", 1032, "<module>", "main()"),
        (
            f"{SITE}/{_ELASTIC}/multiprocessing/errors/__init__.py",
            367,
            "wrapper",
            "return f(*args, **kwargs)",
        ),
        (f"{SITE}/torch/distributed/run.py", 1019, "run", "elastic_launch("),
        (f"{SITE}/torch/distributed/launcher/api.py", 383, "launch_agent", raised),
    ):
        yield f'  File "{file}", line {line}, in {name}'
        if source:
            yield f"    {source}"


def _failure(w: World, index: int, t: int, rank: int, code: int) -> Iterator[str]:
    pid, signal = w.topo.pids[rank], SIGNALS.get(-code)
    yield f"[{index}]:"
    yield f"  time      : {elastic(w.clock(rank, t))}"
    yield f"  host      : {w.topo.host(rank)}"
    yield f"  rank      : {rank} (local_rank: {w.topo.local(rank)})"
    yield f"  exitcode  : {code} (pid: {pid}) " + (f" ({signal})" if signal else "")
    yield "  error_file: <N/A>"
    if signal:
        yield f"  traceback : Signal {-code} ({signal}) received by PID {pid}"
    else:
        yield "  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"


def failure_table(w: World, t: int, root: int, exits: dict[int, tuple[int, int]]) -> Iterator[str]:
    """The summary of one node. `exits`: rank -> (when, exit code); `root` was reaped first."""
    yield "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: "
    yield "=" * 60
    yield f"{w.scene.script.rsplit('/', 1)[-1]} FAILED"
    yield "-" * 60
    yield "Failures:"
    others = [rank for rank in sorted(exits) if rank != root]
    if not others:
        yield "  <NO_OTHER_FAILURES>"
    for index, rank in enumerate(others, 1):
        yield from _failure(w, index, exits[rank][0], rank, exits[rank][1])
    yield "-" * 60
    yield "Root Cause (first observed failure):"
    yield from _failure(w, 0, exits[root][0], root, exits[root][1])
    yield "=" * 60


def agent_signal(w: World, node: int, t: int, ranks: Iterable[int]) -> Iterator[str]:
    """The agent itself was told to end."""
    yield agent_line(
        w,
        node,
        t,
        "W",
        "agent/server/api.py:753",
        "Received 15 death signal, shutting down workers",
    )
    yield from agent_closing(w, node, t, ranks)
    yield from agent_traceback(w, "result = agent.run()")
    yield f'  File "{SITE}/{_ELASTIC}/multiprocessing/api.py", line 86, in _terminate_process_handler'
    yield '    raise SignalException(f"Process {os.getpid()} got signal: {sigval}", sigval=sigval)'
    yield (
        "torch.distributed.elastic.multiprocessing.api.SignalException: Process "
        f"{w.topo.agents[node]} got signal: 15"
    )


# --- Slurm --------------------------------------------------------------------------------------
_ENDS = {
    -6: "Aborted (core dumped)",
    -7: "Bus error (core dumped)",
    -9: "Killed",
    -11: "Segmentation fault (core dumped)",
    -15: "Terminated",
    OOM_KILLED: "Out Of Memory",
}


def srun_exits(w: World, exits: dict[int, int]) -> Iterator[str]:
    """srun: error: host: tasks 1,4: Exited with exit code 1. Groups by host and code."""
    groups: dict[tuple[str, int], list[int]] = {}
    for rank, code in exits.items():
        groups.setdefault((w.topo.host(rank), code), []).append(rank)
    for (host, code), ranks in groups.items():
        named = ranges(ranks)[1:-1]
        word = "task" if len(ranks) == 1 else "tasks"
        yield f"srun: error: {host}: {word} {named}: {_ENDS.get(code, f'Exited with exit code {code}')}"


def step_cancelled(w: World, node: int, t: int, reason: str = "") -> str:
    due = f" DUE TO {reason}" if reason else ""
    return (
        f"slurmstepd: error: *** STEP {w.job_id}.0 ON {w.topo.hosts[node]} CANCELLED AT "
        f"{iso_t(w.node_clock(node, t))}{due} ***"
    )


# --- kernel -------------------------------------------------------------------------------------
def dmesg(w: World, node: int, t: int, text: str) -> str:
    return f"[{ctime(w.node_clock(node, t) // SECOND)}] {text}"


def kernel_start(w: World, node: int, t: int) -> list[str]:
    """What a host's kernel says on any day."""
    lines = [
        "mlx5_core 0000:1b:00.0: firmware version: 28.39.1002",
        "nvidia-nvswitch: Probing device 0000:05:00.0, Vendor Id = 0x10de",
        "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.90.07",
        "pcieport 0000:00:02.0: AER: Corrected error received: 0000:00:02.0",
        "mlx5_core 0000:1b:00.0 ib0: Link up",
        "IPv6: ADDRCONF(NETDEV_CHANGE): eth0: link becomes ready",
    ]
    return [dmesg(w, node, t + i * 40 * SECOND, text) for i, text in enumerate(lines)]


def oom_killer(w: World, node: int, t: int, ranks: list[int]) -> list[str]:
    lines = [
        "python3 invoked oom-killer: gfp_mask=0x100cca(GFP_HIGHUSER_MOVABLE), order=0, oom_score_adj=0",
    ]
    for rank in ranks:
        pid = w.topo.pids[rank]
        rss = int(w.rng.integers(180_000_000, 260_000_000))
        lines += [
            f"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=step_0,task=python3,pid={pid},uid=1000",
            f"Memory cgroup out of memory: Killed process {pid} (python3) total-vm:{rss * 2}kB, "
            f"anon-rss:{rss}kB, file-rss:81244kB, shmem-rss:120004kB, UID:1000 pgtables:520012kB oom_score_adj:0",
        ]
    return [dmesg(w, node, t, text) for text in lines]


XIDS = {
    79: "GPU has fallen off the bus.",
    48: "pid={pid}, name=python3, DBE (double bit error) ECC Error detected",
    94: "pid={pid}, name=python3, Contained: HBM (0x4, 0x0). physAddr: 0x0000003f5c1a2000 RST: No, D-RST: No",
    95: "pid={pid}, name=python3, Uncontained: LTC TAG (0x2,0x0). RST: Yes, D-RST: No",
    74: "pid={pid}, name=python3, NVLink: fatal error detected on link 6(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)",
    119: "pid={pid}, name=python3, Timeout after 6s of waiting for RPC response from GPU{local} GSP! Expected function 76 (GSP_RM_CONTROL) (0x20802a02 0x4).",
}


def xid(w: World, rank: int, t: int, number: int) -> list[str]:
    text = XIDS[number].format(pid=w.topo.pids[rank], local=w.topo.local(rank))
    bus = w.topo.bus(rank)
    lines = [f"NVRM: Xid (PCI:{bus}): {number}, {text}"]
    if number == 79:
        lines.append(f"NVRM: GPU {bus}.0: GPU has fallen off the bus.")
    return [dmesg(w, w.topo.node(rank), t, line) for line in lines]
