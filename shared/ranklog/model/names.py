"""Names that a frame may hold: of runs, launches and hosts as parts of keys, of metadata and series to be
shown. A frame has the lines of many: a name of one that does not fit must not refuse the others' lines. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import TypeVar

from ranklog.limits import NAME_BYTES_MAX

T = TypeVar("T")
_UNSHOWN = "\ufffd"
# A leading dot is encoded, too.
_ROOM = NAME_BYTES_MAX - 2
_DIGEST_BYTES = 6


def fitting(name: str) -> str:
    """The name, or as much of it as a key takes (NAME_BYTES_MAX bytes, percent-encoded) and `-` and 12 hex
    digits, which tell it from others that begin so; what is no UTF-8 is U+FFFD, as every program prints
    names, keeps them as JSON and hands them on. A name that fits stays as it is."""
    if len(name) * 3 <= _ROOM and name.isascii():
        return name
    from urllib.parse import quote  # few names are so long, and every import costs a job time

    name = name.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    sizes = [len(quote(char, safe="")) for char in name]
    if sum(sizes) <= _ROOM:
        return name
    import hashlib

    digest = hashlib.blake2b(name.encode(), digest_size=_DIGEST_BYTES)
    room = _ROOM - 1 - 2 * _DIGEST_BYTES
    kept = sum(size <= room for size in accumulate(sizes))
    return f"{name[:kept]}-{digest.hexdigest()}"


def printable(name: str) -> str:
    """The name; what can't be shown in it is U+FFFD."""
    if name.isprintable():
        return name
    return "".join(char if char.isprintable() else _UNSHOWN for char in name)


def printable_names(names: Iterable[str]) -> dict[str, str]:
    """Each of different names, as it may be shown: still different ones, by a U+FFFD more."""
    names = list(names)
    shown = {name: name for name in names if name.isprintable()}
    taken = set(shown)
    for name in names:
        if name not in shown:
            unlike = printable(name)
            while unlike in taken:
                unlike += _UNSHOWN
            shown[name] = unlike
            taken.add(unlike)
    return shown


def with_printable_names(values: Mapping[str, T]) -> Mapping[str, T]:
    """The same, or a copy whose names can be shown."""
    if all(map(str.isprintable, values)):
        return values
    shown = printable_names(values)
    return {shown[name]: value for name, value in values.items()}
