"""Lightning's Trainer: metrics as telemetry of every rank, hyperparameters as a line, checkpoints.

`Trainer(logger=RanklogLogger())`, alone or in a list with others.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import ranklog
from ranklog.produce.plain import plain


def _base() -> Any:
    """The class that this job's Lightning expects; without Lightning any will do."""
    for module in ("lightning.pytorch.loggers", "pytorch_lightning.loggers"):
        try:
            return importlib.import_module(module).Logger
        except ImportError:
            continue
    return object


class RanklogLogger(_base()):  # type: ignore[misc]  # decided where it is used
    """A Lightning logger. Unlike most it works on every rank: each speaks for itself.

    `given` goes to `ranklog.init`, which does nothing where it was called before.
    """

    def __init__(self, **given: Any) -> None:
        super().__init__()
        self._given = given
        self._started = False

    @property
    def name(self) -> str:
        return "ranklog"

    @property
    def version(self) -> str:
        return str(ranklog.__version__)

    def log_metrics(self, metrics: Mapping[str, Any], step: int | None = None) -> None:
        """Numbers (also of tensors that lie in the host's memory) are telemetry of the step."""
        self._start()
        if step is not None:
            ranklog.iteration(step)
        ranklog.telemetry(dict(metrics))

    def log_hyperparams(self, params: Any, *words: Any, **more: Any) -> None:
        """The run's configuration where this is the first that is heard of it; a line anyway."""
        self._given.setdefault("config", params)
        self._start()
        ranklog.log(f"hyperparameters {plain(params)}")

    def after_save_checkpoint(self, checkpoint_callback: Any) -> None:
        """The checkpoint that was written last is referred to."""
        if path := getattr(checkpoint_callback, "last_model_path", "") or getattr(
            checkpoint_callback, "best_model_path", ""
        ):
            ranklog.attach(path, "checkpoint")

    def finalize(self, status: str) -> None:
        """A line with how training ended."""
        self._start()
        ranklog.log(f"training ended: {status}", "info" if status == "success" else "error")

    def _start(self) -> None:
        if not self._started:
            self._started = True
            ranklog.init(**self._given)
