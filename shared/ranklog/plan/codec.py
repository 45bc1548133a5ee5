"""Query trees as JSON: a node is `{"<class>": [fields…]}`, a tuple is a list, values stand for themselves.

One codec serves what users send (model/query) and what the planner makes of it (plan/scope). NaN and
infinities are `{"float": "NaN"}`, so that the text is JSON for every reader.
"""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from typing import Any

from ranklog.errors import Corrupt, NewerVersion

_PLAIN = frozenset([int, str, bool, type(None)])


class NodeCodec:
    """Encodes instances of the given frozen dataclasses, and nothing else."""

    def __init__(self, *classes: type) -> None:
        self._classes = {cls.__name__: cls for cls in classes}

    def to_json(self, value: Any) -> Any:
        """The JSON value of a node, tuple, number, text, bool or None."""
        if is_dataclass(value) and not isinstance(value, type):
            names = [field.name for field in fields(value)]
            return {type(value).__name__: [self.to_json(getattr(value, name)) for name in names]}
        if isinstance(value, tuple):
            # what most of a task is: positions, ranges
            if _PLAIN.issuperset(map(type, value)):
                return list(value)
            return [self.to_json(item) for item in value]
        if isinstance(value, float) and not math.isfinite(value):
            return {"float": repr(value)}
        return value

    def from_json(self, value: Any) -> Any:
        """The inverse. Raises NewerVersion at a node this version does not know, Corrupt at others."""
        if isinstance(value, list):
            if _PLAIN.issuperset(map(type, value)):
                return tuple(value)
            return tuple(self.from_json(item) for item in value)
        if not isinstance(value, dict):
            return value
        if len(value) != 1:
            raise Corrupt(f"a query node has one name, not {sorted(value)}")
        ((name, arguments),) = value.items()
        if name == "float":
            # the one NaN of math, so that trees with it compare equal (by identity)
            return math.nan if arguments == "nan" else float(arguments)
        cls = self._classes.get(name)
        if cls is None:
            raise NewerVersion(f"query node {name!r} is of a newer ranklog")
        try:
            return cls(*(self.from_json(item) for item in arguments))
        except TypeError as error:
            raise Corrupt(f"query node {name!r} has wrong fields: {error}") from error
