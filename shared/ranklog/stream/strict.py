"""Values of a decoded header, each of the one type that it may have. All raise Corrupt for another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ranklog import limits
from ranklog.errors import Corrupt

HASH_BYTES = 16
INT64_MAX = 2**63 - 1

T = TypeVar("T")


def read_list(value: object, length: int | None = None) -> list[Any]:
    """A list, of a length if one is given."""
    if type(value) is not list or (length is not None and len(value) != length):
        raise Corrupt("frame header has a list of another shape")
    return value


def read_text(value: object) -> str:
    """Text, which may be empty."""
    if type(value) is not str:
        raise Corrupt(f"frame header has {value!r:.40} where text belongs")
    return value


def read_word(allowed: tuple[str, ...], value: object) -> str:
    """One of the words that are allowed."""
    if value not in allowed:
        raise Corrupt(f"frame header has {value!r:.40}, not one of {', '.join(allowed)}")
    return read_text(value)


def read_signed(value: object) -> int:
    """A number of 64 bits."""
    if type(value) is not int or not -INT64_MAX - 1 <= value <= INT64_MAX:
        raise Corrupt(f"frame header has {value!r:.40} where a number belongs")
    return value


def read_natural(value: object) -> int:
    """A number of 63 bits, not negative."""
    number = read_signed(value)
    if number < 0:
        raise Corrupt(f"frame header has {number} where no negative number belongs")
    return number


def read_rank(value: object) -> int:
    """A number of 31 bits, not negative."""
    number = read_natural(value)
    if number >= 2**31:
        raise Corrupt(f"rank {number} is over 31 bits")
    return number


def read_flag(value: object) -> bool:
    """True or false."""
    if type(value) is not bool:
        raise Corrupt(f"frame header has {value!r:.40} where a truth value belongs")
    return value


def read_digest(value: object) -> bytes:
    """A hash of HASH_BYTES."""
    if type(value) is not bytes or len(value) != HASH_BYTES:
        raise Corrupt("frame header has no payload hash")
    return value


def read_manifest(value: object) -> bytes:
    """A piece of a manifest, opaque here."""
    if type(value) is not bytes or len(value) > limits.MANIFEST_BYTES_MAX:
        raise Corrupt("frame header has no manifest, or one that is too long, where one belongs")
    return value


def read_optional(read: Callable[[object], T], value: object) -> T | None:
    """None, or what `read` takes."""
    return None if value is None else read(value)
