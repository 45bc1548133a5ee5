"""Devices: their memory, their faults, their links, and what drivers say."""

from __future__ import annotations

from tests.client.failures.case import ALL, ANYBODY, Failure, at_start, labelled, one, training

_ILLEGAL = """\
torch.AcceleratorError: CUDA error: an illegal memory access was encountered
CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.
For debugging consider passing CUDA_LAUNCH_BLOCKING=1
Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.
"""

CASES = (
    Failure(
        "cuda_oom",
        "oom_device",
        3,
        one(
            3,
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.44 GiB. GPU 3 has a total "
            "capacity of 79.15 GiB of which 1.02 GiB is free. Including non-PyTorch memory, this "
            "process has 78.12 GiB memory in use.",
        ),
    ),
    Failure(
        "hip_oom",
        "oom_device",
        5,
        one(
            5,
            "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 896.00 MiB. GPU 5 has a total "
            "capacity of 63.98 GiB of which 410.00 MiB is free.",
        ),
    ),
    Failure(
        "xla_oom",
        "oom_device",
        ALL,
        at_start(
            "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate "
            "21474836480 bytes.",
            code="state = init(key)",
        ),
    ),
    Failure(
        "tpu_hbm",
        "oom_device",
        ALL,
        at_start(
            "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. "
            "Ran out of memory in memory space hbm. Used 18.32G of 15.48G hbm. Exceeded hbm capacity "
            "by 2.84G.",
        ),
    ),
    Failure(
        "xla_buffer",
        "oom_device",
        2,
        one(
            2,
            "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Error allocating device buffer: "
            "Attempting to allocate 1.50G. That was not possible. There are 712.00M free.; (0x0x0_HBM0)",
        ),
    ),
    Failure(
        "nccl_oom",
        "oom_device",
        6,
        training(
            "6: gpu-01:71234:72001 [2] misc/../include/alloc.h:223 NCCL WARN Cuda failure 2 "
            "'out of memory'\n"
            + labelled(
                {
                    6: "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/"
                    "c10d/NCCLUtils.hpp:268, unhandled cuda error (run with NCCL_DEBUG=INFO for "
                    "details), NCCL version 2.21.5\nncclUnhandledCudaError: Call to CUDA function failed."
                }
            )
            + "\nsrun: error: gpu-01: task 6: Exited with exit code 1"
        ),
    ),
    Failure(
        "cublas_alloc",
        "oom_device",
        1,
        one(
            1,
            "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        ),
    ),
    Failure("illegal_access", "crash_signal", 4, one(4, _ILLEGAL)),
    Failure(
        "amd_fault",
        "crash_signal",
        2,
        training(
            "2: Memory access fault by GPU node-4 (Agent handle: 0x55f1c8a3d2b0) on address "
            "0x7f2a4c000000. Reason: Page not present or supervisor privilege.\n"
            "srun: error: gpu-00: task 2: Aborted (core dumped)"
        ),
    ),
    Failure(
        "amd_hang",
        "hardware",
        7,
        training(
            "7: HW Exception by GPU node-9 (Agent handle: 0x5590aa12f0c0) reason :GPU Hang\n"
            "srun: error: gpu-01: task 7: Aborted (core dumped)"
        ),
    ),
    Failure(
        "hsa",
        "hardware",
        1,
        training(
            "1: :0:rocdevice.cpp            :2881: 93045822 us: [pid:4711 tid:0x7f11] Callback: Queue "
            "0x7f1d20000000 aborting with error : HSA_STATUS_ERROR_EXCEPTION: An HSAIL operation resulted "
            "in a hardware exception. code: 0x1016\nsrun: error: gpu-00: task 1: Aborted (core dumped)"
        ),
    ),
    Failure(
        "ecc",
        "hardware",
        0,
        one(0, "RuntimeError: CUDA error: uncorrectable ECC error encountered"),
    ),
    Failure(
        "nvlink",
        "hardware",
        6,
        one(
            6,
            "RuntimeError: CUDA error: uncorrectable NVLink error detected during the execution",
        ),
    ),
    Failure(
        "xid_nvlink",
        "hardware",
        ANYBODY,
        training(
            "[Tue Mar  4 10:00:57 2025] NVRM: Xid (PCI:0000:4e:00): 74, pid='<unknown>', "
            "name=<unknown>, NVLink: fatal error detected on link 6(0x10000, 0x0, 0x0, 0x0)"
        ),
    ),
    Failure(
        "off_the_bus",
        "hardware",
        ANYBODY,
        training("[ 8123.451209] NVRM: GPU 0000:1b:00.0: GPU has fallen off the bus."),
    ),
    Failure(
        "gpu_lost",
        "hardware",
        ANYBODY,
        training(
            "Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost.  Reboot the "
            "system to recover this GPU"
        ),
    ),
    Failure(
        "tpu_halted",
        "hardware",
        3,
        one(
            3,
            "jaxlib.xla_extension.XlaRuntimeError: INTERNAL: Accelerator device halted prematurely, "
            "perhaps due to an on-device check-failure. Node 0 halted unexpectedly at tag:pc TensorCore",
        ),
    ),
    Failure(
        "no_kernel_image",
        "import_or_config",
        ALL,
        at_start(
            "RuntimeError: CUDA error: no kernel image is available for execution on the device"
        ),
    ),
    Failure(
        "old_driver",
        "import_or_config",
        ALL,
        at_start(
            "RuntimeError: The NVIDIA driver on your system is too old (found version 11040). Please "
            "update your GPU driver by downloading and installing a new version"
        ),
    ),
    Failure(
        "bad_ordinal",
        "import_or_config",
        ALL,
        at_start(
            "RuntimeError: CUDA error: invalid device ordinal", code="torch.cuda.set_device(r)"
        ),
    ),
    Failure(
        "device_assert",
        "unknown",
        5,
        one(5, "RuntimeError: CUDA error: device-side assert triggered"),
    ),
    Failure(
        "cudnn",
        "unknown",
        2,
        one(2, "RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"),
    ),
)
