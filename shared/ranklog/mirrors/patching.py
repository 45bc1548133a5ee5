"""Methods of a tracker that tell us too: what they are given, never what they do."""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import sys
import threading
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from ranklog.produce import trouble

_busy = threading.local()


def also(owner: Any, name: str, tell: Callable[..., None]) -> None:
    """`owner.name(…)` first calls `tell(…)` with the same words; its result and errors are its own.

    What a tracker calls of itself, or of another tracker, inside is not told again. An `owner` without
    the method, or whose method tells already, is left as it is.
    """
    original = getattr(owner, name, None)
    if original is None or hasattr(original, "_ranklog_tells"):
        return

    @functools.wraps(original)
    def telling(*words: Any, **named: Any) -> Any:
        if getattr(_busy, "inside", False):
            return original(*words, **named)
        _busy.inside = True
        try:
            try:
                tell(*words, **named)
            except Exception:
                trouble.swallow(f"mirroring {name}")
            return original(*words, **named)
        finally:
            _busy.inside = False

    telling._ranklog_tells = True  # type: ignore[attr-defined]
    setattr(owner, name, telling)


def when_imported(name: str, then: Callable[[ModuleType], None]) -> None:
    """Call `then` with the module: now if it has been imported, else when it is."""
    module = sys.modules.get(name)
    if module is not None:
        _call(then, module)
        return
    for finder in sys.meta_path:
        if isinstance(finder, _Waiting):
            finder.wanted.setdefault(name, []).append(then)
            return
    sys.meta_path.insert(0, _Waiting({name: [then]}))


def _call(then: Callable[[ModuleType], None], module: ModuleType) -> None:
    try:
        then(module)
    except Exception:
        trouble.swallow(f"mirroring {module.__name__}")


class _Waiting(importlib.abc.MetaPathFinder):
    """Finds nothing itself: modules that are waited for get a loader that tells."""

    def __init__(self, wanted: dict[str, list[Callable[[ModuleType], None]]]) -> None:
        self.wanted = wanted

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        waiting = self.wanted.pop(name, None)
        if waiting is None:
            return None
        spec = find_spec(name)  # ours is no longer asked: it has been taken out
        if spec is not None and spec.loader is not None:
            spec.loader = _Telling(spec.loader, waiting)
        return spec


class _Telling(importlib.abc.Loader):
    def __init__(self, loader: Any, waiting: list[Callable[[ModuleType], None]]) -> None:
        self._loader = loader
        self._waiting = waiting

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        created: ModuleType | None = self._loader.create_module(spec)
        return created

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader  # what reads resources asks the loader for them
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        for then in self._waiting:
            _call(then, module)
