"""Lines that a stream's frames say were dropped: what one frame says counts once. Pure.

A frame may be in many indexes: it was delivered again, a batch was tried in pieces, indexes were merged.
So an index says of each drop which frame told it. Drops of indexes of before, which name no frame, are
summed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ranklog.layout.packed import pack_column, unpack_column
from ranklog.model.frame import Drop
from ranklog.model.index import StreamEntry

_UNNAMED = -1  # place of the agent where no frame is named
_BEFORE_ALL = ("", -1)


class Drops:
    """Drops of one stream, from any number of indexes in any order."""

    __slots__ = ("_lines",)

    def __init__(self, drops: Iterable[Drop] = ()) -> None:
        self._lines: dict[tuple[tuple[str, int] | None, str], int] = {}
        self.add(drops)

    def add(self, drops: Iterable[Drop]) -> None:
        """Take in what one index says."""
        lines = self._lines
        for drop in drops:
            key = (drop.frame, drop.reason)
            known = lines.get(key)
            if known is None:
                lines[key] = drop.lines
            elif drop.frame is None:
                lines[key] = known + drop.lines
            else:
                # Retention refuses more of a frame the later it comes; what was stored the first time is there.
                lines[key] = min(known, drop.lines)

    def __bool__(self) -> bool:
        return bool(self._lines)

    def __iter__(self) -> Iterator[Drop]:
        """One for each (frame, reason), by frame; those that name none first."""
        order = sorted(self._lines, key=lambda key: (key[0] or _BEFORE_ALL, key[1]))
        return iter([Drop(self._lines[key], key[1], key[0]) for key in order])

    def by_reason(self) -> dict[str, int]:
        """Lines, reasons in order."""
        found: dict[str, int] = {}
        for (_, reason), lines in self._lines.items():
            found[reason] = found.get(reason, 0) + lines
        return dict(sorted(found.items()))


def drops_to_columns(entries: Sequence[StreamEntry]) -> list[Any]:
    """What msgpack writes; [] where there is none."""
    found = [(i, drop) for i, entry in enumerate(entries) for drop in entry.drops]
    if not found:
        return []
    names = {name: at for at, name in enumerate(agents_named(entries))}
    frames = [drop.frame for _, drop in found]
    return [
        len(found),
        pack_column([i for i, _ in found]),
        pack_column([drop.lines for _, drop in found]),
        pack_column([drop.reason for _, drop in found]),
        [packed_agent(name) for name in names],
        pack_column([_UNNAMED if frame is None else names[frame[0]] for frame in frames]),
        pack_column([0 if frame is None else frame[1] for frame in frames]),
    ]


def drops_from_columns(data: Sequence[Any]) -> dict[int, tuple[Drop, ...]]:
    """Inverse of `drops_to_columns`, by place of the stream. Raises ValueError, TypeError, IndexError on
    damage."""
    if not data:
        return {}
    count, streams, lines, reasons, _, agents, numbers = data
    names = agents_in(data)
    columns = [
        unpack_column(column, count) for column in (streams, lines, reasons, agents, numbers)
    ]
    found: dict[int, list[Drop]] = {}
    for i, size, reason, agent, number in zip(*columns, strict=True):
        frame = None if agent == _UNNAMED else (names[agent], number)
        found.setdefault(i, []).append(Drop(size, reason, frame))
    return {i: tuple(drops) for i, drops in found.items()}


def agents_named(entries: Iterable[StreamEntry]) -> list[str]:
    """Agents whose frames told of drops; each once."""
    frames = (drop.frame for entry in entries for drop in entry.drops)
    return list(dict.fromkeys(frame[0] for frame in frames if frame is not None))


def agents_in(data: Sequence[Any]) -> list[str]:
    """The same, of what `drops_to_columns` wrote."""
    return [shown_agent(name) for name in data[4]] if data else []


def packed_agent(name: str) -> str | bytes:
    """As bytes where it is hexadecimal, as agents' names are."""
    try:
        packed = bytes.fromhex(name)
    except ValueError:
        return name
    return packed if packed.hex() == name else name


def shown_agent(name: str | bytes) -> str:
    """Inverse of `packed_agent`."""
    return name.hex() if isinstance(name, bytes) else name
