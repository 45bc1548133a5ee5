"""`ranklog.watch`: gradients and activations of a torch module tree, as summaries by module name."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from fnmatch import fnmatchcase
from types import TracebackType
from typing import Any

from ranklog.produce import trouble
from ranklog.produce.tensors import due, tensor

ACTIVATION, GRADIENT, PARAMETER = "activation", "gradient", "parameter"
KINDS = (ACTIVATION, GRADIENT, PARAMETER)
# What wrappers put into names: the same module has the same name with and without them.
_WRAPPERS = re.compile(
    r"(?:^|(?<=\.))(?:_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module)\.?"
)


class Watch:
    """What `watch` returns: hooks on a module tree, until `close`."""

    def __init__(self, every: int | None, histogram: int, dims: dict[str, Any]) -> None:
        self._every = every
        self._more: dict[str, Any] = {"histogram": histogram, **dims}
        self._hooks: list[Any] = []

    def __enter__(self) -> Watch:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Take the hooks away."""
        while self._hooks:
            self._hooks.pop().remove()

    def add_module(self, torch: Any, name: str, module: Any) -> None:
        """Its activations: what it returns, the first tensor of it."""

        def on_forward(module: Any, inputs: Any, result: Any) -> None:
            # Checkpointed activations are computed again on the way back: they were told before.
            if due(self._every) and torch._C._current_graph_task_id() == -1:
                found = _first_tensor(torch, result)
                if found is not None:
                    tensor(ACTIVATION, found, every=self._every, module=name, **self._more)

        on_forward._torchdynamo_disable = True  # type: ignore[attr-defined]
        self._hooks.append(module.register_forward_hook(on_forward))

    def add_parameter(self, name: str, parameter: Any, kinds: frozenset[str]) -> None:
        """Its gradient when it is whole, and itself at that time."""
        module, _, own = name.rpartition(".")
        dims: dict[str, Any] = {"module": module or "model", "parameter": own}

        def on_gradient(parameter: Any) -> None:
            if not due(self._every):
                return
            if GRADIENT in kinds and parameter.grad is not None:
                tensor(GRADIENT, parameter.grad, every=self._every, **dims, **self._more)
            if PARAMETER in kinds:
                tensor(PARAMETER, parameter, every=self._every, **dims, **self._more)

        on_gradient._torchdynamo_disable = True  # type: ignore[attr-defined]
        self._hooks.append(parameter.register_post_accumulate_grad_hook(on_gradient))


def watch(
    model: Any,
    /,
    *,
    every: int | None = None,
    kinds: Iterable[str] = (ACTIVATION, GRADIENT),
    modules: str = "*",
    histogram: int = 0,
    **dims: Any,
) -> Watch:
    """Summaries of a torch module's tree as points of the series `activation`, `gradient`, `parameter`.

    Dimensions are `module` (its dotted name, without what DDP, FSDP or torch.compile put before it) and,
    of gradients and parameters, `parameter`. `every` as in `tensor`; `modules` is a pattern of names, as
    `"h.*.mlp"`. A gradient is taken when it has been added up for the step, or for the micro-batch where
    a step has several. Close what is returned to take the hooks away. Never raises.
    """
    found = Watch(every, histogram, dims)
    try:
        chosen = frozenset(kinds)
        if not chosen <= set(KINDS):
            raise ValueError(f"kinds are {', '.join(KINDS)}")
        torch = sys.modules.get("torch")
        if torch is None or not isinstance(model, torch.nn.Module):
            trouble.once("watch", f"watch() takes a torch module, not {type(model).__name__}")
            return found
        if ACTIVATION in chosen:
            for name, module in model.named_modules():
                if fnmatchcase(plain := _plain(name), modules):
                    found.add_module(torch, plain, module)
        if chosen - {ACTIVATION}:
            for name, parameter in model.named_parameters():
                plain = _plain(name)
                if parameter.requires_grad and fnmatchcase(plain.rpartition(".")[0], modules):
                    found.add_parameter(plain, parameter, chosen)
    except Exception:
        trouble.swallow("watching a module")
    return found


def _plain(name: str) -> str:
    """Of a module; the whole tree's is `model`."""
    plain = _WRAPPERS.sub("", name).removeprefix("module.").strip(".")
    return "model" if plain in ("", "module") else plain


def _first_tensor(torch: Any, result: Any) -> Any:
    """Of what a module returned, however it is wrapped."""
    if isinstance(result, torch.Tensor):
        return result
    parts = result.values() if isinstance(result, dict) else result
    if isinstance(parts, (list, tuple)) or isinstance(result, dict):
        for part in parts:
            found = _first_tensor(torch, part)
            if found is not None:
                return found
    return None
