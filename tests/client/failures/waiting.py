"""Collectives, rendezvous, connections: who waits for whom."""

from __future__ import annotations

from tests.client.failures.case import (
    ANYBODY,
    Failure,
    at_start,
    everybody,
    labelled,
    one,
    traceback,
    training,
)

_WATCHDOG = (
    "[rank{rank}]:[E304 10:11:05.120 ProcessGroupNCCL.cpp:629] [Rank {rank}] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum=412, OpType=ALLREDUCE, NumelIn=8192, NumelOut=8192, "
    "Timeout(ms)=600000) ran for 600043 milliseconds before timing out."
)
_SYSTEM = (
    "torch.distributed.DistBackendError: NCCL error in: /opt/pytorch/torch/csrc/distributed/c10d/"
    "ProcessGroupNCCL.cpp:2251, unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL "
    "version 2.21.5\nncclSystemError: System call (e.g. socket, malloc) or external library call failed "
    "or device error.\nLast error:\nsocketStartConnect: Connect to 10.4.0.17<52311> failed : Connection "
    "timed out"
)
_REMOTE = (
    "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1476, remote process exited "
    "or there was a network error, NCCL version 2.20.5\nncclRemoteError: A call failed possibly due to "
    "a network error or a remote process exiting prematurely."
)
_FINGERPRINTS = (
    "RuntimeError: Detected mismatch between collectives on ranks. Rank {rank} is running collective: "
    "CollectiveFingerPrint(SequenceNumber=51, OpType=ALLREDUCE, TensorShape=[4096], TensorDtypes=Float, "
    "TensorDeviceTypes=TensorOptions(dtype=float (default), device=cuda, layout=Strided (default), "
    "requires_grad=false (default), pinned_memory=false (default), memory_format=(nullopt))), but Rank 1 "
    "is running collective: CollectiveFingerPrint(SequenceNumber=51, OpType=ALLGATHER, "
    "TensorShape=[4096], TensorDtypes=Float).Collectives differ in the following aspects: \t Op type: "
    "ALLREDUCEvs ALLGATHER"
)


def but(rank: int, text: str) -> str:
    """All ranks but one say it."""
    return labelled({r: text.replace("{rank}", str(r)) for r in range(8) if r != rank})


