"""Lines of the known formats, complete, and everything that the presets take from each.

Three lines at the end are traps: text that looks like a metric and is none.
"""

from __future__ import annotations

# text of the body -> key: value; int, float and str are told apart
CASES: list[tuple[str, dict[str, int | float | str]]] = [
    (
        "[E1003 22:26:03.467156987 ProcessGroupNCCL.cpp:633] [Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=183, OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096, Timeout(ms)=600000) ran for 600045 milliseconds before timing out.",
        {
            "numel_in": 4096,
            "numel_out": 4096,
            "op_type": "ALLREDUCE",
            "pg_rank": 2,
            "ran_ms": 600045,
            "seq_num": 183,
            "timeout_ms": 600000,
        },
    ),
    (
        "[E ProcessGroupNCCL.cpp:474] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1800116 milliseconds before timing out.",
        {"op_type": "ALLREDUCE", "pg_rank": 3, "ran_ms": 1800116, "timeout_ms": 1800000},
    ),
    (
        "[E1003 22:26:03.467156987 ProcessGroupNCCL.cpp:2252] [PG ID 0 PG GUID 0(default_pg) Rank 2]  failure detected by watchdog at work sequence id: 183 PG status: last enqueued work: 184, last completed work: -1",
        {
            "last_completed": -1,
            "last_enqueued": 184,
            "pg": "default_pg",
            "pg_guid": "0",
            "pg_id": 0,
            "pg_rank": 2,
        },
    ),
    (
        "[2025-01-01 00:00:00] | MnRtt/Rnk: 101.23ms/3 | MxRtt/Rnk: 151.20ms/7 | MnPwr/Rnk: 610.02W/2 | MxPwr/Rnk: 690.11W/7",
        {"straggler_min_ms": 101.23, "straggler_ms": 151.2, "straggler_rank": 7},
    ),
    (
        "    forward-compute ................................: (1198.41, 1214.73)",
        {"forward_compute_ms": 1214.73},
    ),
    (
        "    backward-compute ...............................: (2301.08, 2340.55)",
        {"backward_compute_ms": 2340.55},
    ),
    (
        "    optimizer ......................................: 81.2",
        {"optimizer_ms": 81.2},
    ),
    (
        "[rank2]: last enqueued NCCL work: 12, last completed NCCL work: 11.",
        {"last_completed": 11, "last_enqueued": 12},
    ),
    (
        "\t - [0] Timeout at collective: ALLREDUCE, #315",
        {"desync_ranks": "0", "op_type": "ALLREDUCE", "seq_num": 315},
    ),
    (
        "\t - [7] finished collective #182, but didn't join collective #183, (type = ALLREDUCE)",
        {"desync_ranks": "7", "last_completed": 182, "seq_num": 183},
    ),
    (
        "flight recorder: entry op=nccl:all_reduce pg=7 pg_desc=tp collective_seq_id=3 op_id=4 "
        "timeout_ms=600000 state=started input_sizes=[[4],[2,3]] is_p2p=0",
        {
            "flight": "entry",
            "op": "nccl:all_reduce",
            "pg": "7",
            "pg_desc": "tp",
            "collective_seq_id": 3,
            "op_id": 4,
            "timeout_ms": 600000,
            "state": "started",
            "input_sizes": "[[4],[2,3]]",
            "is_p2p": 0,
        },
    ),
    (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 98.00 MiB. GPU 0 has a total capacity of 23.69 GiB of which 72.81 MiB is free. Including non-PyTorch memory",
        {
            "exception": "torch.OutOfMemoryError",
            "oom_capacity_bytes": 25436943810.56,
            "oom_free_bytes": 76346818.56,
            "oom_gpu": 0,
            "oom_wanted_bytes": 102760448.0,
        },
    ),
    (
        "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 15.90 GiB total capacity; 14.25 GiB already allocated; 12.56 MiB free; 14.30 GiB reserved in total by PyTorch)",
        {
            "exception": "RuntimeError",
            "oom_allocated_bytes": 15300820992.0,
            "oom_capacity_bytes": 17072495001.6,
            "oom_free_bytes": 13170114.56,
            "oom_gpu": 0,
            "oom_wanted_bytes": 20971520.0,
        },
    ),
    (
        "KeyError: 'bert'",
        {"exception": "KeyError"},
    ),
    (
        "KeyboardInterrupt",
        {"exception": "KeyboardInterrupt"},
    ),
    (
        "I0213 23:07:05.692384  4103 nccl_context.cc:74] init nccl context nranks: 4 local rank: 3 gpu id: 3 ring id: 0",
        {"gpu_id": 3, "nccl_local_rank": 3, "nccl_nranks": 4, "ring_id": 0},
    ),
    (
        "W0501 22:04:48.360000 139692391809664 torch/distributed/elastic/multiprocessing/api.py:906] Sending process 227 closing signal SIGTERM",
        {"pid": 227, "signal": "SIGTERM"},
    ),
    (
        "I0317 10:00:17.579063 125344476638336 metric_logger.py:181] completed step: 10, seconds: 0.435, TFLOP/s/device: 305.127, Tokens/s/device: 3679.158, total_weights: 12582912, loss: nan",
        {
            "iteration": 10,
            "loss": float("nan"),
            "seconds": 0.435,
            "tflops": 305.127,
            "tokens_s": 3679.158,
            "total_weights": 12582912,
        },
    ),
    (
        "completed step: 10, seconds: 37.835,  loss: 10.565, lm_loss: 10.5, perplexity: 12.0, moe_lb_loss: 0.0, live slice count: 2",
        {
            "iteration": 10,
            "live_slice_count": 2,
            "lm_loss": 10.5,
            "loss": 10.565,
            "moe_lb_loss": 0.0,
            "perplexity": 12.0,
            "seconds": 37.835,
        },
    ),
    (
        "r9i1n5:40815:40897 [2] NCCL INFO Channel 05/32 :    0",
        {"nccl_dev": 2, "pid": 40815},
    ),
    (
        "node076:248615:249081 [3] proxy.cc:1458 NCCL WARN [Service thread] Accept failed Resource temporarily unavailable",
        {"nccl_dev": 3, "pid": 248615},
    ),
    (
        "mi325x-01:337:1339 [3] /longer_pathname/rccl/hipify/src/init.cc:1954 NCCL WARN MSCCL++: Cannot enable",
        {"nccl_dev": 3, "pid": 337},
    ),
    (
        "r7i4n5:46161:46292 [3] NCCL INFO comm 0x154318005fc0 rank 23 nranks 64 cudaDev 3 busId 8a000 - Init COMPLETE",
        {
            "bus_id": "8a000",
            "cuda_dev": 3,
            "nccl_comm": "0x154318005fc0",
            "nccl_dev": 3,
            "nccl_event": "Init COMPLETE",
            "nccl_nranks": 64,
            "nccl_rank": 23,
            "pid": 46161,
        },
    ),
    (
        "n1:10:11 [3] NCCL INFO ncclCommInitRank comm 0x5f rank 11 nranks 16 cudaDev 3 nvmlDev 3 busId 5d000 commId 0x7a8b - Init START",
        {
            "bus_id": "5d000",
            "comm_id": "0x7a8b",
            "cuda_dev": 3,
            "nccl_comm": "0x5f",
            "nccl_dev": 3,
            "nccl_event": "Init START",
            "nccl_nranks": 16,
            "nccl_rank": 11,
            "pid": 10,
        },
    ),
    (
        "n1:10:11 [0] NCCL INFO misc/socket.cc:775 -> 3",
        {"nccl_code": 3, "nccl_dev": 0, "nccl_site": "misc/socket.cc:775", "pid": 10},
    ),
    (
        "n1:10:11 [0] transport/net_ib.cc:1 NCCL WARN NET/IB : Got completion from peer 10.0.0.1<4000> with status=12 opcode=0 len=0 vendor err 129",
        {
            "ib_len": 0,
            "ib_opcode": 0,
            "ib_status": 12,
            "ib_vendor_err": 129,
            "nccl_dev": 0,
            "nccl_peer": "10.0.0.1<4000>",
            "pid": 10,
        },
    ),
    (
        "n1:10:11 [0] transport/net_ib.cc:1 NCCL WARN NET/IB : Got completion with error 12, opcode 0, len 0, vendor err 129",
        {
            "ib_len": 0,
            "ib_opcode": 0,
            "ib_status": 12,
            "ib_vendor_err": 129,
            "nccl_dev": 0,
            "pid": 10,
        },
    ),
    (
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
        {"exception": "torch.distributed.elastic.multiprocessing.errors.ChildFailedError"},
    ),
    (
        "  time      : 2023-09-27_08:47:19",
        {"failed_time": "2023-09-27_08:47:19"},
    ),
    (
        "  host      : tag-482",
        {"failed_host": "tag-482"},
    ),
    (
        "  rank      : 2 (local_rank: 2)",
        {"failed_local_rank": 2, "failed_rank": 2},
    ),
    (
        "  exitcode  : 1 (pid: 268)",
        {"exit_code": 1, "pid": 268},
    ),
    (
        "  exitcode  : -15 (pid: 21545)  (SIGTERM)",
        {"exit_code": -15, "pid": 21545, "signal": "SIGTERM"},
    ),
    (
        "  error_file: <N/A>",
        {},
    ),
    (
        "  error_file: /tmp/torchelastic/none/attempt_0/1/error.json",
        {"error_file": "/tmp/torchelastic/none/attempt_0/1/error.json"},
    ),
    (
        "  traceback : Signal 11 (SIGSEGV) received by PID 224",
        {"pid": 224, "signal": "SIGSEGV", "signal_number": 11},
    ),
    (
        "[2023-09-27 08:47:19,360] torch.distributed.elastic.multiprocessing.api: [ERROR] failed (exitcode: -11) local_rank: 0 (pid: 224) of binary: /usr/bin/python",
        {"exit_code": -11, "failed_local_rank": 0, "pid": 224},
    ),
    (
        "srun: error: tnasnt5: tasks 1,4: Exited with exit code 134",
        {
            "exit_code": 134,
            "failed_host": "tnasnt5",
            "task_state": "Exited with exit code 134",
            "tasks": "1,4",
        },
    ),
    (
        "srun: error: 292KF14: tasks 0-1,3-4: Terminated",
        {"failed_host": "292KF14", "task_state": "Terminated", "tasks": "0,1,3,4"},
    ),
    (
        "slurmstepd: error: *** STEP 561.17 ON compute-hpc-node-25 CANCELLED AT 2024-05-01T04:11:25 DUE TO TIME LIMIT ***",
        {
            "cancel_reason": "TIME LIMIT",
            "cancelled_at": "2024-05-01T04:11:25",
            "slurm_host": "compute-hpc-node-25",
            "slurm_step": "561.17",
        },
    ),
    (
        "slurmstepd-vm: error: *** STEP 3.0 ON vm CANCELLED AT 2026-11-29T14:17:23 ***",
        {"cancelled_at": "2026-11-29T14:17:23", "slurm_host": "vm", "slurm_step": "3.0"},
    ),
    (
        "slurmstepd: error: Detected 1 oom_kill event in StepId=561.17. Some of the step tasks have been OOM Killed.",
        {"oom_kills": 1, "slurm_step": "561.17"},
    ),
    (
        ':::MLLOG {"namespace": "", "time_ms": 1714536664883, "event_type": "POINT_IN_TIME", "key": "tracked_stats", "value": {"throughput": 56434.8}, "metadata": {"file": "/workspace/image_classification/common/fit.py", "lineno": 1001, "step": 15}}',
        {
            "event_type": "POINT_IN_TIME",
            "key": "tracked_stats",
            "mllog_step": 15,
            "throughput": 56434.8,
        },
    ),
    (
        ':::MLLOG {"namespace": "", "time_ms": 1714536664883, "event_type": "POINT_IN_TIME", "key": "tracked_stats", "value": {"train_step_time": 0.5}, "metadata": {"file": "a.py", "lineno": 1, "step": 31.0, "samples_count": 1024.0}}',
        {
            "event_type": "POINT_IN_TIME",
            "iteration": 31,
            "key": "tracked_stats",
            "mllog_step": 31,
            "samples_count": 1024,
            "train_step_time": 0.5,
        },
    ),
    (
        ':::MLLOG {"namespace": "", "time_ms": 1714536664883, "event_type": "INTERVAL_START", "key": "block_start", "value": null, "metadata": {"file": "a.py", "lineno": 1, "samples_count": 24576, "step": 5376}}',
        {
            "event_type": "INTERVAL_START",
            "iteration": 5376,
            "key": "block_start",
            "mllog_step": 5376,
            "samples_count": 24576,
        },
    ),
    # the batch of a validation
    (
        ':::MLLOG {"namespace": "", "time_ms": 1714536664883, "event_type": "POINT_IN_TIME", "key": "tracked_stats", "value": {"validation_step_time": 0.25}, "metadata": {"file": "a.py", "lineno": 1, "step": 7, "samples_count": 8192}}',
        {
            "event_type": "POINT_IN_TIME",
            "key": "tracked_stats",
            "mllog_step": 7,
            "samples_count": 8192,
            "validation_step_time": 0.25,
        },
    ),
    (
        ':::MLLOG {"namespace": "", "time_ms": 1714536664883, "event_type": "INTERVAL_END", "key": "block_stop", "value": null, "metadata": {"file": "a.py", "lineno": 1, "samples_count": 1536, "curr_global_step": 192, "self.gbs": 8}}',
        {
            "event_type": "INTERVAL_END",
            "iteration": 192,
            "key": "block_stop",
            "samples_count": 1536,
            "self.gbs": 8,
        },
    ),
    (
        ':::MLLOG {"namespace": "", "time_ms": 1714536664883, "event_type": "POINT_IN_TIME", "key": "power_reading", "value": 3782, "metadata": ""}',
        {"event_type": "POINT_IN_TIME", "key": "power_reading", "value": 3782},
    ),
    (
        ':::MLLOG {"namespace": "", "time_ms": 1714536664883, "event_type": "INTERVAL_END", "key": "epoch_stop", "value": null, "metadata": {"file": "a.py", "lineno": 1, "epoch_num": 0.7, "samples_count": 3072.0}}',
        {
            "epoch_num": 0.7,
            "event_type": "INTERVAL_END",
            "key": "epoch_stop",
            "samples_count": 3072,
        },
    ),
    (
        "DLL 2020-05-01 12:00:00.123456 - Training Epoch: 0 Training Iteration: 20  average_loss : 11.27 step_loss : 1.5 learning_rate : 3.8e-05",
        {"average_loss": 11.27, "iteration": 20, "learning_rate": 3.8e-05, "step_loss": 1.5},
    ),
    (
        "step   98/19560 | loss 7.143300 (-0.02z)| norm 1.2200 (+1.10z)| lr 8.50e-05 | 1234.56 ms | 45.1% bf16 MFU | 424242 tok/s",
        {
            "dt_ms": 1234.56,
            "grad_norm": 1.22,
            "iteration": 98,
            "learning_rate": 8.5e-05,
            "loss": 7.1433,
            "tokens_s": 424242.0,
            "total": 19560,
        },
    ),
    (
        "2024-07-03 19:23:24,551 - root - INFO - \x1b[36mstep: 10  \x1b[32mloss: 10.25  \x1b[33mmemory: 9.5GiB(9.75%)  \x1b[34mwps: 1,287  \x1b[35mmfu: 5.25%\x1b[39m",
        {
            "iteration": 10,
            "loss": 10.25,
            "memory_gib": 9.5,
            "memory_pct": 9.75,
            "mfu": 5.25,
            "tps": 1287,
        },
    ),
    (
        "[titan] 2025-12-13 06:45:34,345 - root - INFO - step: 530  loss: -0.5  n_tokens: 1,024  grad_norm:  0.25  memory: 63.5GiB(45.5%)  tps: 1,829",
        {
            "grad_norm": 0.25,
            "iteration": 530,
            "loss": -0.5,
            "memory_gib": 63.5,
            "memory_pct": 45.5,
            "tps": 1829,
        },
    ),
    (
        "[2021/05/05 19:15:24] ppocr INFO: epoch: [1/500], global_step: 10, lr: 0.001, acc: 0.25, loss: 2.5",
        {"acc": 0.25, "epoch": 1, "iteration": 10, "learning_rate": 0.001, "loss": 2.5},
    ),
    (
        "INFO:root:Epoch[1] Batch [320]\tSpeed: 11941.69 samples/sec\taccuracy=0.5",
        {"accuracy": 0.5, "batch": 320, "epoch": 1, "samples_per_second": 11941.69},
    ),
    ("Step 1,000 | loss 2.5", {"iteration": 1000, "loss": 2.5}),
    ("step 6 | loss=1,234.5 | lr=1e-05", {"iteration": 6, "loss": 1234.5}),
    ("step 7 loss 2,1000", {"iteration": 7, "loss": 2.0}),
    ("tflops=115.41 step=1 loss=11.25", {"iteration": 1, "loss": 11.25}),
    (
        "DLL 2025-10-03 22:16:01.676767 - Iteration 4031 | train_acc : 0.7227 % | iteration_time : 71.67 ms | train_loss : 0.8359  | last_iter_used_cuda_graph : True ",
        {
            "cuda_graph": 1,
            "iteration": 4031,
            "iteration_time": 71.67,
            "train_acc": 0.7227,
            "train_loss": 0.8359,
        },
    ),
    (
        "DLL 2025-10-03 22:16:01.676767 - train epoch 000 | train_acc : 0.7 % | train_time : 0:06:38  | train_loss : 0.8 | gpu_memory : 12.5 MB",
        {
            "dll_scope": "train epoch 000",
            "gpu_memory": 12.5,
            "train_acc": 0.7,
            "train_loss": 0.8,
            "train_time": 398.0,
        },
    ),
    (
        "Training epoch 0, iteration 1/99 | lr: 1.961e-07 | global_batch_size: 4 | global_step: 1 | reduced_train_loss: 15.07 | train_step_timing in s: 2.008 | consumed_samples: 8",
        {
            "consumed_samples": 8,
            "epoch": 0,
            "global_batch_size": 4,
            "global_step": 1,
            "iteration": 1,
            "learning_rate": 1.961e-07,
            "reduced_train_loss": 15.07,
            "total": 99,
            "train_step_timing": 2.008,
        },
    ),
    (
        "Initializing distributed: GLOBAL_RANK: 103, MEMBER: 104/1024",
        {"global_rank": 103, "world_size": 1024},
    ),
    (
        " iteration       30/    1000 | consumed samples:          120 | elapsed time per iteration (ms): 6746.5 | learning rate: 1.500E-04 | global batch size:     4 | lm loss: 7.676836E+01 | loss scale: 16384.0 | grad norm: 126.963 | number of skipped iterations:   1 | number of nan iterations:   0 |",
        {
            "consumed_samples": 120,
            "elapsed_ms": 6746.5,
            "global_batch_size": 4,
            "grad_norm": 126.963,
            "iteration": 30,
            "learning_rate": 0.00015,
            "lm_loss": 76.76836,
            "loss_scale": 16384.0,
            "nan": 0,
            "skipped": 1,
            "total": 1000,
        },
    ),
    (
        " [2024-04-06 02:59:36] iteration       43/     100 | consumed samples: 5504 | elapsed time per iteration (ms): 5444.9 | throughput per GPU (TFLOP/s/GPU): 239.8 | learning rate: 8.600000E-06 | load_balancing_loss: 1.019746E+00 | loss scale: 1.0 | grad norm: nan |",
        {
            "consumed_samples": 5504,
            "elapsed_ms": 5444.9,
            "grad_norm": float("nan"),
            "iteration": 43,
            "learning_rate": 8.6e-06,
            "load_balancing_loss": 1.019746,
            "loss_scale": 1.0,
            "throughput_tflops": 239.8,
            "total": 100,
        },
    ),
    (
        " iteration        5/    1000 | consumed samples:         5120 | elapsed time per iteration (s): 105.22 | learning rate: 9.375E-05 | global batch size:  1024 | lm-loss: 3.814122E+01 | loss scale: -1.0 | grad norm: 0.000 | num zeros: 0.0 | number of skipped iterations:   0 | number of nan iterations:   0 |",
        {
            "consumed_samples": 5120,
            "elapsed_s": 105.22,
            "global_batch_size": 1024,
            "grad_norm": 0.0,
            "iteration": 5,
            "learning_rate": 9.375e-05,
            "lm_loss": 38.14122,
            "loss_scale": -1.0,
            "nan": 0,
            "num_zeros": 0.0,
            "skipped": 0,
            "total": 1000,
        },
    ),
    (
        "time (ms) | forward: 12.5 | backward-params-all-reduce: 1.25",
        {"backward_params_all_reduce_ms": 1.25, "forward_ms": 12.5},
    ),
    (
        " validation loss at iteration 1000 | lm loss value: 2.500000E+00 | lm loss PPL: 1.218249E+01 |",
        {"iteration": 1000, "split": "validation", "val_loss": 2.5, "val_ppl": 12.18249},
    ),
    (
        "[Rank 48] (after 1 iterations) memory (MB) | allocated: 10837.39501953125 | max allocated: 15446.84716796875",
        {"allocated_mb": 10837.39501953125, "iteration": 1, "max_allocated_mb": 15446.84716796875},
    ),
    (
        "ERROR:megatron.core.rerun_state_machine:Unexpected result nan on rank 3 at iteration #3 invocation #2 (message=...)",
        {"failed_rank": 3, "iteration": 3, "unexpected_result": "nan"},
    ),
    (
        "AssertionError: Rank 11: found NaN in local grad norm in backward pass before data-parallel communication collective. Device: 3, node: gpu-12",
        {"cuda_dev": 3, "exception": "AssertionError", "failed_host": "gpu-12", "failed_rank": 11},
    ),
    (
        "[20251202 09:12:08][rank-7/8][INFO ] [--------trainer.py:2560] : iteration 126/ 5000 | consumed samples: 16128 | elapsed time per iteration (ms): 13372.8/13364.7 | hip mem usage/free/total/usage_ratio: 153.81GB/102.17GB/255.98GB/60.09% | throughput per GPU (TFLOP/s/GPU): 567.6/568.0 | tokens per GPU (tokens/s/GPU): 9801.4/9807.3 | learning rate: 9.984820E-06 |",
        {
            "consumed_samples": 16128,
            "elapsed_ms": 13372.8,
            "elapsed_ms_avg": 13364.7,
            "hip_mem_usage": 153.81,
            "iteration": 126,
            "learning_rate": 9.98482e-06,
            "throughput_tflops": 567.6,
            "throughput_tflops_avg": 568.0,
            "tokens_s": 9801.4,
            "tokens_s_avg": 9807.3,
            "total": 5000,
        },
    ),
    (
        "[2021-05-27 19:51:55,061] [INFO] [logging.py:60:log_dist] [Rank 0] step=1, skipped=0, lr=[1.875e-05, 1.875e-05], mom=[(0.9, 0.999), (0.9, 0.999)]",
        {"iteration": 1, "learning_rate": 1.875e-05, "skipped": 0},
    ),
    (
        "steps: 2 loss: 12.8004 iter time (s): 145.206 samples/sec: 7.052",
        {"iter_s": 145.206, "iteration": 2, "loss": 12.8004, "samples_per_second": 7.052},
    ),
    (
        "epoch=0/micro_step=10/global_step=5, RunningAvgSamplesPerSec=100.5, CurrSamplesPerSec=101.5, MemAllocated=1.5GB, MaxMemAllocated=2.5GB",
        {
            "epoch": 0,
            "iteration": 5,
            "max_mem_allocated_gb": 2.5,
            "mem_allocated_gb": 1.5,
            "micro_step": 10,
            "samples_per_second": 101.5,
            "samples_per_second_avg": 100.5,
        },
    ),
    (
        "[2024-09-11 17:52:18,030] [INFO] [loss_scaler.py:183:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 4294967296, reducing to 2147483648",
        {"attempted_loss_scale": 4294967296.0, "loss_scale": 2147483648.0, "overflow_rank": 0},
    ),
    (
        "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 65536.0Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0",
        {"loss_scale": 65536.0},
    ),
    (
        "[INFO|trainer_pt_utils.py:912] 2021-05-25 06:45:27,966 >>   train_samples            =       1000",
        {"train_samples": 1000},
    ),
    (
        "{'loss': 1.2607, 'learning_rate': 6.31578947368421e-06, 'epoch': 0.03}",
        {"epoch": 0.03, "learning_rate": 6.31578947368421e-06, "loss": 1.2607},
    ),
    (
        "  5%|5         | 2/40 [00:01<00:20,  1.90it/s]\r{'loss': nan, 'grad_norm': inf, 'learning_rate': 0.0, 'epoch': 0.1}                    ",
        {
            "bar_at": 2,
            "bar_elapsed_s": 1.0,
            "bar_eta_s": 20.0,
            "bar_percent": 5,
            "bar_rate": 1.9,
            "bar_total": 40,
            "epoch": 0.1,
            "grad_norm": float("inf"),
            "learning_rate": 0.0,
            "loss": float("nan"),
        },
    ),
    (
        "{'eval_loss': '1.5', 'eval_runtime': 12.5, 'epoch': 1}",
        {"epoch": 1, "eval_loss": 1.5, "eval_runtime": 12.5},
    ),
    (
        "  0%|          | 0/40 [00:00<?, ?it/s]\r 18%|#8        | 7/40 [00:00<00:00, 62.50it/s]",
        {
            "bar_at": 7,
            "bar_elapsed_s": 0.0,
            "bar_eta_s": 0.0,
            "bar_percent": 18,
            "bar_rate": 62.5,
            "bar_total": 40,
        },
    ),
    (
        "  0%|          | 0/40 [00:00<?, ?it/s] 18%|#8        | 7/40 [6:28:43<10:00,  2.00s/it]",
        {
            "bar_at": 7,
            "bar_elapsed_s": 23323.0,
            "bar_eta_s": 600.0,
            "bar_percent": 18,
            "bar_rate": 0.5,
            "bar_total": 40,
        },
    ),
    (
        "Epoch 0:  96%|##| 971/1016 [00:34<00:01, 27.84it/s, loss=0.223, v_num=77, acc=0.875]",
        {
            "acc": 0.875,
            "bar_at": 971,
            "bar_elapsed_s": 34.0,
            "bar_eta_s": 1.0,
            "bar_name": "Epoch 0",
            "bar_percent": 96,
            "bar_rate": 27.84,
            "bar_total": 1016,
            "loss": 0.223,
            "v_num": 77,
        },
    ),
    (
        "1|16|Loss: 2.572: 100%|##| 16/16 [00:10<00:00,  1.60it/s]",
        {
            "bar_at": 16,
            "bar_elapsed_s": 10.0,
            "bar_eta_s": 0.0,
            "bar_name": "Loss: 2.572",
            "bar_percent": 100,
            "bar_rate": 1.6,
            "bar_total": 16,
            "epoch": 1,
            "iteration": 16,
            "loss": 2.572,
        },
    ),
    (
        "[titan] 2025-12-13 06:45:34,345 - root - INFO - step: 530  loss:  5.9866  grad_norm:  0.5402  memory: 63.36GiB(45.35%)  tps: 1,829  tflops: 1,023.15  mfu: 2.34%",
        {
            "grad_norm": 0.5402,
            "iteration": 530,
            "loss": 5.9866,
            "memory_gib": 63.36,
            "memory_pct": 45.35,
            "mfu": 2.34,
            "tflops": 1023.15,
            "tps": 1829,
        },
    ),
    (
        "[titan] 2025-12-13 06:45:34,345 - root - INFO - \x1b[31mstep: 10  \x1b[32mloss:  8.0047  \x1b[33mmemory:  1.10GiB(1.25%)  \x1b[34mtps: 829  \x1b[36mtflops: 3.15  \x1b[35mmfu: N/A\x1b[39m",
        {
            "iteration": 10,
            "loss": 8.0047,
            "memory_gib": 1.1,
            "memory_pct": 1.25,
            "tflops": 3.15,
            "tps": 829,
        },
    ),
    (
        "[titan] 2025-12-13 06:45:34,345 - root - INFO - validate step: 2  loss:  7.5  memory: 63.36GiB(45.35%)  tps: 829",
        {"iteration": 2, "memory_gib": 63.36, "memory_pct": 45.35, "tps": 829, "val_loss": 7.5},
    ),
    (
        "[2024-08-18 12:26:53] INFO     [olmo.train:966, rank=0] [step=1/739328,epoch=0]",
        {"epoch": 0, "iteration": 1, "total": 739328},
    ),
    (
        "    train/CrossEntropyLoss=11.35",
        {"train/cross_entropy_loss": 11.35},
    ),
    (
        "    train/Perplexity=84,618",
        {"train/perplexity": 84618.0},
    ),
    (
        "    optim/learning_rate_group0=1.7872662283480167e-06",
        {"optim/learning_rate_group0": 1.7872662283480167e-06},
    ),
    (
        "    System/Peak GPU Memory (MB)=12,345.5",
        {"system/peak_gpu_memory_mb": 12345.5},
    ),
    (
        "2024-08-06 09:59:26.181\tintern-studio-160750:0\tolmo.train:908\tINFO\t[step=1/739328,epoch=0]",
        {"epoch": 0, "iteration": 1, "total": 739328},
    ),
    (
        " samples/sec: 18.123 | iteration     100/  320000 | elapsed time per iteration (ms): 1412.1 | learning rate: 1.000E-04 | approx flops per GPU: 61.3TFLOPS | lm_loss: 4.123456E+00 | loss scale: 65536.0 | number of skipped iterations:   0 | number of nan iterations:   0 |",
        {
            "elapsed_ms": 1412.1,
            "flops_per_gpu": 61.3,
            "iteration": 100,
            "learning_rate": 0.0001,
            "lm_loss": 4.123456,
            "loss_scale": 65536.0,
            "nan": 0,
            "samples_per_second": 18.123,
            "skipped": 0,
            "total": 320000,
        },
    ),
    (
        "[batch=366/48000]:",
        {"iteration": 366, "total": 48000},
    ),
    (
        "[epoch=1][batch=3/10]:",
        {"epoch": 1, "iteration": 3, "total": 10},
    ),
    (
        "\t Train time/token: 382730240",
        {"time/token": 382730240},
    ),
    (
        "\t Train loss/train/total: 10.3750",
        {"loss/train/total": 10.375},
    ),
    (
        "         Eval metrics/c4: en/Accuracy: 0.5",
        {"metrics/c4_en/accuracy": 0.5},
    ),
    (
        "2023-11-10T15:06:02.978+08:00 INFO [training_internlm.py, line 601, in record_current_batch_training_metrics] - pid=78690 : tflops=115.41 step=1 loss=11.33 tgs (tokens/gpu/second)=931.02 tgs/last_tgs_1=931.03 lr=6.0e-07 loss_scale=65536.0 grad_norm={'0_default': 87.31, '1_fp32': 0.0} loss/cn=nan",
        {
            "grad_norm": 87.31,
            "iteration": 1,
            "learning_rate": 6e-07,
            "loss": 11.33,
            "loss/cn": float("nan"),
            "loss_scale": 65536.0,
            "pid": 78690,
            "tflops": 115.41,
            "tgs/last_tgs_1": 931.03,
            "tokens_s": 931.02,
        },
    ),
    (
        "step:11968/20344 train_loss:2.7090 train_time:20365019ms step_avg:1703.05ms",
        {
            "iteration": 11968,
            "step_avg_ms": 1703.05,
            "total": 20344,
            "train_loss": 2.709,
            "train_time_ms": 20365019.0,
        },
    ),
    (
        "step:3174/3175 val_loss:3.27624 train_time:1251.885s step_avg:394.42ms",
        {
            "iteration": 3174,
            "step_avg_ms": 394.42,
            "total": 3175,
            "train_time_ms": 1251885.0,
            "val_loss": 3.27624,
        },
    ),
    (
        "step:3809/6710 train_time:861831ms step_avg:226.26ms",
        {"iteration": 3809, "step_avg_ms": 226.26, "total": 6710, "train_time_ms": 861831.0},
    ),
    (
        "step:1/6710 train_loss:10.8 train_time:0ms step_avg:nanms",
        {
            "iteration": 1,
            "step_avg_ms": float("nan"),
            "total": 6710,
            "train_loss": 10.8,
            "train_time_ms": 0.0,
        },
    ),
    (
        "s:98 trl:7.1433 lr:0.000085 norm:1.22",
        {"grad_norm": 1.22, "iteration": 98, "learning_rate": 8.5e-05, "train_loss": 7.1433},
    ),
    (
        "s:0 tel:11.0092",
        {"iteration": 0, "val_loss": 11.0092},
    ),
    (
        "s:250 eval:0.2991",
        {"accuracy": 0.2991, "iteration": 250},
    ),
    (
        "iter 1631: loss 4.0863, time 561.94ms",
        {"dt_ms": 561.94, "iteration": 1631, "loss": 4.0863},
    ),
    (
        "iter 10: loss 4.1, time 561.94ms, mfu 12.50%",
        {"dt_ms": 561.94, "iteration": 10, "loss": 4.1, "mfu": 12.5},
    ),
    (
        "step 500: train loss 2.5000, val loss 2.6000",
        {"iteration": 500, "train_loss": 2.5, "val_loss": 2.6},
    ),
    (
        "step 5 | loss: 9.5 | lr 6.0e-04 | norm: 1.5 | dt: 320.5ms | tok/sec: 1600.5",
        {
            "dt_ms": 320.5,
            "grad_norm": 1.5,
            "iteration": 5,
            "learning_rate": 0.0006,
            "loss": 9.5,
            "tokens_s": 1600.5,
        },
    ),
    (
        "step 00010/21400 (0.05%) | loss: 9.5 | lrm: 1.00 | dt: 320.5ms | tok/sec: 1,635,123 | bf16_mfu: 47.5 | epoch: 1 | total time: 3.50m",
        {
            "bf16_mfu": 47.5,
            "dt_ms": 320.5,
            "epoch": 1,
            "iteration": 10,
            "loss": 9.5,
            "lrm": 1.0,
            "tokens_s": 1635123.0,
            "total": 21400,
            "total_time": 210.0,
        },
    ),
    (
        "| epoch 003 | loss 2446.096 | nll_loss 0.000 | ppl 1.00 | wps 1.7086e+07 | ups 24.0 | wpb 630522 | bsz 22 | num_updates 629 | lr 0.00138119 | gnorm 18638.304 | clip 100% | oom 0 | loss_scale 8.000 | wall 78",
        {
            "bsz": 22,
            "clip": 100.0,
            "epoch": 3,
            "grad_norm": 18638.304,
            "iteration": 629,
            "learning_rate": 0.00138119,
            "loss": 2446.096,
            "loss_scale": 8.0,
            "nll_loss": 0.0,
            "oom": 0,
            "ppl": 1.0,
            "ups": 24.0,
            "wall": 78,
            "wpb": 630522,
            "wps": 17086000.0,
        },
    ),
    (
        '2021-08-13 14:59:32 | INFO | train_inner | {"epoch": 1, "update": 0.004, "loss": "20.714", "wps": "0", "num_updates": "1", "lr": "2e-05", "gnorm": "20.751", "loss_scale": "4", "wall": "105"}',
        {
            "epoch": 1,
            "epoch_update": 0.004,
            "fairseq_log": "train_inner",
            "grad_norm": 20.751,
            "iteration": 1,
            "learning_rate": 2e-05,
            "loss": 20.714,
            "loss_scale": 4.0,
            "wall": 105,
            "wps": 0.0,
        },
    ),
    (
        '2021-08-13 14:59:32 | INFO | train_inner | {"epoch": 1, "update": 0.004, "loss": null, "num_updates": "2"}',
        {"epoch": 1, "epoch_update": 0.004, "fairseq_log": "train_inner", "iteration": 2},
    ),
    (
        "NOTE: gradient overflow detected, ignoring gradient, setting loss scale to: 32.0",
        {"loss_scale": 32.0},
    ),
    (
        "01/02/2022 23:11:34 - INFO - Epoch: [1], step: [100], lr: 0.000010, batch_loss: 0.0433, avg_loss: 0.1151",
        {
            "avg_loss": 0.1151,
            "batch_loss": 0.0433,
            "epoch": 1,
            "iteration": 100,
            "learning_rate": 1e-05,
        },
    ),
    (
        "2021-11-24 09:08:13 [INFO]\t[TRAIN] epoch: 105, iter: 38950/80000, loss: 0.4061, lr: 0.005485, batch_cost: 1.1244, reader_cost: 0.00017, ips: 1.7788 samples/sec | ETA 12:49:15",
        {
            "batch_cost": 1.1244,
            "epoch": 105,
            "eta_s": 46155.0,
            "ips": 1.7788,
            "iteration": 38950,
            "learning_rate": 0.005485,
            "loss": 0.4061,
            "reader_cost": 0.00017,
            "total": 80000,
        },
    ),
    (
        "[2021/05/05 19:15:24] root INFO: acc:0.2392874337987482",
        {"acc": 0.2392874337987482},
    ),
    (
        '[TimeInfo: *** Aborted at 1649739461 (unix time) try "date -d @1649739461" ***]',
        {"aborted_at": 1649739461},
    ),
    (
        "2022-05-15 22:14:40,334 Node[0] Epoch[1] Batch [320-340]\tSpeed: 11941.69 samples/sec\taccuracy=nan",
        {"accuracy": float("nan"), "batch": 340, "epoch": 1, "samples_per_second": 11941.69},
    ),
    (
        "2022-05-15 22:14:40,334 Node[0] Epoch[1] Time cost=101.5",
        {"epoch": 1, "time_cost_s": 101.5},
    ),
    (
        "TRAIN [1][280/1938]\tTime 0.271 (0.143)\tData 1.58e-04 (1.11e-03)\tTok/s 109688 (100432)\tLoss/tok 3.7194 (3.4544)\tLR 2.000e-03",
        {
            "batch": 280,
            "data_s": 0.000158,
            "data_s_avg": 0.00111,
            "epoch": 1,
            "learning_rate": 0.002,
            "loss_per_token": 3.7194,
            "loss_per_token_avg": 3.4544,
            "split": "TRAIN",
            "time_s": 0.271,
            "time_s_avg": 0.143,
            "tokens_s": 109688.0,
            "tokens_s_avg": 100432.0,
            "total": 1938,
        },
    ),
    (
        "{'training_steps': 7638, 'average_loss': 2.04, 'step_loss': 1.11, 'learning_rate': 0.00036, 'seq/s': 357.9, 'global_steps': 1264, 'timestamp': 1593153746.7}",
        {
            "average_loss": 2.04,
            "global_steps": 1264,
            "iteration": 7638,
            "learning_rate": 0.00036,
            "sequences_per_second": 357.9,
            "step_loss": 1.11,
        },
    ),
    (
        "2023-05-05 00:23:25,858 maskrcnn_benchmark.trainer INFO: eta: 0:48:44  iter: 50  time: 0.0651 (0.0732)  data: 0.0001 (0.0070)  loss: 1.4195 (2.3515)  lr: 0.080000  max mem: 5318",
        {
            "data_s": 0.0001,
            "data_s_avg": 0.007,
            "eta_s": 2924.0,
            "iteration": 50,
            "learning_rate": 0.08,
            "loss": 1.4195,
            "loss_avg": 2.3515,
            "max_mem": 5318,
            "time_s": 0.0651,
            "time_s_avg": 0.0732,
        },
    ),
    (
        "Epoch: [0]  [ 20/914]  eta: 0:04:12    time: 0.2501  data: 0.0002  max mem: 29302",
        {
            "batch": 20,
            "data_s": 0.0002,
            "epoch": 0,
            "eta_s": 252.0,
            "max_mem": 29302,
            "time_s": 0.2501,
            "total": 914,
        },
    ),
    (
        "[2025-12-31 12:10:41,752870][I][ezpz/dist:1774:setup_torch] ['x1921c0s3b0n0'][device='xpu'][node=0/1][rank=06/23]...",
        {"device": "xpu", "global_rank": 6, "node": 0},
    ),
    (
        "[2025-12-31 12:12:41,752870][I][examples/fsdp:400:fsdp_main] epoch=1 dt=0.5 train_loss=0.25 loss/mean=0.5",
        {"dt": 0.5, "epoch": 1, "loss/mean": 0.5, "train_loss": 0.25},
    ),
    (
        "[smciserver:227  :0:227] Caught signal 11 (Segmentation fault: address not mapped to object at address 0x28)",
        {"signal_number": 11, "signal_text": "Segmentation fault"},
    ),
    (
        "=== Straggler Report at Step 10 ===",
        {"iteration": 10},
    ),
    (
        "Min: 9.17ms, Max: 10.12ms, Avg: 9.55ms, Slowdown: 1.10x",
        {
            "slowdown": 1.1,
            "straggler_avg_ms": 9.55,
            "straggler_max_ms": 10.12,
            "straggler_min_ms": 9.17,
        },
    ),
    (
        "Rank 0: 9.98ms",
        {"straggler_ms": 9.98, "straggler_rank": 0},
    ),
    (
        "[Sun Feb 23 16:24:18 2025] NVRM: Xid (PCI:0000:9b:00): 119, pid=2024380, name=nvidia-smi, Timeout after 6s of waiting",
        {"pci_bus": "0000:9b:00", "pid": 2024380, "process": "nvidia-smi", "xid": 119},
    ),
    (
        "NVRM: Xid (PCI:0000:9b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
        {"pci_bus": "0000:9b:00", "process": "<unknown>", "xid": 79},
    ),
    (
        "[ 12.5] Out of memory: Killed process 4242 (python) total-vm:1024kB, anon-rss:512kB, file-rss:0kB",
        {"anon_rss_kib": 512, "pid": 4242, "process": "python", "total_vm_kib": 1024},
    ),
    (
        "2,95,24564,9104,15107,2025/06/15 21:31:36.264",
        {
            "gpu_index": 2,
            "gpu_utilization": 95.0,
            "memory_free_mib": 15107.0,
            "memory_total_mib": 24564.0,
            "memory_used_mib": 9104.0,
        },
    ),
    (
        " busbw: 44.2470  Gbps",
        {"busbw_gbps": 44.247},
    ),
    (
        " algo throughput: 58668924615.5916 bps, 58.6689 Gbps",
        {"algo_bps": 58668924615.5916},
    ),
    (
        "2026-11-29 13:58:03,507 INFO train train_ddp.py:41 iteration 0 loss 22.7682 step_time 88.82 ms",
        {"iteration": 0, "loss": 22.7682, "step_time_ms": 88.82},
    ),
    (
        "step=12 loss=1.5 grad_norm=0.25",
        {"grad_norm": 0.25, "iteration": 12, "loss": 1.5},
    ),
    (
        "val loss: 2.5 at the end",
        {},
    ),
    (
        "step 3 of the installation",
        {},
    ),
    (
        'print(f"step:{step+1}/{args.num_iterations} train_loss:{x} train_time:{t}ms step_avg:{y}ms")',
        {},
    ),
    (
        "train: 50%|#####     | 20/40 [00:20<?, ?it/s]",
        {
            "bar_at": 20,
            "bar_elapsed_s": 20.0,
            "bar_name": "train",
            "bar_percent": 50,
            "bar_total": 40,
            "bar_unit": "it/s",
        },
    ),
    (
        "Downloading: 100%|##########| 1.2M/1.2M [00:01<00:00, 1.2MB/s]",
        {
            "bar_at": "1.2M",
            "bar_elapsed_s": 1.0,
            "bar_eta_s": 0.0,
            "bar_name": "Downloading",
            "bar_percent": 100,
            "bar_rate": 1.2,
            "bar_total": "1.2M",
            "bar_unit": "MB/s",
        },
    ),
    (
        "AssertionError",
        {"exception": "AssertionError"},
    ),
    (
        "[2021-06-10 20:47:50,329] [INFO] [utils.py:628:see_memory_usage] MA 1.5 GB         Max_MA 2.5 GB         CA 3.5 GB         Max_CA 4 GB ",
        {
            "max_mem_allocated_gb": 2.5,
            "max_mem_cached_gb": 4.0,
            "mem_allocated_gb": 1.5,
            "mem_cached_gb": 3.5,
        },
    ),
    (
        "Test:  [ 0/78]  eta: 0:00:37  model_time: 0.4703 (0.4704)  evaluator_time: 0.0040 (0.0041)  time: 0.4750  data: 0.0005  max mem: 24815",
        {
            "batch": 0,
            "data_s": 0.0005,
            "eta_s": 37.0,
            "evaluator_time": 0.0040,
            "evaluator_time_avg": 0.0041,
            "max_mem": 24815,
            "model_time": 0.4703,
            "model_time_avg": 0.4704,
            "time_s": 0.4750,
            "total": 78,
        },
    ),
    (
        "node076:248595:249062 [5] NCCL INFO Init timings: rank 5 nranks 8 total 1.34 (kernels 0.35, bootstrap 0.80)",
        {"nccl_dev": 5, "nccl_init_s": 1.34, "nccl_nranks": 8, "nccl_rank": 5, "pid": 248595},
    ),
    (
        "n1:10:11 [0] NCCL INFO comm 0x5f rank 11 nRanks 16 nNodes 2 localRanks 8 localRank 3 MNNVL 0",
        {
            "nccl_comm": "0x5f",
            "nccl_dev": 0,
            "nccl_local_rank": 3,
            "nccl_nnodes": 2,
            "nccl_nranks": 16,
            "nccl_rank": 11,
            "pid": 10,
        },
    ),
    (
        "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error",
        {"pci_bus": "0000:c1:00.0", "sxid": 12028},
    ),
    (
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0,oom_memcg=/kubepods/pod1,task_memcg=/kubepods/pod1/c,task=python,pid=4242,uid=0",
        {
            "oom_cgroup": "/kubepods/pod1",
            "oom_constraint": "CONSTRAINT_MEMCG",
            "pid": 4242,
            "process": "python",
        },
    ),
    (
        "python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
        {"gfp_mask": "0xcc0", "process": "python3"},
    ),
    (
        "mce: [Hardware Error]: CPU 12: Machine Check: 0 Bank 7: cc003fc000010090",
        {"cpu": 12, "mce_bank": 7, "mce_status": "cc003fc000010090"},
    ),
    (
        "EDAC MC2: 1 CE memory read error on CPU_SrcID#0_MC#2_Chan#1_DIMM#0 (channel:1 slot:0 page:0x1)",
        {
            "dimm": "CPU_SrcID#0_MC#2_Chan#1_DIMM#0",
            "edac_controller": 2,
            "edac_errors": 1,
            "edac_kind": "CE",
        },
    ),
    (
        "pcieport 0000:16:01.0: AER: Corrected error received: 0000:17:00.0",
        {"pci_bus": "0000:17:00.0", "pcie_severity": "Corrected"},
    ),
    (
        "pcieport 0000:16:01.0: AER: Uncorrectable (Fatal) error message received from 0000:17:00.0",
        {"pci_bus": "0000:17:00.0", "pcie_severity": "Uncorrectable (Fatal)"},
    ),
    (
        "mlx5_core 0000:29:00.0 eth2: Link down",
        {"interface": "eth2", "link": "down"},
    ),
    (
        "ice 0000:31:00.0 eth0: NIC Link is Up 100 Gbps Full Duplex",
        {"interface": "eth0", "link": "Up"},
    ),
    (
        "mlx5_core 0000:29:00.0: Port module event: module 0, Cable unplugged",
        {"port_event": "Cable unplugged", "port_module": 0},
    ),
    (
        "INFO: task python:4242 blocked for more than 122 seconds.",
        {"blocked_s": 122, "pid": 4242, "process": "python"},
    ),
    (
        "watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [python:4242]",
        {"cpu": 3, "pid": 4242, "process": "python", "stuck_s": 22},
    ),
    (
        "python[4242]: segfault at 10 ip 00007f3a2c1b3e4d sp 00007ffd0a0b0c0d error 4 in libcuda.so.550.54.15[7f3a2c000000+1a00000]",
        {
            "pid": 4242,
            "process": "python",
            "segfault_at": "10",
            "segfault_in": "libcuda.so.550.54.15",
        },
    ),
    (
        "nfs: server fs-01 not responding, still trying",
        {"nfs_server": "fs-01"},
    ),
]
