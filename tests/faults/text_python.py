"""Python's own text: tracebacks as torch tags them, faulthandler, dead data loaders, lack of memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tests.faults.world import World

Frame = tuple[str, int, str, str]  # file, line, function, source
SITE = "/opt/venv/lib/python3.11/site-packages"


def traceback_lines(frames: list[Frame], error: str) -> Iterator[str]:
    """A traceback as Python 3.11 prints it, with carets under what failed."""
    yield "Traceback (most recent call last):"
    for file, line, function, source in frames:
        yield f'  File "{file}", line {line}, in {function}'
        if source:
            yield f"    {source}"
            if "(" in source and not file.startswith("<"):
                yield "    " + "^" * len(source)
    yield error


def tagged(w: World, rank: int, lines: Iterable[str]) -> list[str]:
    """torch's excepthook (since 2.2) writes [rankN]: before each line, once the group exists."""
    if w.scene.torch < "2.2":
        return list(lines)
    return [f"[rank{rank}]: {text}" if text else f"[rank{rank}]:" for text in lines]


_MEGATRON = "/workspace/megatron-lm/megatron/training/training.py"
_TITAN = "/workspace/torchtitan/torchtitan/train.py"
_LIGHTNING = f"{SITE}/lightning/pytorch"
# The ways of the frameworks from the script ("") to the step.
_WAYS: dict[str, list[Frame]] = {
    "megatron": [
        ("", 301, "<module>", "pretrain("),
        (_MEGATRON, 427, "pretrain", "iteration, num_floating_point_operations_so_far = train("),
        (
            _MEGATRON,
            1382,
            "train",
            "train_step(forward_step_func, data_iterator, model, optimizer)",
        ),
    ],
    "titan": [
        (_TITAN, 638, "<module>", "trainer.train()"),
        (_TITAN, 541, "train", "self.train_step(data_iterator)"),
    ],
    "nemo": [
        ("", 88, "<module>", "main()"),
        (
            f"{_LIGHTNING}/trainer/call.py",
            48,
            "_call_and_handle_interrupt",
            "return trainer_fn(*args, **kwargs)",
        ),
        (
            f"{_LIGHTNING}/loops/training_epoch_loop.py",
            250,
            "advance",
            "batch_output = self.automatic_optimization.run(optimizers[0], batch_idx, kwargs)",
        ),
    ],
}
_OWN_WAY: list[Frame] = [
    ("", 96, "<module>", 'if __name__ == "__main__": main()'),
    ("", 74, "main", "train_step(model, batch)"),
]


def script_frames(w: World, *inner: Frame) -> list[Frame]:
    """The script's way from its first line to what failed."""
    way = _WAYS.get(w.scene.framework, _OWN_WAY)
    return [(file or w.scene.script, line, name, source) for file, line, name, source in way] + [
        *inner
    ]


BACKWARD: list[Frame] = [
    (f"{SITE}/torch/_tensor.py", 623, "backward", "torch.autograd.backward("),
    (f"{SITE}/torch/autograd/__init__.py", 395, "backward", "_engine_run_backward("),
    (
        f"{SITE}/torch/autograd/graph.py",
        979,
        "_engine_run_backward",
        "return Variable._execution_engine.run_backward(  # Calls into the C++ engine to run the backward pass",
    ),
]


def device_memory(w: World, rank: int) -> list[str]:
    """CUDA out of memory, in the words of some version."""
    local, want = w.topo.local(rank), float(w.rng.choice([0.5, 1.0, 2.25, 3.95, 7.81, 16.0]))
    free = float(w.rng.uniform(5, 900))
    used, kept = float(w.rng.uniform(70, 78)), float(w.rng.uniform(0.2, 4))
    frames = script_frames(
        w, ("/workspace/model/layers.py", 212, "forward", "hidden = self.mlp(hidden)")
    )
    if w.chance(0.2):
        error = (
            f"RuntimeError: CUDA out of memory. Tried to allocate {want:.2f} GiB (GPU {local}; 79.15 GiB "
            f"total capacity; {used:.2f} GiB already allocated; {free:.2f} MiB free; {used + kept:.2f} GiB "
            "reserved in total by PyTorch) If reserved memory is >> allocated memory try setting "
            "max_split_size_mb to avoid fragmentation.  See documentation for Memory Management and "
            "PYTORCH_CUDA_ALLOC_CONF"
        )
    else:
        kind = w.pick(
            "torch.OutOfMemoryError", "torch.OutOfMemoryError", "torch.cuda.OutOfMemoryError"
        )
        error = (
            f"{kind}: CUDA out of memory. Tried to allocate {want:.2f} GiB. GPU {local} has a total "
            f"capacity of 79.15 GiB of which {free:.2f} MiB is free. Including non-PyTorch memory, this "
            f"process has {used + kept:.2f} GiB memory in use. Of the allocated memory {used:.2f} GiB is "
            f"allocated by PyTorch, and {kept:.2f} GiB is reserved by PyTorch but unallocated. If "
            "reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF="
            "expandable_segments:True to avoid fragmentation.  See documentation for Memory Management  "
            "(https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)"
        )
    return list(traceback_lines(frames, error))


