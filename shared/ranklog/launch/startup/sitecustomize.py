"""Runs when a Python begins inside `ranklog run`: has torchrun take our plugin, whoever starts it.

torchrun takes a plugin by an option alone, and a script or another launcher (accelerate, Primus) that
starts torchrun is not ours to change. A Python that is no torchrun does not notice: nothing is
imported, and the `sitecustomize` that this one hides is run as if it were found first.
"""

import os
import sys

_MODULE = "torch.distributed.run"
_OPTION = "--logs-specs"


def _has_plugin() -> bool:
    """Whether ranklog is installed for this Python."""
    try:
        from importlib.metadata import entry_points

        return bool(entry_points(group="torchrun.logs_specs", name="ranklog"))
    except Exception:
        return False  # a Python before 3.10


class _Waiting:
    """A finder that finds nothing, but notes when the module comes and wraps its loader."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> object:
        if name != _MODULE:
            return None
        sys.meta_path.remove(self)  # type: ignore[arg-type]
        from importlib.util import find_spec

        spec = find_spec(name)
        if spec is not None and spec.loader is not None and _has_plugin():
            _wrap(spec.loader)
        return spec


def _wrap(loader: object) -> None:
    """Where nobody asks for a plugin by name, ours is the default."""
    execute = loader.exec_module  # type: ignore[attr-defined]

    def exec_module(module):  # type: ignore[no-untyped-def]
        execute(module)
        named = module._get_logs_specs_class
        module._get_logs_specs_class = lambda name: named("ranklog" if name is None else name)

    loader.exec_module = exec_module  # type: ignore[attr-defined]


def _is_torchrun() -> bool:
    words = getattr(sys, "orig_argv", sys.argv)
    by_module = any(
        word == "-m" and _MODULE in words[at + 1 : at + 2] for at, word in enumerate(words)
    )
    return by_module or os.path.basename((sys.argv or [""])[0]) == "torchrun"


def _begin() -> None:
    if os.environ.get("RANKLOG_LAUNCHED") != "1" or os.environ.get("RANKLOG_STARTUP") == "0":
        return
    try:
        if not _is_torchrun():
            sys.meta_path.insert(0, _Waiting())  # type: ignore[arg-type]
        elif not _names_plugin() and _has_plugin():
            sys.argv.insert(1, _OPTION + "=ranklog")
    except Exception:  # a launch is never worse for us
        return


def _names_plugin() -> bool:
    return any(word.replace("_", "-").startswith(_OPTION) for word in sys.argv)


def _run_hidden() -> None:
    """The one that Python would have found, were we not there."""
    ours = os.path.dirname(os.path.abspath(__file__))
    rest = [path for path in sys.path if os.path.abspath(path) != ours]
    for finder in sys.meta_path:
        spec = finder.find_spec("sitecustomize", rest)
        if spec is not None and spec.loader is not None:
            from importlib.util import module_from_spec

            module = module_from_spec(spec)
            sys.modules["sitecustomize"] = module
            spec.loader.exec_module(module)
            return


_begin()
_run_hidden()
