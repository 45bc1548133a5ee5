"""c10d: the watchdog of four versions of torch, dump signals, desync report, flight recorder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tests.faults.stamps import MS, c10d
from tests.faults.world import World

_ABOUT = (
    "This is most likely caused by incorrect usages of collectives, e.g., wrong sizes used across "
    "ranks, the order of collectives is not same for all ranks or the scheduled collective, for some "
    "reason, didn't run. Additionally, this can be caused by GIL deadlock or other reasons such as "
    "network errors or bugs in the communications library (e.g. NCCL), etc. "
)


@dataclass(frozen=True, slots=True)
class Work:
    """A collective that a rank waits for. `enqueued` is the last one it has asked for."""

    seq: int
    op: str
    numel_in: int
    numel_out: int
    timeout_ms: int
    enqueued: int
    group_id: int = 0
    group: str = "default_pg"


def head(w: World, rank: int, t: int, severity: str, line: int) -> str:
    """The head of a version: times came with 2.4, rank tags with 2.2."""
    if w.scene.torch < "2.4":
        tag = "" if w.scene.torch < "2.2" else f"[rank{rank}]:"
        return f"{tag}[{severity} ProcessGroupNCCL.cpp:{line}]"
    return f"[rank{rank}]:[{severity}{c10d(w.clock(rank, t))} ProcessGroupNCCL.cpp:{line}]"


def own_group(w: World, rank: int, work: Work) -> str:
    """Who speaks, in which group, as far as a version says."""
    if w.scene.torch < "2.4":
        return f"[Rank {rank}]"
    if w.scene.torch < "2.6":
        return f"[PG {work.group_id} Rank {rank}]"
    return f"[PG ID {work.group_id} PG GUID {work.group_id}({work.group}) Rank {rank}]"


def waited(w: World, work: Work) -> str:
    """The operation that timed out; its sizes are told since 2.2."""
    ran = work.timeout_ms + int(w.rng.integers(5, 99))
    sizes = f"NumelIn={work.numel_in}, NumelOut={work.numel_out}, "
    return (
        f"WorkNCCL(SeqNum={work.seq}, OpType={work.op}, {'' if w.scene.torch < '2.2' else sizes}"
        f"Timeout(ms)={work.timeout_ms}) ran for {ran} milliseconds before timing out."
    )


def watchdog(w: World, rank: int, t: int, work: Work, *, whole: bool) -> Iterator[str]:
    """A rank whose collective timed out; `whole`: it also came to take the process down."""
    text = waited(w, work)
    yield f"{head(w, rank, t, 'E', 632)} [Rank {rank}] Watchdog caught collective operation timeout: {text}"
    if w.scene.torch >= "2.4":
        yield from _state(w, rank, t + MS, work)
    if whole:
        yield from abort(w, rank, t + 3 * MS, work, text)


def _state(w: World, rank: int, t: int, work: Work) -> Iterator[str]:
    """How far this rank has come, and where the collective was called."""
    group, done = own_group(w, rank, work), work.seq - 1
    if w.scene.torch < "2.6":
        state = f"last enqueued NCCL work: {work.enqueued}, last completed NCCL work: {done}."
        what = "Exception (either an error or timeout) detected by watchdog at work:"
        yield f"{head(w, rank, t, 'E', 1664)} {group} {what} {work.seq}, {state}"
        yield f"{head(w, rank, t, 'E', 1709)} {group} Timeout at NCCL work: {work.seq}, {state}"
        return
    state = f"last enqueued work: {work.enqueued}, last completed work: {done}"
    yield (
        f"{head(w, rank, t, 'E', 2268)} {group}  failure detected by watchdog at work sequence id: "
        f"{work.seq} PG status: {state}"
    )
    if w.scene.flight_recorder:
        yield f"{head(w, rank, t, 'E', 685)} Stack trace of the failed collective: "
        yield "#0 all_reduce from /opt/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py:2806"
        yield f"#1 train_step from {w.scene.script}:188"
    else:
        yield (
            f"{head(w, rank, t, 'E', 670)} Stack trace of the failed collective not found, potentially "
            "because FlightRecorder is disabled. You can enable it by setting TORCH_NCCL_TRACE_BUFFER_SIZE "
            "to a non-zero value."
        )


def abort(w: World, rank: int, t: int, work: Work, text: str) -> Iterator[str]:
    """Taking the process down: the same text twice more, with C++ frames."""
    group = own_group(w, rank, work)
    own = "" if w.scene.torch < "2.2" else f"[Rank {rank}] "
    yield (
        f"{head(w, rank, t, 'E', 684)} {own}Some NCCL operations have failed or timed out. Due to the "
        "asynchronous nature of CUDA kernels, subsequent GPU operations might run on "
        "corrupted/incomplete data."
    )
    yield (
        f"{head(w, rank, t, 'E', 698)} {own}To avoid data inconsistency, we are taking the entire process "
        "down."
    )
    watchdog_thread = "NCCL watchdog" if w.scene.torch < "2.4" else "Process group watchdog"
    what = (
        f"{group} {watchdog_thread} thread terminated with exception: [Rank {rank}] Watchdog caught "
        f"collective operation timeout: {text}"
    )
    frames = [] if w.scene.torch < "2.2" else [_RAISED, *_frames(w), ""]
    yield f"{head(w, rank, t + MS, 'E', 1899)} {what}"
    yield from frames
    kind = "std::runtime_error" if w.scene.torch < "2.2" else "c10::DistBackendError"
    yield f"terminate called after throwing an instance of '{kind}'"
    yield f"  what():  {what}"
    yield from frames


_RAISED = (
    "Exception raised from checkTimeout at ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:635 (most "
    "recent call first):"
)


def _frames(w: World) -> Iterator[str]:
    base = int(w.rng.integers(0x7F0000000, 0x7FFFFFFFF)) << 12
    torch = "/opt/venv/lib/python3.11/site-packages/torch/lib"
    yield f"frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x96 ({hex(base)} in {torch}/libc10.so)"
    yield (
        "frame #1: c10d::ProcessGroupNCCL::WorkNCCL::checkTimeout(std::optional<std::chrono::duration"
        f"<long, std::ratio<1l, 1000l> > >) + 0x282 ({hex(base + 0x4A20)} in {torch}/libtorch_cuda.so)"
    )
    yield f"frame #2: c10d::ProcessGroupNCCL::watchdogHandler() + 0x233 ({hex(base + 0x9910)} in {torch}/libtorch_cuda.so)"
    yield f"frame #3: <unknown function> + 0xdc253 ({hex(base + 0xDC253)} in /lib/x86_64-linux-gnu/libstdc++.so.6)"


def dump_signal(w: World, rank: int, t: int, done: int, work: Work, source: int) -> Iterator[str]:
    """A rank told by another that it timed out; it says how far it has come itself."""
    origin = "from this local rank" if source == rank else f"from  rank {source}"
    yield (
        f"{head(w, rank, t, 'E', 1870)} {own_group(w, rank, work)} Received a dump signal due to a "
        f"collective timeout {origin} and we will try our best to dump the debug info. Last enqueued "
        f"NCCL work: {work.enqueued}, last completed NCCL work: {done}.{_ABOUT}"
    )
    yield (
        f"{head(w, rank, t + MS, 'E', 1589)} {own_group(w, rank, work)} ProcessGroupNCCL preparing to dump "
        "debug info. Include stack trace: 1"
    )


def store_gone(w: World, rank: int, t: int) -> str:
    """The store is on the first node: when that ends, everyone complains of it, whoever began."""
    own, first = w.topo.host(rank), w.topo.hosts[0]
    port = int(w.rng.integers(32768, 60999))
    return (
        f"[rank{rank}]:[W{c10d(w.clock(rank, t))} TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=4, "
        f"addr=[{own}]:{port}, remote=[{first}]:29500): failed to recv, got 0 bytes"
    )


def ranges(ranks: Iterable[int]) -> str:
    """[0-3,5]"""
    out: list[list[int]] = []
    for rank in sorted(ranks):
        if out and rank == out[-1][1] + 1:
            out[-1][1] = rank
        else:
            out.append([rank, rank])
    return "[" + ",".join(str(a) if a == b else f"{a}-{b}" for a, b in out) + "]"


def desync_report(
    w: World, rank: int, t: int, work: Work, lagging: set[int], *, joined: bool = False
) -> Iterator[str]:
    """TORCH_NCCL_DESYNC_DEBUG: who never came to the collective that others wait in."""
    others = ranges(set(range(w.topo.ranks)) - lagging)
    yield (
        f"{head(w, rank, t, 'E', 1711)} {own_group(w, rank, work)} Exception (either an error or timeout) "
        f"detected by watchdog at work: {work.seq}, last enqueued NCCL work: {work.enqueued}, last "
        f"completed NCCL work: {work.seq - 1}."
    )
    yield f"\t - [{rank}] Timeout at collective: {work.op}, #{work.seq}"
    yield "\t - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:"
    if joined:
        yield f"\t   - {ranges(lagging)} joined but didn't finish collective #{work.seq} (count from 1)"
    else:
        yield (
            f"\t   - {ranges(lagging)} finished collective #{work.seq - 1}, but didn't join collective "
            f"#{work.seq} (count from 1)"
        )
    yield "\t - Snapshot of ranks' latest states:"
    yield f"\t   #{work.seq - 1} finished ranks:"
    yield f"\t     {ranges(lagging)} finished {work.op}"
    yield f"\t   #{work.seq} started ranks:"
    yield f"\t     {others} started {work.op}"


def flight_analysis(w: World, work: Work, missing: set[int]) -> list[str]:
    """What `torchfrtrace` prints of all ranks' dumps."""
    named = "{" + ", ".join(map(str, sorted(missing))) + "}"
    return [
        f"Not all ranks joining collective, sequence number: {work.seq}",
        f"internal record id: {work.seq + 3}",
        f"group info: {work.group_id}:{work.group}",
        f"collective: nccl:{work.op.lower().strip('_')}",
        f"missing ranks: {named}",
        f"input sizes: [[{work.numel_in}]]",
        f"output sizes: [[{work.numel_out}]]",
        f"world size: {w.topo.ranks}",
        "collective state: scheduled",
    ]


def fingerprint(seq: int, op: str, shape: int) -> str:
    return (
        f"CollectiveFingerPrint(SequenceNumber={seq}, OpType={op}, TensorShape=[{shape}], TensorDtypes="
        "Float, TensorDeviceTypes=TensorOptions(dtype=float (default), device=cuda, layout=Strided "
        "(default), requires_grad=false (default), pinned_memory=false (default), memory_format="
        "(nullopt)))"
    )