def dead_loader(w: World, rank: int) -> list[str]:
    """A worker of the data loader is gone."""
    pid = w.topo.pids[rank] + 2000 + int(w.rng.integers(0, 90))
    killed = w.pick("Killed", "Bus error", "Segmentation fault", "Aborted")
    error = f"RuntimeError: DataLoader worker (pid {pid}) is killed by signal: {killed}. "
    if killed == "Bus error":
        error += "It is possible that dataloader's workers are out of shared memory. Please try to raise your shared memory limit."
    loader = f"{SITE}/torch/utils/data/dataloader.py"
    first = traceback_lines(
        [
            (loader, 1251, "_try_get_data", "data = self._data_queue.get(timeout=timeout)"),
            ("/usr/lib/python3.11/queue.py", 180, "get", "self.not_empty.wait(remaining)"),
            (
                f"{SITE}/torch/utils/data/_utils/signal_handling.py",
                73,
                "handler",
                "_error_if_any_worker_fails()",
            ),
        ],
        error,
    )
    second = traceback_lines(
        script_frames(
            w,
            (loader, 708, "__next__", "data = self._next_data()"),
            (loader, 1264, "_try_get_data", "raise RuntimeError("),
        ),
        f"RuntimeError: DataLoader worker (pid(s) {pid}) exited unexpectedly",
    )
    chain = "The above exception was the direct cause of the following exception:"
    return [*first, "", chain, "", *second]


def loader_error(w: World, rank: int) -> list[str]:
    """An exception inside a worker, raised again in the main process."""
    worker, shard = int(w.rng.integers(0, 8)), int(w.rng.integers(0, 900))
    error = w.pick("RuntimeError", "OSError", "ValueError")
    head = f"{error}: Caught {error} in DataLoader worker process {worker}."
    frames = script_frames(w, (f"{SITE}/torch/_utils.py", 733, "reraise", "raise exception"))
    return [
        *traceback_lines(frames, head),
        "Original Traceback (most recent call last):",
        f'  File "{SITE}/torch/utils/data/_utils/worker.py", line 349, in _worker_loop',
        "    data = fetcher.fetch(index)  # type: ignore[possibly-undefined]",
        '  File "/workspace/data/shards.py", line 133, in __getitem__',
        "    return self._decode(self._shard(index))",
        f"{error}: shard-{shard:05d}.tar is truncated at record {int(w.rng.integers(1, 4000))}",
        "",
    ]


def segfault(w: World, rank: int) -> list[str]:
    """faulthandler's, or the handler of UCX, or nothing but the signal."""
    pid, kind = w.topo.pids[rank], int(w.rng.integers(3))
    if kind == 0:
        return [
            "Fatal Python error: Segmentation fault",
            "",
            f"Current thread 0x{int(w.rng.integers(1 << 40, 1 << 46)):016x} (most recent call first):",
            f'  File "{SITE}/torch/autograd/graph.py", line 979 in _engine_run_backward',
            f'  File "{w.scene.script}", line 74 in main',
            f'  File "{w.scene.script}", line 96 in <module>',
        ]
    if kind == 1:
        return [
            f"[{w.topo.host(rank)}:{pid}  :0:{pid}] Caught signal 11 (Segmentation fault: address not "
            "mapped to object at address 0x28)",
            f"==== backtrace (tid: {pid:6d}) ====",
            " 0 0x0000000000042520 __sigaction()  ???:0",
            " 1 0x00000000001a3b70 ncclGroupEnd()  ???:0",
            " 2 0x0000000000c35470 c10d::ProcessGroupNCCL::allreduce()  ???:0",
            "=================================",
        ]
    return []
