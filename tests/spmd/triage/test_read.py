"""Which words are signs of what, with a line of each framework; and that the query fetches them."""

from __future__ import annotations

import pytest
import re2

from ranklog.spmd.triage.evidence import evidence_pattern
from ranklog.spmd.triage.read import body_of, read_signs
from ranklog.spmd.triage.rules import RULES
from tests.spmd.triage.cases import said

LINES = [
    ("oom_device", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0"),
    ("oom_device", "RuntimeError: HIP out of memory. Tried to allocate 2.00 GiB"),
    ("oom_device", "jaxlib.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate"),
    ("oom_device", "ResourceExhaustedError: Out of memory error on GPU 3."),
    ("oom_device", "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate"),
    ("oom_host", "[123.4] python3 invoked oom-killer: gfp_mask=0x1, order=0"),
    ("oom_host", "[123.4] Out of memory: Killed process 4711 (python3) total-vm:1kB, anon-rss:1kB"),
    ("oom_host", "Memory cgroup out of memory: Killed process 4711 (pt_main_thread) total-vm:1kB"),
    ("oom_host", "slurmstepd: error: Detected 1 oom_kill event in StepId=5.0. Some of the step tasks"),
    ("oom_host", "srun: error: node-3: task 7: Out Of Memory"),
    ("oom_host", "MemoryError: Unable to allocate 5 GiB"),
    ("xid", "[Sun Feb 23 16:24:18 2025] NVRM: Xid (PCI:0000:9b:00): 79, pid=4, GPU has fallen off the bus"),
    ("gpu_fault", "RuntimeError: CUDA error: uncorrectable ECC error encountered"),
    ("gpu_fault", "CUDA error: all CUDA-capable devices are busy or unavailable"),
    ("machine", "mce: [Hardware Error]: CPU 3: Machine Check: Uncorrected"),
    ("node_failure", "srun: error: Node failure on gpu-07"),
    ("link_down", "mlx5_core 0000:29:00.0 eth2: Link down"),
    ("link_down", "ice 0000:31:00.0 eth0: NIC Link is Down"),
    ("ib_error", "net_ib.cc:9 NCCL WARN NET/IB : Got completion from peer 10.0.0.7<123> with status=12 opcode=0"),
    ("ib_error", "NET/IB : Got completion from peer node-7<4> with error 12, opcode 0, len 0, vendor err 129"),
    ("unreachable", "NET/Socket : connect failed : No route to host"),
    ("nan_check", "AssertionError: Rank 11: found NaN in local grad norm in backward pass before"),
    ("nan_check", "ERROR:megatron.core.rerun_state_machine:Unexpected result nan on rank 3 at iteration #3"),
    ("nan_check", "Loss is nan, stopping training"),
    ("file_system", "OSError: [Errno 28] No space left on device: '/ckpt/7'"),
    ("file_system", "OSError: [Errno 5] Input/output error"),
    ("file_system", "OSError: [Errno 116] Stale file handle"),
    ("file_system", "nfs: server filer not responding, still trying"),
    ("file_system", "RuntimeError: PytorchStreamWriter failed writing file data/7: file write failed"),
    ("no_file", "FileNotFoundError: [Errno 2] No such file or directory: '/data/train.bin'"),
    ("no_module", "ModuleNotFoundError: No module named 'apex'"),
    ("no_module", "ImportError: libnccl.so.2: cannot open shared object file"),
    ("bad_argument", "train.py: error: unrecognized arguments: --lr-decay"),
    ("crash", "[host:227  :0:227] Caught signal 11 (Segmentation fault: address not mapped)"),
    ("crash", "Fatal Python error: Segmentation fault"),
    ("crash", "Fatal Python error: Bus error"),
    ("data_loader", "RuntimeError: DataLoader worker (pid(s) 77, 78) exited unexpectedly"),
    ("data_loader", "RuntimeError: Caught OSError in DataLoader worker process 6."),
    ("mismatch", "RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running collective: X"),
    ("watchdog", "[Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4, OpType=ALLREDUCE, "
                 "NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600001 milliseconds before timing out."),
    ("watchdog", "[Rank 2] Watchdog caught collective operation timeout: WorkNCCL(OpType=ALLREDUCE, "
                 "TensorShape=[1], Timeout(ms)=1800000) ran for 1800123 milliseconds before timing out."),
    ("gloo_timeout", "RuntimeError: [unbound_buffer.cc:78] Timed out waiting 15000ms for recv operation to complete"),
    ("barrier", "RuntimeError: Rank 3 failed to pass monitoredBarrier in 1800000 ms"),
    ("status", "Timeout at NCCL work: 9, last enqueued NCCL work: 11, last completed NCCL work: 8."),
    ("desync_absent", "\t  - [7] finished collective #182, but didn't join collective #183 (count from 1)"),
    ("trace_absent", "missing ranks: {1, 3}"),
    ("trace_culprit", "Culprit rank 1; Error type: COLLECTIVE_TYPE_MISMATCH, Expected collective type"),
    ("peer_gone", "socket.cc:71 NCCL WARN socketProgress: Connection closed by remote peer node-7<4>"),
    ("forced", "Unable to shutdown process 227 via Signals.SIGTERM, forcefully exiting via Signals.SIGKILL"),
    ("agent_killed", "api.py:753] Received 15 death signal, shutting down workers"),
    ("agent_killed", "SignalException: Process 23230 got signal: 15"),
    ("restart", "[default] Worker group FAILED. 2/3 attempts left; will restart worker group"),
    ("srun_tasks", "srun: error: tnasnt5: tasks 1,4: Exited with exit code 134"),
    ("cancelled", "slurmstepd: error: *** STEP 561.17 ON n-25 CANCELLED AT 2024-05-01T04:11:25 DUE TO TIME LIMIT ***"),
    ("sigterm", "[rank: 3] Received SIGTERM: 15"),
    ("success", ':::MLLOG {"key": "run_stop", "value": null, "metadata": {"lineno": 1, "status": "success"}}'),
    ("success", "[after training is done] datetime: 2024-04-06 02:59:36"),
    ("success", "- root - INFO - Training completed"),
    ("save_begun", "saving checkpoint at iteration    1000 to /ckpt in torch_dist format"),
    ("save_ended", "successfully saved checkpoint from iteration    1000 to /ckpt"),
    ("stack_head", "Thread 0x00007f1 (most recent call first):"),
    ("stack_frame", '  File "/opt/torch/distributed.py", line 88 in all_reduce'),
    ("rank_time", "Rank 0: 9.98ms"),
    ("rank_time", "     rank  3: 1323.31"),
    ("save_failed", "torch.distributed.checkpoint.api.CheckpointException: CheckpointException ranks:dict_keys([5])"),
    ("broken_file", "RuntimeError: PytorchStreamReader failed reading zip archive: not a ZIP archive"),
    ("broken_file", "safetensors_rust.SafetensorError: Error while deserializing header: InvalidHeader"),
    ("pod_storage", "Warning Evicted pod/a The node was low on resource: ephemeral-storage."),
    ("file_system", "botocore.exceptions.ClientError: An error (SlowDown) occurred when calling the UploadPart operation"),
    ("bad_setup", "RuntimeError: CUDA error: no kernel image is available for execution on the device"),
    ("bad_setup", "The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use)."),
    ("crash", "RuntimeError: CUDA error: an illegal memory access was encountered"),
    ("crash", "malloc(): invalid size (unsorted)"),
    ("gpu_fault", "HW Exception by GPU node-4 (Agent handle: 0x5) reason :GPU Hang"),
    ("ib_error", "UCX  ERROR Transport retry count exceeded on mlx5_0:1/IB (synd 0x15 vend 0x81)"),
    ("gloo_timeout", "RuntimeError: Timed out initializing process group in store based barrier on rank: 5"),
    ("task_absent", "DEADLINE_EXCEEDED: Barrier timed out. Id: PjRT_Client_Connect::0."),
    ("task_name", "/job:jax_worker/replica:0/task:6"),
    ("no_connection", "RuntimeError: connect() timed out. Original timeout was 1800000 ms."),
    ("mpi_signal", "mpirun noticed that process rank 3 with PID 0 on node n1 exited on signal 9 (Killed)."),
    ("mpi_abort", "MPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD"),
    ("left_with", "[ERROR] [launch.py:325:sigkill_handler] ['python'] exits with return code = -9"),
    ("left_with", "train.sh: line 12: 40417 Killed                  python train.py"),
    ("sigterm", "srun: interrupt (one more within 1 sec to abort)"),
    ("teardown", '  File "multiprocessing/util.py", line 300, in _run_finalizers'),
]  # fmt: skip
NOTHING = [
    "iteration 5 loss nan step_time 900.0 ms",
    "[Sun Feb 23 16:24:18 2025] NVRM: Xid (PCI:0000:9b:00): 43, pid=4, Ch 00000008",
    "NET/IB : mlx5_1:1 Got non-fatal async event: client reregistration(17)",
    "mlx5_core 0000:1b:00.0 ib0: Link up",
    "pcieport 0000:00:02.0: AER: Corrected error received: 0000:00:02.0",
    "EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0",
    "UserWarning: NaN or Inf found in input tensor.",
    "[2025-01-01] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768",
    "RuntimeWarning: invalid value encountered in divide",
    "UserWarning: The PyTorch allocator ran out of cached blocks",
    "huggingface/tokenizers: The current process just got forked, after parallelism has already been used.",
    "  memory_limit ........................... 5",
]


@pytest.mark.parametrize(("kind", "text"), LINES)
def test_a_line_is_the_sign_it_should_be(kind: str, text: str) -> None:
    signs = read_signs([said(2, 1, text)], {}, {})
    assert kind in {sign.kind for sign in signs}


@pytest.mark.parametrize("text", NOTHING)
def test_what_healthy_runs_print_is_no_sign_of_a_fault(text: str) -> None:
    faults = {rule.kind for rule in RULES if rule.fault}
    signs = read_signs([said(2, 1, text)], {}, {})
    assert not faults & {sign.kind for sign in signs}


@pytest.mark.parametrize(
    "wrapper", ["{}", "[default3]:{}", " 7: {}", "[rank2]: {}", "[default0]:[rank2]: {}"]
)
def test_the_query_fetches_every_line_that_a_rule_holds_for(wrapper: str) -> None:
    pattern = re2.compile(evidence_pattern())
    assert [text for _, text in LINES if pattern.search(wrapper.format(text)) is None] == []


def test_every_kind_of_sign_has_a_line_here() -> None:
    tried = {kind for kind, _ in LINES}
    missing = {rule.kind for rule in RULES} - tried
    # parts of tables are tried where tables are read
    assert missing <= {
        "elastic_host", "elastic_rank", "elastic_code", "elastic_failed", "desync_timeout", "address"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("[default3]:[rank7]: ValueError: x", "ValueError: x"),
        (" 7: [rank7]: ValueError: x", "ValueError: x"),
        ("[rank7]:   File", "  File"),
        ("ValueError: [rank1]", "ValueError: [rank1]"),
    ],
)
def test_what_stands_around_a_line_is_taken_off(text: str, body: str) -> None:
    assert body_of(said(7, 1, text)) == body


