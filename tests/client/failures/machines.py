"""Hosts, file systems, schedulers: memory, disks, time limits, pods."""

from __future__ import annotations

from tests.client.failures.case import (
    ALL,
    ANYBODY,
    STEPS,
    Failure,
    at_start,
    everybody,
    labelled,
    one,
    training,
)

CASES = (
    Failure(
        "pod_oom",
        "oom_host",
        ANYBODY,
        training(
            "    Last State:     Terminated\n      Reason:       OOMKilled\n      Exit Code:    137\n"
            "      Started:      Tue, 04 Mar 2025 09:59:02 +0000"
        ),
    ),
    Failure(
        "kubelet_oom",
        "oom_host",
        ANYBODY,
        training(
            "2025-03-04 10:01:02 Warning OOMKilling node/gpu-01 Memory cgroup out of memory: Killed "
            "process 40417 (python) total-vm:412345678kB, anon-rss:210000000kB"
        ),
    ),
    Failure(
        "evicted_memory",
        "oom_host",
        ANYBODY,
        training(
            "2025-03-04 10:01:02 Warning Evicted pod/train-3 The node was low on resource: memory. "
            "Threshold quantity: 100Mi, available: 48Mi. Container trainer was using 498Gi, request is 400Gi."
        ),
    ),
    Failure(
        "evicted_disk",
        "storage",
        ANYBODY,
        training(
            "2025-03-04 10:01:02 Warning Evicted pod/train-3 The node was low on resource: "
            "ephemeral-storage. Threshold quantity: 10Gi, available: 3Gi."
        ),
    ),
    Failure(
        "slurm_oom",
        "oom_host",
        5,
        training(
            "slurmstepd: error: Detected 1 oom_kill event in StepId=8123.0. Some of the step tasks have "
            "been OOM Killed.\nsrun: error: gpu-01: task 5: Out Of Memory"
        ),
    ),
    Failure(
        "numpy_memory",
        "oom_host",
        2,
        one(
            2,
            "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 93.1 GiB for an array with "
            "shape (12500000000,) and data type int64",
        ),
    ),
    Failure(
        "cpu_allocator",
        "oom_host",
        6,
        one(
            6,
            "RuntimeError: [enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't "
            "allocate memory: you tried to allocate 85899345920 bytes. Error code 12 (Cannot allocate "
            "memory)",
        ),
    ),
    Failure(
        "no_space",
        "storage",
        3,
        one(3, "OSError: [Errno 28] No space left on device: '/scratch/ckpt/iter_500/model_03.pt'"),
    ),
    Failure(
        "zip_writer",
        "storage",
        0,
        one(
            0,
            "RuntimeError: [enforce fail at inline_container.cc:603] . unexpected pos 1216 vs 1110",
            code="torch.save(state, path)",
        ),
    ),
    Failure(
        "stale_handle",
        "storage",
        4,
        one(4, "OSError: [Errno 116] Stale file handle: '/nfs/data/tokens_017.bin'"),
    ),
    Failure(
        "quota",
        "storage",
        1,
        one(1, "OSError: [Errno 122] Disk quota exceeded: '/home/u/ckpt/x.tmp'"),
    ),
    Failure(
        "permission",
        "storage",
        5,
        one(
            5, "PermissionError: [Errno 13] Permission denied: '/lustre/ckpt/iter_0000100/shard_5'"
        ),
    ),
    Failure(
        "object_store",
        "storage",
        7,
        one(
            7,
            "botocore.exceptions.ClientError: An error occurred (SlowDown) when calling the PutObject "
            "operation (reached max retries: 4): Please reduce your request rate.",
        ),
    ),
    Failure(
        "checkpoint_ranks",
        "storage",
        5,
        training(
            everybody(
                "torch.distributed.checkpoint.api.CheckpointException: CheckpointException "
                "ranks:dict_keys([5])"
            )
        ),
    ),
    Failure(
        "missing_data",
        "import_or_config",
        ALL,
        at_start("FileNotFoundError: [Errno 2] No such file or directory: '/data/c4/train.idx'"),
    ),
    Failure(
        "time_limit",
        "external_kill",
        None,
        training(
            "slurmstepd: error: *** STEP 8123.0 ON gpu-00 CANCELLED AT 2025-03-04T10:01:05 DUE TO TIME "
            "LIMIT ***\nsrun: Job step aborted: Waiting up to 32 seconds for job step to finish."
        ),
    ),
    Failure(
        "slurm_preempted",
        "external_kill",
        None,
        training(
            "slurmstepd: error: *** JOB 8123 ON gpu-00 CANCELLED AT 2025-03-04T10:01:05 DUE TO "
            "PREEMPTION ***"
        ),
    ),
    Failure(
        "pod_preempted",
        "external_kill",
        None,
        training(
            "2025-03-04 10:01:02 Normal Preempted pod/train-3 Preempted by pod 5f2c on node gpu-01"
        ),
    ),
    Failure(
        "spot",
        "external_kill",
        None,
        training(
            "2025-03-04 10:01:02 WARNING Spot Instance interruption notice received, instance will be "
            "terminated at 2025-03-04T10:03:00Z"
        ),
    ),
    Failure(
        "interrupted",
        "external_kill",
        None,
        training(
            "srun: interrupt (one more within 1 sec to abort)\n"
            "srun: StepId=8123.0 tasks 0-7: running\n^Csrun: sending Ctrl-C to StepId=8123.0\n"
            + everybody("KeyboardInterrupt")
        ),
    ),
    Failure(
        "agent_sigterm",
        "external_kill",
        None,
        training(
            "W0304 10:01:05.123000 4711 torch/distributed/elastic/agent/server/api.py:704] Received "
            "Signals.SIGTERM death signal, shutting down workers\n"
            "torch.distributed.elastic.multiprocessing.api.SignalException: Process 4711 got signal: 15"
        ),
    ),
    Failure(
        "node_failed",
        "hardware",
        ANYBODY,
        training(
            "srun: error: Node failure on gpu-01\n"
            "slurmstepd: error: *** STEP 8123.0 ON gpu-00 CANCELLED AT 2025-03-04T10:01:05 DUE TO NODE "
            "FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***"
        ),
    ),
    Failure(
        "node_not_ready",
        "hardware",
        ANYBODY,
        training("2025-03-04 10:01:02 Warning NodeNotReady pod/train-3 Node is not ready"),
    ),
    Failure(
        "image_pull",
        "import_or_config",
        ANYBODY,
        "2025-03-04 10:01:02 Warning Failed pod/train-3 Error: ImagePullBackOff",
    ),
    Failure(
        "no_program",
        "import_or_config",
        ANYBODY,
        "slurmstepd: error: execve(): /opt/conda/bin/pyton: No such file or directory\n"
        "srun: error: gpu-00: tasks 0-3: Exited with exit code 2\n"
        "srun: error: gpu-01: tasks 4-7: Exited with exit code 2",
    ),
    Failure(
        "mpirun_signal",
        "external_kill",
        3,
        STEPS
        + "\n-----------------------------------------------------------------------\n"
        + "mpirun noticed that process rank 3 with PID 0 on node gpu-00 exited on signal 9 (Killed).\n"
        + "-----------------------------------------------------------------------",
    ),
    Failure(
        "mpirun_segfault",
        "crash_signal",
        6,
        STEPS
        + "\n[gpu-01:4711] *** Process received signal ***\n[gpu-01:4711] Signal: Segmentation fault (11)\n"
        + "mpirun noticed that process rank 6 with PID 4711 on node gpu-01 exited on signal 11 "
        + "(Segmentation fault).",
    ),
    Failure(
        "mpi_abort",
        "unknown",
        2,
        STEPS
        + "\nMPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD\nwith errorcode 13.",
    ),
    Failure(
        "deepspeed_killed",
        "external_kill",
        ANYBODY,
        STEPS
        + "\n[2025-03-04 10:01:04,120] [INFO] [launch.py:319:sigkill_handler] Killing subprocess 4711\n"
        + "[2025-03-04 10:01:05,120] [ERROR] [launch.py:325:sigkill_handler] ['/opt/conda/bin/python', "
        + "'-u', 'train.py', '--local_rank=3'] exits with return code = -9",
    ),
    Failure(
        "mount",
        "storage",
        ANYBODY,
        '2025-03-04 10:01:02 Warning FailedMount pod/train-3 MountVolume.SetUp failed for volume "data" : '
        "rpc error: code = DeadlineExceeded desc = context deadline exceeded",
    ),
    Failure(
        "lustre",
        "storage",
        ANYBODY,
        training(
            "[ 8123.451209] LustreError: 11-0: scratch-OST0004-osc-ffff: operation ost_write to node "
            "10.0.9.4@o2ib failed: rc = -107"
        ),
    ),
    Failure(
        "input_output",
        "storage",
        0,
        training(
            labelled({0: "OSError: [Errno 5] Input/output error"})
            + "\nsrun: error: gpu-00: task 0: Exited with exit code 1"
        ),
    ),
)
