"""Programs: what they import, are told, read and compute; and crashes."""

from __future__ import annotations

from tests.client.failures.case import (
    ALL,
    ANYBODY,
    Failure,
    at_start,
    everybody,
    labelled,
    one,
    traceback,
    training,
)

_SYMBOL = (
    "ImportError: /opt/conda/lib/python3.11/site-packages/flash_attn_2_cuda.cpython-311-x86_64-linux-"
    "gnu.so: undefined symbol: _ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringE"
)
_SHM = (
    "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared "
    "memory (shm).\n"
)


def crashed(rank: int, said: str, end: str) -> str:
    """A process that a signal ended; srun's word of it."""
    return training(
        f"{labelled({rank: said})}\nsrun: error: gpu-{rank // 4:02d}: task {rank}: {end}"
    )


CASES = (
    Failure(
        "undefined_symbol", "import_or_config", ALL, at_start(_SYMBOL, code="import flash_attn")
    ),
    Failure(
        "glibc_version",
        "import_or_config",
        ALL,
        at_start(
            "ImportError: /lib/x86_64-linux-gnu/libstdc++.so.6: version `GLIBCXX_3.4.30' not found "
            "(required by /opt/apex/amp_C.so)"
        ),
    ),
    Failure(
        "arguments",
        "import_or_config",
        ALL,
        everybody(
            "usage: pretrain.py [-h] [--hidden-size HIDDEN_SIZE]\n"
            "pretrain.py: error: unrecognized arguments: --micro-batchsize 4"
        ),
    ),
    Failure(
        "yaml",
        "import_or_config",
        ALL,
        at_start("yaml.scanner.ScannerError: mapping values are not allowed here", code="load(f)"),
    ),
    Failure(
        "hydra",
        "import_or_config",
        ALL,
        at_start("omegaconf.errors.ConfigAttributeError: Key 'lr_min' is not in struct"),
    ),
    Failure(
        "lightning_devices",
        "import_or_config",
        ALL,
        at_start(
            "lightning.fabric.utilities.exceptions.MisconfigurationException: You requested gpu: "
            "[0, 1, 2, 3, 4, 5, 6, 7]\n But your machine only has: [0, 1, 2, 3]"
        ),
    ),
    Failure(
        "tokenizer",
        "import_or_config",
        ALL,
        at_start(
            "Exception: data did not match any variant of untagged enum ModelWrapper at line 757281 "
            "column 3",
            code="AutoTokenizer.from_pretrained(path)",
        ),
    ),
    Failure(
        "gated_repo",
        "import_or_config",
        ALL,
        at_start(
            "huggingface_hub.errors.GatedRepoError: 401 Client Error. (Request ID: Root=1-67c6)\n\n"
            "Cannot access gated repo for url https://huggingface.co/org/model/resolve/main/config.json."
        ),
    ),
    Failure(
        "offline_hub",
        "import_or_config",
        ALL,
        at_start(
            "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't "
            "find them in the cached files."
        ),
    ),
    Failure(
        "state_dict",
        "import_or_config",
        ALL,
        at_start(
            "RuntimeError: Error(s) in loading state_dict for GPTModel:\n"
            "\tsize mismatch for embedding.weight: copying a param with shape torch.Size([50304, 768]) "
            "from checkpoint, the shape in current model is torch.Size([50257, 768])."
        ),
    ),
    Failure(
        "recursion_at_start",
        "import_or_config",
        ALL,
        at_start("RecursionError: maximum recursion depth exceeded while calling a Python object"),
    ),
    Failure("recursion", "unknown", 6, one(6, "RecursionError: maximum recursion depth exceeded")),
    Failure(
        "assertion",
        "unknown",
        2,
        one(2, "AssertionError: expected 4096 tokens, got 4095", code="f()"),
    ),
    Failure(
        "safetensors",
        "storage",
        ALL,
        at_start(
            "safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge",
            code="load_file(path)",
        ),
    ),
    Failure(
        "zip_archive",
        "storage",
        ALL,
        at_start(
            "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central "
            "directory",
            code="torch.load(path)",
        ),
    ),
    Failure(
        "pickle",
        "storage",
        3,
        labelled(
            {3: traceback("_pickle.UnpicklingError: invalid load key, 'v'.", code="torch.load(p)")}
        )
        + "\nsrun: error: gpu-00: task 3: Exited with exit code 1",
    ),
    Failure(
        "worker_bus_error",
        "data_loader",
        5,
        one(
            5,
            "RuntimeError: DataLoader worker (pid 40417) is killed by signal: Bus error. It is possible "
            "that dataloader's workers are out of shared memory. Please try to raise your shared memory "
            "limit.",
        ).replace("5: Traceback", f"5: {_SHM}5: Traceback", 1),
    ),
    Failure(
        "worker_exception",
        "data_loader",
        1,
        one(1, "RuntimeError: Caught UnicodeDecodeError in DataLoader worker process 3."),
    ),
    Failure(
        "bad_image",
        "data_loader",
        4,
        one(
            4,
            "PIL.UnidentifiedImageError: cannot identify image file <_io.BytesIO object at 0x7f0>",
        ),
    ),
    Failure(
        "bad_parquet",
        "data_loader",
        7,
        one(
            7,
            "pyarrow.lib.ArrowInvalid: Parquet magic bytes not found in footer. Either the file is "
            "corrupted or this is not a parquet file.",
        ),
    ),
    Failure(
        "worker_handles",
        "data_loader",
        0,
        one(0, "RuntimeError: received 0 items of ancdata", code="next(iterator)"),
    ),
    Failure(
        "loss_scale",
        "numeric",
        ALL,
        training(
            everybody(
                traceback(
                    "Exception: Current loss scale already at minimum - cannot decrease scale anymore. "
                    "Exiting run."
                )
            )
        ),
    ),
    Failure(
        "fairseq_scale",
        "numeric",
        ALL,
        training(
            everybody(
                traceback(
                    "FloatingPointError: Minimum loss scale reached (0.0001). Your loss is probably "
                    "exploding. Try lowering the learning rate"
                )
            )
        ),
    ),
    Failure(
        "megatron_nan",
        "numeric",
        3,
        one(
            3,
            "AssertionError: Rank 3: found NaN in local grad norm in backward pass before data-parallel "
            "communication collective. Device: 3, node: gpu-00",
        ),
    ),
    Failure(
        "lightning_nan",
        "numeric",
        ANYBODY,
        training(everybody(traceback("ValueError: The loss returned in `training_step` is nan."))),
    ),
    Failure(
        "anomaly",
        "numeric",
        6,
        one(6, "RuntimeError: Function 'MulBackward0' returned nan values in its 0th output."),
    ),
    Failure(
        "clip_grad",
        "numeric",
        ALL,
        training(
            everybody(
                traceback(
                    "RuntimeError: The total norm of order 2.0 for gradients from `parameters` is "
                    "non-finite, so it cannot be clipped."
                )
            )
        ),
    ),
    Failure(
        "jax_nan",
        "numeric",
        ALL,
        training(
            everybody(
                traceback("FloatingPointError: invalid value (nan) encountered in jit(train_step)")
            )
        ),
    ),
    Failure(
        "detected_nan",
        "numeric",
        ALL,
        training(
            everybody(
                traceback("lightning.pytorch.utilities.exceptions.MisconfigurationException: x")
            )
        ).replace(
            "lightning.pytorch.utilities.exceptions.MisconfigurationException: x",
            "ValueError: Detected nan and/or inf values in `head.weight`. Check your forward pass",
        ),
    ),
    Failure("segfault", "crash_signal", 2, crashed(2, "", "Segmentation fault (core dumped)")),
    Failure("sigbus", "crash_signal", 6, crashed(6, "", "Bus error (core dumped)")),
    Failure("sigill", "crash_signal", 1, crashed(1, "", "Illegal instruction (core dumped)")),
    Failure(
        "double_free",
        "crash_signal",
        3,
        crashed(3, "double free or corruption (!prev)", "Aborted (core dumped)"),
    ),
    Failure(
        "heap",
        "crash_signal",
        7,
        crashed(7, "malloc(): unsorted double linked list corrupted", "Aborted (core dumped)"),
    ),
    Failure(
        "smashing",
        "crash_signal",
        0,
        crashed(0, "*** stack smashing detected ***: terminated", "Aborted (core dumped)"),
    ),
    Failure(
        "faulthandler",
        "crash_signal",
        4,
        crashed(
            4,
            "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f7a1c7fe700 (most recent "
            'call first):\n  File "/workspace/data.py", line 90 in __next__',
            "Segmentation fault (core dumped)",
        ),
    ),
)