def test_a_process_is_a_rank_by_its_number() -> None:
    killed = said(None, 1, "Out of memory: Killed process 4711 (python3) total-vm:1kB", host="n")
    [sign] = read_signs([killed], {}, {("n", 4711): 5, (None, 4711): 5})
    assert (sign.kind, sign.ranks, sign.host) == ("oom_host", {5}, "n")


def test_a_traceback_that_a_log_entry_reports_is_handled_and_a_bare_one_is_not() -> None:
    for head, handled in (
        ("failed to push metrics", True),
        ("Traceback (most recent call last):", False),
    ):
        lines = [said(0, 1, head, level=40), said(0, 1.1, "KeyError: 'x'", level=40)]
        for item in lines:
            item.group = lines[0].seq
        [sign] = [s for s in read_signs(lines, {}, {}) if s.kind == "exception"]
        assert sign.handled is handled


def test_source_code_in_a_traceback_is_no_sign() -> None:
    lines = [
        said(0, 1, "Traceback (most recent call last):", level=40),
        said(0, 1.1, '    raise ImportError("no flash attention")', level=40),
        said(0, 1.2, "RuntimeError: something else", level=40),
    ]
    for item in lines:
        item.group = lines[0].seq
    assert [sign.kind for sign in read_signs(lines, {}, {})] == ["exception"]