CASES = (
    Failure("watchdog", "collective_timeout", 5, training(but(5, _WATCHDOG))),
    Failure(
        "rccl_watchdog",
        "collective_timeout",
        2,
        training(but(2, _WATCHDOG.replace("NCCL", "RCCL"))),
    ),
    Failure(
        "store_barrier",
        "collective_timeout",
        3,
        but(
            3,
            traceback(
                "torch.distributed.DistStoreError: Timed out initializing process group in store based "
                "barrier on rank {rank}, for key: store_based_barrier_key:1 (world_size=8, "
                "num_workers_joined=7, timeout=0:30:00)"
            ),
        ),
    ),
    Failure(
        "unique_id",
        "collective_timeout",
        0,
        but(
            0,
            traceback(
                "torch.distributed.DistBackendError: [{rank}] is setting up NCCL communicator and "
                "retrieving ncclUniqueId from [0] via c10d key-value store by key '0', but "
                "store->get('0') got error: wait timeout after 600000ms, keys: /default_pg/0//cuda//0"
            ),
        ),
    ),
    Failure(
        "jax_barrier",
        "collective_timeout",
        6,
        but(
            6,
            traceback(
                "jaxlib.xla_extension.XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Id: "
                "PjRT_Client_Connect::0. This usually happens because a task triggered the barrier "
                "too early or too slowly. # of tasks that reached the barrier: 7/8. The first task at "
                "the barrier: /job:jax_worker/replica:0/task:0. Some timed out task names:\n"
                "/job:jax_worker/replica:0/task:6"
            ),
        ),
    ),
    Failure(
        "gloo",
        "collective_timeout",
        4,
        training(
            but(
                4,
                "RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out "
                "waiting 1800000ms for recv operation to complete",
            )
        ),
    ),
    Failure(
        "monitored_barrier",
        "collective_timeout",
        7,
        training(
            labelled(
                {0: traceback("RuntimeError: Rank 7 failed to pass monitoredBarrier in 600000 ms")}
            )
        ),
    ),
    Failure(
        "fingerprints",
        "collective_mismatch",
        1,
        training(
            labelled({rank: _FINGERPRINTS.replace("{rank}", str(rank)) for rank in (0, 2, 5)})
        ),
    ),
    Failure("nccl_system", "network", ANYBODY, training(everybody(traceback(_SYSTEM)))),
    Failure("nccl_remote", "network", ANYBODY, training(everybody(traceback(_REMOTE)))),
    Failure(
        "connect_timeout",
        "network",
        ANYBODY,
        but(
            0,
            traceback(
                "torch.distributed.DistNetworkError: The client socket has timed out after 60000ms while "
                "trying to connect to (10.4.0.1, 29500)."
            ),
        ),
    ),
    Failure(
        "old_connect",
        "network",
        ANYBODY,
        but(0, traceback("RuntimeError: connect() timed out. Original timeout was 1800000 ms.")),
    ),
    Failure(
        "rendezvous",
        "network",
        ANYBODY,
        "W0304 10:15:01.000000 311 torch/distributed/run.py:792] Setting OMP_NUM_THREADS\n"
        + traceback(
            "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError",
            code="self._rendezvous(worker_group)",
        ),
    ),
    Failure(
        "clients_joined",
        "network",
        ANYBODY,
        labelled(
            {
                0: traceback(
                    "torch.distributed.DistStoreError: Timed out after 901 seconds waiting for clients. "
                    "7/8 clients joined."
                )
            }
        ),
    ),
    Failure(
        "port_in_use",
        "import_or_config",
        ANYBODY,
        traceback(
            "torch.distributed.DistNetworkError: The server socket has failed to listen on any local "
            "network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: "
            "address already in use"
        ),
    ),
    Failure(
        "old_port_in_use",
        "import_or_config",
        ANYBODY,
        traceback(
            "RuntimeError: The server socket has failed to listen on any local network address. The "
            "server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use)."
        ),
    ),
    Failure(
        "retry_exceeded",
        "network",
        ANYBODY,
        training(
            labelled(
                {
                    1: "gpu-00:4711:4802 [1] transport/net_ib.cc:2117 NCCL WARN NET/IB: Got completion "
                    "from peer 10.4.0.17<33500> with status=IBV_WC_RETRY_EXC_ERR(12) "
                    "opcode=IBV_WC_SEND(0) reqSize=4096 vendor_err=129 req_type=Send"
                }
            )
        ),
    ),
    Failure(
        "ucx_retries",
        "network",
        ANYBODY,
        training(
            "2: [1741082465.120] [gpu-00:4711 :0] ib_mlx5_log.c:179  UCX  ERROR Transport retry count "
            "exceeded on mlx5_0:1/IB (synd 0x15 vend 0x81 hw_synd 0/0)\n"
            "srun: error: gpu-00: task 2: Aborted (core dumped)"
        ),
    ),
    Failure(
        "cable",
        "network",
        ANYBODY,
        training(
            "[ 8123.451209] mlx5_core 0000:5e:00.0: mlx5_pcie_event:293: Port module event: module 0, "
            "Cable unplugged\n"
            "3: gpu-00:4711:4802 [3] transport/net_ib.cc:91 NCCL WARN NET/IB : Got async event : port error"
        ),
    ),
    Failure(
        "duplicate_gpu",
        "import_or_config",
        ANYBODY,
        at_start(
            "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1691, invalid usage "
            "(run with NCCL_WARN=INFO for details), NCCL version 2.21.5\nncclInvalidUsage: This usually "
            "reflects invalid usage of NCCL library.\nLast error:\nDuplicate GPU detected : rank 1 and "
            "rank 0 both on CUDA device 1b000"
        ),
    ),
    Failure(
        "no_interface",
        "import_or_config",
        ANYBODY,
        everybody(
            "gpu-00:4711:4711 [0] misc/socket.cc:484 NCCL WARN Bootstrap : no socket interface found"
        )
        + "\n"
        + at_start(
            "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1691, internal "
            "error, NCCL version 2.21.5"
        ),
    ),
    Failure(
        "lost_task",
        "unknown",
        3,
        training(
            but(
                3,
                "E0304 10:03:05.120 client.h:80] Terminating process because the JAX distributed service "
                "detected fatal errors. UNAVAILABLE: The following tasks are unhealthy (stopped sending "
                "heartbeats):\n/job:jax_worker/replica:0/task:3",
            )
        ),
    ),
    Failure(
        "one_leaves",
        "unknown",
        4,
        one(4, "KeyError: 'attention_mask'", code="batch[key]")
        + "\n"
        + but(
            4,
            "RuntimeError: [../gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.4.0.9]",
        ),
    ),
)
