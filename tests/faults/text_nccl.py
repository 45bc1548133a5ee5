"""NCCL's INFO and WARN lines, and gloo's errors."""

from __future__ import annotations

from collections.abc import Iterator

from tests.faults.world import World


def nccl(w: World, rank: int, text: str, site: str = "") -> str:
    """host:pid:tid [dev] NCCL INFO text, or site NCCL WARN text."""
    pid = w.topo.pids[rank]
    kind = f"{site} NCCL WARN" if site else "NCCL INFO"
    return f"{w.topo.host(rank)}:{pid}:{pid + 611} [{w.topo.local(rank)}] {kind} {text}"


def nccl_start(w: World, rank: int, comm_id: int) -> Iterator[str]:
    """NCCL_DEBUG=INFO at start: address, devices, and which rank of which communicator this is."""
    address = w.topo.addresses[w.topo.node(rank)]
    bus = w.topo.bus(rank)[5:].replace(":", "") + "0"
    yield nccl(w, rank, f"Bootstrap : Using eth0:{address}<0>")
    yield nccl(
        w,
        rank,
        f"NET/IB : Using [0]mlx5_{w.topo.local(rank)}:1/IB/SHARP [RO]; OOB eth0:{address}<0>",
    )
    comm = f"ncclCommInitRankConfig comm {hex(0x55AA0000 + rank * 0x1000)} rank {rank} nranks {w.topo.ranks}"
    where = f"cudaDev {w.topo.local(rank)} nvmlDev {w.topo.local(rank)} busId {bus} commId {hex(comm_id)}"
    yield nccl(w, rank, f"{comm} {where} - Init START")
    yield nccl(w, rank, f"{comm} {where} - Init COMPLETE")


REMOTE_ERROR = (
    "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:"
    "2251, remote process exited or there was a network error, NCCL version 2.21.5"
)


def nccl_completion(w: World, rank: int, peer: int) -> Iterator[str]:
    """InfiniBand gave up on a peer's node."""
    port = int(w.rng.integers(32768, 60999))
    address = w.topo.addresses[w.topo.node(peer)]
    kind, opcode = ("Send", 1) if w.chance(0.5) else ("Recv", 0)
    hca = f"mlx5_{w.topo.local(rank)}"
    yield ""
    yield nccl(
        w,
        rank,
        f"NET/IB: Got completion from peer {address}<{port}> with status=12 opcode={opcode} len=0 "
        f"vendor err 129 ({kind}) localGid ::ffff:{w.topo.addresses[w.topo.node(rank)]} remoteGids"
        f"::ffff:{address} hca {hca}",
        "transport/net_ib.cc:2012",
    )
    yield nccl(w, rank, "transport/net.cc:1308 -> 6")
    yield nccl(w, rank, "proxy.cc:706 -> 6 [Progress Thread]")


def remote_closed(w: World, rank: int, peer: int) -> Iterator[str]:
    """A peer's process is gone: seen by whoever holds a socket to it."""
    port = int(w.rng.integers(32768, 60999))
    address = w.topo.addresses[w.topo.node(peer)]
    yield ""
    yield nccl(
        w,
        rank,
        f"socketProgress: Connection closed by remote peer {w.topo.host(peer)}<{port}>"
        if w.chance(0.5)
        else f"Call to recv from {address}<{port}> failed : Connection reset by peer",
        "misc/socket.cc:71" if w.chance(0.5) else "misc/socket.cc:484",
    )


def gloo_closed(w: World, rank: int, peer: int | None) -> str:
    address = "127.0.0.1" if w.topo.nodes == 1 else w.topo.addresses[w.topo.node(peer or 0)]
    port = int(w.rng.integers(1024, 60999))
    if w.chance(0.5):
        what = f"pair.cc:553] Connection closed by peer [{address}]:{port}. This is typically caused by a remote worker crashing. Check the logs of the remote worker before reporting an error. GLHF! 🏖️"
    else:
        what = f"pair.cc:534] Read error [{address}]:{port}: Connection reset by peer"
    return f"RuntimeError: [/__w/pytorch/pytorch/third_party/gloo/gloo/transport/tcp/{what}"


def gloo_timeout(w: World, timeout_ms: int) -> str:
    side = w.pick("recv", "recv", "send")
    line = 78 if side == "recv" else 129
    return (
        "RuntimeError: [/__w/pytorch/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:"
        f"{line}] Timed out waiting {timeout_ms}ms for {side} operation to complete"
    )
