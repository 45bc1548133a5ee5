"""A configuration as JSON can say it: dataclasses, namespaces, OmegaConf, pydantic, what has `to_dict`.

Looks at a stranger's objects, so whatever they do, it ends and gives something.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Mapping
from pathlib import PurePath
from types import ModuleType
from typing import Any

from ranklog.produce.secrets import MASK, is_secret_name, mask_text
from ranklog.produce.values import clean_value

# A configuration of more values, or nested deeper, is cut; what is cut says so.
VALUES_MAX = 20_000
DEPTH_MAX = 16
TEXT_CHARACTERS_MAX = 4_096
CUT = "…"


def plain(value: Any) -> Any:
    """The value in dicts, lists, numbers, strings, booleans and None; secrets masked by their keys."""
    return _Plain().of(value, 0)


class _Plain:
    """Counts the values, so that a configuration that never ends does."""

    def __init__(self) -> None:
        self._left = VALUES_MAX

    def of(self, value: Any, depth: int) -> Any:
        self._left -= 1
        if self._left < 0 or depth > DEPTH_MAX:
            return CUT
        if value is None or isinstance(value, (bool, int, float, str)):
            return _scalar(value)
        if isinstance(value, Mapping):
            return self._mapping(value, depth)
        if isinstance(value, (list, tuple, set, frozenset, range)):
            items = sorted(value, key=repr) if isinstance(value, (set, frozenset)) else value
            kept = [self.of(item, depth + 1) for item in list(items)[: max(0, self._left)]]
            return kept if len(kept) == len(value) else [*kept, CUT]
        if hasattr(value, "dtype"):
            return clean_value(value)  # never waits for a device
        members = _members(value)
        return _text(value) if members is None else self._mapping(members, depth)

    def _mapping(self, values: Mapping[Any, Any], depth: int) -> Any:
        result: dict[str, Any] = {}
        for key in list(values):
            if self._left <= 0:
                result[CUT] = CUT
                break
            name = str(key)[:256]
            try:
                item = values[key]  # OmegaConf resolves here, or can't
            except Exception as error:
                result[name] = f"<{type(error).__name__}>"
                continue
            secret = is_secret_name(name) and isinstance(item, (str, bytes)) and item
            result[name] = MASK if secret else self.of(item, depth + 1)
        return result


def _scalar(value: bool | int | float | str | None) -> Any:
    if isinstance(value, str):
        return mask_text(value[:TEXT_CHARACTERS_MAX])
    if isinstance(value, enum.Enum):
        return _text(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else repr(float(value))
    return value if value is None or isinstance(value, bool) else int(value)


def _members(value: Any) -> Mapping[Any, Any] | None:
    """The named parts of an object that is a configuration; None for any other."""
    if isinstance(value, (type, ModuleType, PurePath, enum.Enum)):
        return None
    if dataclasses.is_dataclass(value):
        # not asdict(): it copies deeply, tensors among others
        names = (field.name for field in dataclasses.fields(value))
        return {name: getattr(value, name, None) for name in names}
    for name in ("model_dump", "to_dict", "_asdict"):
        method = getattr(value, name, None)
        if callable(method):
            try:
                found = method()
            except Exception:  # a stranger's method
                continue
            if isinstance(found, Mapping):
                return found
    members = getattr(value, "__dict__", None)
    if not isinstance(members, dict) or callable(value):
        return None
    return {key: item for key, item in members.items() if not str(key).startswith("_")} or None


def _text(value: Any) -> str:
    try:
        return mask_text(str(value)[:TEXT_CHARACTERS_MAX])
    except Exception:  # a stranger's __str__
        return f"<{type(value).__name__}>"
