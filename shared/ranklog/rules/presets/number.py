"""The number that presets look for, with or without thousands commas."""

from __future__ import annotations

NUM = (
    r"(?:[-+]?(?:\d{1,3}(?:,\d{3})+\b(?:\.\d*)?|\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
    r"|[-+]?(?:inf|nan|NaN|Infinity))"
)


def num(key: str) -> str:
    """A group `key` that holds one number."""
    return f"(?P<{key}>{NUM})"


def floats(*keys: str) -> dict[str, str]:
    """Types of keys that are all floats."""
    return dict.fromkeys(keys, "float")


def ints(*keys: str) -> dict[str, str]:
    """Types of keys that are all integers."""
    return dict.fromkeys(keys, "int")
