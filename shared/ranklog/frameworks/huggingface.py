"""Hugging Face's Trainer: iterations, what it logs as telemetry, checkpoints as references.

`Trainer(…, callbacks=[RanklogCallback()])`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import ranklog


class RanklogCallback:
    """Every event that a TrainerCallback has; those that are none of ours do nothing.

    The Trainer asks its callbacks for a method by the event's name, and for nothing else, so this
    needs no class of theirs.
    """

    def on_init_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Start ranklog where nothing has, with the training arguments as configuration."""
        ranklog.init(config=args)

    def on_step_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """`global_step` counts the steps that are done; what is logged after this one is of it."""
        ranklog.iteration(int(state.global_step) + 1)

    def on_log(
        self,
        args: Any,
        state: Any,
        control: Any,
        logs: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> None:
        """Numbers are telemetry of the step that is done."""
        numbers = {str(name): value for name, value in (logs or {}).items() if _is_number(value)}
        if numbers:
            ranklog.telemetry(numbers)

    def on_save(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """The rank that writes a checkpoint refers to it."""
        if state.is_world_process_zero:
            name = f"checkpoint-{state.global_step}"
            ranklog.attach(os.path.join(str(args.output_dir), name), "checkpoint")

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("on_"):
            return _nothing
        raise AttributeError(name)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _nothing(*words: Any, **more: Any) -> None:
    """An event that says nothing to a log."""
