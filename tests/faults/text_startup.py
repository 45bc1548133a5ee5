"""What every rank says at start where a module, an argument or a file is not there."""

from __future__ import annotations

from tests.faults.text_python import SITE, Frame, traceback_lines
from tests.faults.world import World


def missing_module(w: World) -> tuple[list[str], str]:
    """An import that fails on every rank: (lines, what it is)."""
    script = w.scene.script
    kind = int(w.rng.integers(4))
    if kind == 0:
        name = w.pick("flash_attn", "apex", "transformer_engine", "mosaicml_streaming")
        frames: list[Frame] = [(script, 12, "<module>", f"import {name}")]
        return list(
            traceback_lines(frames, f"ModuleNotFoundError: No module named '{name}'")
        ), "import"
    if kind == 1:
        frames = [
            (script, 9, "<module>", "from flash_attn import flash_attn_func"),
            (
                f"{SITE}/flash_attn/__init__.py",
                3,
                "<module>",
                "from flash_attn.flash_attn_interface import (",
            ),
        ]
        error = (
            f"ImportError: {SITE}/flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so: undefined symbol: "
            "_ZN3c104cuda9SetDeviceEi"
        )
        return list(traceback_lines(frames, error)), "import"
    if kind == 2:
        error = f"{script.rsplit('/', 1)[-1]}: error: unrecognized arguments: --use-flash-attn-v3"
        return [
            f"usage: {script.rsplit('/', 1)[-1]} [-h] [--config CONFIG] [--steps STEPS]",
            error,
        ], "config"
    size = w.topo.ranks
    frames = [
        (script, 301, "<module>", "main()"),
        (script, 57, "main", "args = validate_args(args)"),
    ]
    error = (
        f"AssertionError: world size ({size}) is not divisible by tensor parallel size ({3 * w.topo.tp}) x "
        f"pipeline parallel size ({w.topo.pp})"
    )
    return list(traceback_lines(frames, error)), "config"


def missing_file(w: World) -> list[str]:
    """What every rank raises when the data set is not there, or is another one."""
    script, kind = w.scene.script, int(w.rng.integers(3))
    main: Frame = (script, 96, "<module>", "main()")
    if kind == 0:
        path = w.pick(
            "/data/train/annotations.json",
            "/mnt/weka/corpus/train_text_document.idx",
            "/data/tokenizer.model",
        )
        frames = [
            main,
            (script, 51, "main", "dataset = build_dataset(args.data_path)"),
            ("/workspace/data/build.py", 40, "build_dataset", "with open(path) as file:"),
        ]
        error = f"FileNotFoundError: [Errno 2] No such file or directory: '{path}'"
    elif kind == 1:
        source = "self.inputs = [np.asarray(f[key][:]) for key in keys]"
        frames = [
            main,
            ("/workspace/data/hdf5.py", 179, "__init__", source),
            ("h5py/h5o.pyx", 190, "h5py.h5o.open", ""),
        ]
        error = "KeyError: \"Unable to open object (object 'segment_ids' doesn't exist)\""
    else:
        source = "with _open_file_like(f, 'rb') as opened_file:"
        frames = [main, (f"{SITE}/torch/serialization.py", 1479, "load", source)]
        path = "/lustre/ckpt/base/latest_checkpointed_iteration.txt"
        error = f"FileNotFoundError: [Errno 2] No such file or directory: '{path}'"
    return list(traceback_lines(frames, error))
