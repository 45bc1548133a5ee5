"""The table of `names`: data only.

A row: (stable name, unit, better, whether -1 means "not measured", what it is, written names). A written
name is folded; `*N` behind it is the factor into the unit. NO_SERIES are numbers that presets read and
that are no course of anything: identities, sizes of a launch, parts of an event.
"""

from __future__ import annotations

# Which part of the model: these keys in a line's metadata are dimensions of its values.
DIMENSION_KEYS = frozenset(
    "layer module neuron part head expert split param_group stage tensor".split()
)

Row = tuple[str, str, str, bool, str, str]

METRICS: tuple[Row, ...] = (
    # --- losses -----------------------------------------------------------------------------------
    (
        "loss", "", "down", False, "training loss",
        "lm_loss train_loss train/loss reduced_train_loss step_loss batch_loss "
        "training_loss train_loss_step loss/train/total loss/mean train/cross_entropy_loss "
        "train/crossentropyloss loss_metrics/global_avg_loss train/samples/train_loss "
        "train/lm_loss learning/loss lm_loss_value loss_per_token loss/tok train/loss_step train_loss_epoch",
    ),
    ("loss_max", "", "down", False, "largest loss of the ranks", "loss_metrics/global_max_loss"),
    ("loss_avg", "", "down", False, "running mean of the loss, as the framework has it",
     "average_loss avg_loss loss_per_token_avg"),
    ("validation_loss", "", "down", False, "loss on held-out data",
     "val_loss eval_loss eval/loss validation/loss val/loss valid_loss lm_loss_validation"),
    ("nll_loss", "", "down", False, "negative log likelihood", ""),
    ("z_loss", "", "down", False, "z-loss", "zloss train/z_loss"),
    ("mtp_loss", "", "down", False, "multi-token prediction loss", "mtp_1_loss"),
    ("load_balancing_loss", "", "down", False, "auxiliary loss of mixture-of-experts routing",
     "moe_lb_loss aux_loss moe_aux_loss learning/moe_lb_loss"),
    ("perplexity", "", "down", False, "perplexity", "ppl lm_loss_ppl train/perplexity"),
    ("validation_perplexity", "", "down", False, "perplexity on held-out data",
     "val_ppl eval/perplexity lm_loss_validation_ppl"),
    ("accuracy", "", "up", False, "accuracy", "acc train_acc train/accuracy metrics/c4_en/accuracy"),
    ("validation_accuracy", "", "up", False, "accuracy on held-out data",
     "val_acc eval_accuracy val_accuracy"),
    # --- optimiser --------------------------------------------------------------------------------
    ("grad_norm", "", "", True, "norm of the gradient", "gnorm gradient_norm train/grad_norm "
     "learning/grad_norm global_grad_norm total_norm l2_grad_norm"),
    ("params_norm", "", "", True, "norm of the parameters",
     "param_norm learning/param_norm train/params_norm"),
    ("num_zeros", "", "", True, "gradients that are zero", "num_zeros_in_grad"),
    ("learning_rate", "", "", False, "learning rate",
     "lr train/learning_rate train/lr train/samples/lr optim/learning_rate_group0 "
     "learning/current_learning_rate"),
    ("learning_rate_multiplier", "", "", False, "factor on the learning rate", "lrm"),
    ("loss_scale", "", "", True, "scale of the loss in mixed precision",
     "grad_scale train/samples/loss_scale"),
    (
        "attempted_loss_scale",
        "",
        "",
        True,
        "scale of the loss with which a step overflowed",
        "",
    ),
    ("grad_clip_percent", "%", "down", False, "share of updates whose gradient was clipped", "clip"),
    ("skipped_iterations", "", "down", False, "iterations that were skipped", "skipped "
     "number_of_skipped_iterations"),
    ("nan_iterations", "", "down", False, "iterations whose loss was NaN", "nan "
     "number_of_nan_iterations"),
    ("weight_decay", "", "", False, "weight decay", "wd"),
    # --- progress ---------------------------------------------------------------------------------
    ("epoch", "", "", False, "epoch", "epoch_num"),
    ("epoch_update", "", "", False, "epoch with its fraction", ""),
    ("consumed_samples", "", "", False, "samples since the start", "samples_count"),
    ("consumed_tokens", "", "", False, "tokens since the start", "time/token n_tokens_seen"),
    ("batch_size", "", "", False, "samples of an iteration, over all ranks",
     "global_batch_size bsz self.gbs"),
    ("tokens_per_batch", "", "", False, "tokens of an iteration", "wpb total_weights"),
    # --- time -------------------------------------------------------------------------------------
    (
        "iteration_time_ms", "ms", "down", True, "time of an iteration",
        "elapsed_ms elapsed_s*1000 iter_s*1000 iter_time_s*1000 step_time_ms dt_ms dt*1000 "
        "train_step_timing*1000 train_step_timing_in_s*1000 train_step_time*1000 "
        "iteration_time*1000 seconds*1000 time_s*1000 batch_cost*1000 step_avg_ms train_time*1000 "
        "time_metrics/end_to_end_s*1000 perf/step_time_seconds*1000 step_time_s*1000 "
        "elapsed_time_per_iteration_ms elapsed_time_per_iteration_s*1000",
    ),
    ("iteration_time_avg_ms", "ms", "down", True, "its running mean, as the framework has it",
     "elapsed_ms_avg time_s_avg*1000"),
    ("data_time_ms", "ms", "down", True, "waiting for data",
     "data_s*1000 reader_cost*1000 time_metrics/data_loading_s*1000 data_time_s*1000 "
     "batch_generator_ms data_wait_ms data_wait"),
    ("data_time_avg_ms", "ms", "down", True, "its running mean, as the framework has it",
     "data_s_avg*1000"),
    ("forward_ms", "ms", "down", True, "forward pass", "forward forward_compute_ms model_time*1000"),
    ("forward_avg_ms", "ms", "down", True, "its running mean, as the framework has it",
     "model_time_avg*1000"),
    ("backward_ms", "ms", "down", True, "backward pass", "backward backward_compute_ms "
     "train_backward_timing*1000"),
    ("optimizer_ms", "ms", "down", True, "optimiser step", "optimizer optimizer_step"),
    ("checkpoint_ms", "ms", "down", True, "writing a checkpoint", "checkpoint save_checkpoint_ms"),
    ("all_reduce_ms", "ms", "down", True, "reducing gradients",
     "backward_params_all_reduce_ms all_grads_sync_ms"),
    ("evaluation_ms", "ms", "down", True, "an evaluation",
     "validation_step_time*1000 eval_runtime*1000 evaluator_time*1000"),
    ("evaluation_avg_ms", "ms", "down", True, "its running mean, as the framework has it",
     "evaluator_time_avg*1000"),
    ("epoch_time_s", "s", "down", True, "time of an epoch", "time_cost_s"),
    ("elapsed_total_s", "s", "", True, "time since the start",
     "train_time_ms*0.001 wall bar_elapsed_s total_time*60"),
    ("remaining_s", "s", "", True, "time that is left, as the framework guesses", "eta_s bar_eta_s"),
    ("straggler_ms", "ms", "down", True, "time of the slowest rank", "straggler_max_ms"),
    ("straggler_avg_ms", "ms", "down", True, "mean time of the ranks in a straggler report", ""),
    ("straggler_min_ms", "ms", "down", True, "time of the fastest rank", ""),
    ("straggler_ratio", "", "down", True, "slowest rank over the mean", "slowdown"),
    # --- throughput -------------------------------------------------------------------------------
    (
        "tokens_per_s", "1/s", "up", True,
        "tokens per second; per device where the framework prints that",
        "tokens_s tps wps throughput_tps throughput_token/sec/gpu tok/s tok/sec tok_s tokens/s/device "
        "tokens_per_gpu_tokens/s/gpu tgs_tokens/gpu/second perf/per_device_tokens_per_sec tokens_per_gpu tokens_per_second",
    ),
    ("tokens_avg_per_s", "1/s", "up", True, "its running mean, as the framework has it",
     "tokens_s_avg"),
    (
        "tokens_last_per_s",
        "1/s",
        "up",
        True,
        "tokens per second of the last iteration alone",
        "tgs/last_tgs_1",
    ),
    ("samples_per_s", "1/s", "up", True, "samples per second",
     "samples_per_second sequences_per_second ips train_samples_per_second samples/sec seq/s throughput"),
    ("samples_avg_per_s", "1/s", "up", True, "its running mean, as the framework has it",
     "samples_per_second_avg"),
    ("iterations_per_s", "1/s", "up", True, "iterations per second",
     "ups bar_rate train_steps_per_second steps_per_second"),
    ("tflops_per_device", "TFLOP/s", "up", True, "floating-point operations of a device",
     "tflops throughput_tflops flops_per_gpu*1e-12 throughput_per_gpu_tflop/s/gpu tflop/s/device "
     "perf/per_device_tflops_per_sec"),
    ("tflops_avg_per_device", "TFLOP/s", "up", True, "its running mean, as the framework has it",
     "throughput_tflops_avg"),
    ("mfu_percent", "%", "up", True, "share of the device's peak", "mfu bf16_mfu"),
    ("bus_bandwidth_gbps", "GB/s", "up", True, "bandwidth of a collective", "busbw_gbps"),
    ("algorithm_bandwidth_bps", "B/s", "up", True, "bytes of a collective over its time", "algo_bps"),
    # --- memory -----------------------------------------------------------------------------------
    ("memory_allocated_gib", "GiB", "down", True, "memory of the device that tensors have",
     "mem_allocated_gb allocated_mb*0.0009765625 gpu_memory memory_used_mib*0.0009765625 "
     "mem_allocated_bytes*9.31322574615478515625e-10"),
    ("memory_max_gib", "GiB", "down", True, "its largest",
     "max_mem_allocated_gb max_allocated_mb*0.0009765625 max_mem*0.0009765625 memory_gib "
     "system/peak_gpu_memory_mb*0.0009765625 memory/max_active_gib "
     "mem_max_allocated_bytes*9.31322574615478515625e-10"),
    ("memory_percent", "%", "down", True, "share of the device's memory in use",
     "memory_pct memory/max_active gpu.memory_percent"),
    ("memory_reserved_gib", "GiB", "down", True, "memory that the allocator keeps",
     "mem_cached_gb reserved_mb*0.0009765625 memory/max_reserved_gib mem_reserved_bytes*9.31322574615478515625e-10"),
    ("memory_reserved_max_gib", "GiB", "down", True, "its largest", "max_mem_cached_gb max_reserved_mb*0.0009765625"),
    ("memory_free_gib", "GiB", "up", True, "free memory of the device",
     "memory_free_mib*0.0009765625"),
    ("memory_total_gib", "GiB", "", True, "memory of the device", "memory_total_mib*0.0009765625"),
    ("hip_memory_gib", "GiB", "down", True, "memory of the device as HIP tells it", "hip_mem_usage "
     "rocm_mem_usage"),
    # --- device -----------------------------------------------------------------------------------
    ("gpu_utilization_percent", "%", "", True, "time in which the device did something",
     "gpu_utilization gpu_util utilization.gpu gpu.utilization_percent"),
    ("energy_j", "J", "down", True, "energy of an iteration on a device", ""),
    ("power_w", "W", "", True, "power of a device", "gpu_power_w power.draw gpu.power_w"),
    ("ecc_errors", "", "down", False, "errors of memory that a controller has counted", "edac_errors"),
    ("out_of_memory", "", "down", False, "steps that ran out of memory", "oom"),
    ("live_slice_count", "", "up", False, "slices that take part", ""),
)  # fmt: skip

NO_SERIES = frozenset(
    """
    iteration step pid xid sxid exit_code signal_number failed_rank failed_local_rank local_rank
    global_rank world_size rank node gpu_id gpu_index oom_gpu cuda_dev device_id port_module cpu
    nccl_dev nccl_rank nccl_nranks nccl_local_rank nccl_nnodes nccl_code nccl_init_s ring_id
    ib_len ib_opcode ib_status ib_vendor_err pg_id pg_rank seq_num last_enqueued last_completed
    numel_in numel_out timeout_ms ran_ms op_id collective_seq_id is_p2p overflow_rank straggler_rank
    oom_allocated_bytes oom_capacity_bytes oom_free_bytes oom_wanted_bytes oom_kills
    anon_rss_kib total_vm_kib blocked_s stuck_s mce_bank edac_controller
    aborted_at bar_at bar_total bar_percent v_num total batch micro_step mllog_step global_step
    global_steps train_samples value cuda_graph ts_claimed
    """.split()
)
