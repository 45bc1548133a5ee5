"""`ranklog.SummaryWriter`: the methods of torch's SummaryWriter and tensorboardX's, into ranklog.

Scalars and histograms are points (the tag is the series, `global_step` the iteration), texts and
hyperparameters lines. Pictures, sounds, graphs and meshes are not kept: each kind says so once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from ranklog.mirrors.values import shown, write, write_counted, write_histogram, write_line
from ranklog.produce import session, trouble


def scalar(
    tag: str, scalar_value: Any, global_step: Any = None, walltime: Any = None, *_: Any, **__: Any
) -> None:
    write({tag: scalar_value}, global_step, walltime)


def scalars(
    main_tag: str, tag_scalar_dict: Mapping[str, Any], global_step: Any = None, walltime: Any = None
) -> None:
    write(
        {f"{main_tag}/{tag}": value for tag, value in tag_scalar_dict.items()},
        global_step,
        walltime,
    )


def histogram(
    tag: str,
    values: Any,
    global_step: Any = None,
    bins: Any = None,
    walltime: Any = None,
    max_bins: Any = None,
) -> None:
    write_histogram(tag, values, global_step, walltime)


def histogram_raw(
    tag: str,
    min: Any,
    max: Any,
    num: Any,
    sum: Any,
    sum_squares: Any,
    bucket_limits: Any,
    bucket_counts: Any,
    global_step: Any = None,
    walltime: Any = None,
) -> None:
    totals = (num, sum, sum_squares)
    write_counted(tag, min, max, totals, bucket_limits, bucket_counts, global_step, walltime)


def tensor(tag: str, tensor: Any, global_step: Any = None, walltime: Any = None) -> None:
    write_histogram(tag, tensor, global_step, walltime)


def text(tag: str, text_string: Any, global_step: Any = None, walltime: Any = None) -> None:
    write_line(f"{tag}: {text_string}", tag=tag)


def hparams(
    hparam_dict: Mapping[str, Any], metric_dict: Mapping[str, Any], *words: Any, **named: Any
) -> None:
    plain = {
        str(key): value if isinstance(value, (bool, int, float, str)) else shown(value)
        for key, value in hparam_dict.items()
    }
    write_line(f"hyperparameters {json.dumps(plain, ensure_ascii=False)}", **plain)
    last = words[-1] if words and isinstance(words[-1], int) else None
    write(metric_dict, named.get("global_step", last))


# Method of a SummaryWriter -> what is kept of what it is given.
KEPT: dict[str, Callable[..., None]] = {
    "add_scalar": scalar,
    "add_scalars": scalars,
    "add_histogram": histogram,
    "add_histogram_raw": histogram_raw,
    "add_tensor": tensor,
    "add_text": text,
    "add_hparams": hparams,
}
NOT_KEPT = (
    "add_audio add_custom_scalars add_custom_scalars_marginchart add_custom_scalars_multilinechart "
    "add_embedding add_figure add_graph add_image add_image_with_boxes add_images add_mesh "
    "add_onnx_graph add_openvino_graph add_pr_curve add_pr_curve_raw add_video"
).split()


class SummaryWriter:
    """In place of torch.utils.tensorboard's or tensorboardX's: `SummaryWriter(); w.add_scalar(…)`.

    Takes the words of both constructors; only the folder's name is kept, for `get_logdir`. Starts
    logging with `ranklog.init()`, which does nothing where the job has. No method raises or waits, but `flush` and
    `close`: they wait as `ranklog.flush` does.
    """

    def __init__(self, log_dir: Any = None, *words: Any, logdir: Any = None, **named: Any) -> None:
        self._folder = str(log_dir or logdir or "")
        session.init()

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name in NOT_KEPT:
            return lambda *words, **named: trouble.once(
                f"writer {name}", f"SummaryWriter.{name}: ranklog keeps numbers and texts, not this"
            )
        keep = KEPT.get(name)
        if keep is None:
            raise AttributeError(f"SummaryWriter has no method {name!r}")

        def call(*words: Any, **named: Any) -> None:
            try:
                keep(*words, **named)
            except Exception:
                trouble.swallow(f"taking {name}")

        return call

    @property
    def logdir(self) -> str:
        """What the constructor was given."""
        return self._folder

    def get_logdir(self) -> str:
        """What the constructor was given."""
        return self._folder

    def flush(self) -> None:
        """Wait until it is delivered."""
        session.flush()

    def close(self) -> None:
        """As `flush`; the job's logging goes on."""
        session.flush()
