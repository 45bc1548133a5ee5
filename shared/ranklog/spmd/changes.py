"""Which values of lines at one place differ, and how far they lie from what the peers have."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

from ranklog.model.answer import Line
from ranklog.spmd.hunks import Change
from ranklog.spmd.slots import Slot, body
from ranklog.spmd.variables import (
    Variable,
    finite,
    names_its_process,
    number,
    parse_number,
    shape,
    split,
    variable,
)

# Two texts of different shapes are one message if at least this share of their words is equal.
WORDS_ALIKE_SHARE = 0.5


class PeerValues:
    """Numbers that other ranks have at the same place: iteration, call site and shape.

    Shapes are taken only where a value has changed, and once: peers are many, changes few.
    """

    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines: dict[tuple[int | None, str | None], list[Line]] = defaultdict(list)
        for line in lines:
            self._lines[line.iteration, line.call_site].append(line)
        self._places: dict[tuple[int | None, str | None, str], _Place] = {}
        self._shaped: set[tuple[int | None, str | None]] = set()

    def beside(self, line: Line) -> _Place:
        """What the peers have where this line stands."""
        if not self._lines:
            return _NOWHERE
        group = (line.iteration, line.call_site)
        if group not in self._shaped:
            self._shaped.add(group)
            for peer in self._lines.get(group, ()):
                place = self._places.setdefault((*group, shape(body(peer))), _Place([]))
                place.lines.append(peer)
        return self._places.get((*group, shape(body(line))), _NOWHERE)


@dataclass(slots=True)
class _Place:
    """Peers' lines of one shape. What is asked of them is worked out once."""

    lines: list[Line]
    columns: list[tuple[re.Match[str], ...]] | None = None
    medians: dict[int | str, float | None] = field(default_factory=dict)

    def median(self, of: int | str) -> float | None:
        """Median of the finite numbers at a position, or of a metadata key."""
        if of not in self.medians:
            self.medians[of] = _median(self._values(of)) if self.lines else None
        return self.medians[of]

    def _values(self, of: int | str) -> list[object]:
        if isinstance(of, str):
            return [line.metadata.get(of) for line in self.lines]
        if self.columns is None:
            self.columns = list(zip(*(split(body(line)) for line in self.lines), strict=True))
        return [number(part) for part in self.columns[of]]


_NOWHERE = _Place([])


def _median(values: Sequence[object]) -> float | None:
    numbers = finite(values)
    return median(numbers) if numbers else None


def changes_of(slot: Slot[Line], labels: Sequence[str], peers: PeerValues) -> list[Change]:
    """The differing values of the lines that are there; one line has none to differ from."""
    present = [(label, x) for label, x in zip(labels, slot.lines, strict=True) if x is not None]
    if len(present) < 2:
        return []
    lines = [line for _, line in present]
    names = [label for label, _ in present]
    changes = (
        [] if _all_equal([x.text for x in lines]) else _text_changes(slot, names, lines, peers)
    )
    if not _all_equal([x.metadata for x in lines]):
        changes.extend(_metadata_changes(names, lines, peers))
    levels = [line.level for line in lines]
    if None not in levels and not _all_equal(levels):
        values = {name: level or 0 for name, level in zip(names, levels, strict=True)}
        changes.append(Change("level", None, values))
    return changes


def _text_changes(
    slot: Slot[Line], names: Sequence[str], lines: Sequence[Line], peers: PeerValues
) -> list[Change]:
    changes = []
    texts = [body(x) for x in lines]
    # of one template, yet with another number of values: `1.5`, `2.5e-05`
    by_words = slot.words or len({len(split(text)) for text in texts}) > 1
    for position, column in _differing(texts, by_words=by_words):
        if all(item.clock for item in column):
            continue
        if all(
            names_its_process(item, x.rank, x.local_rank, x.host)
            for item, x in zip(column, lines, strict=True)
        ):
            continue
        values = {
            name: item.text if item.number is None else item.number
            for name, item in zip(names, column, strict=True)
        }
        middle = None if by_words else peers.beside(lines[0]).median(position)
        changes.append(
            Change(
                column[0].name, position, values, middle, _distance(list(values.values()), middle)
            )
        )
    return changes


def _differing(texts: Sequence[str], *, by_words: bool) -> Iterator[tuple[int, list[Variable]]]:
    if by_words:
        split_words = [_words(text) for text in texts]
        if len({len(words) for words in split_words}) > 1:
            yield 0, [Variable(None, text, None) for text in texts]
            return
        for position, words in enumerate(zip(*split_words, strict=True)):
            if not _all_equal([word.text for word in words]):
                yield position, list(words)
        return
    for position, parts in enumerate(zip(*(split(text) for text in texts), strict=True)):
        if not _all_equal([part.group() for part in parts]):
            yield position, [variable(part) for part in parts]


def _metadata_changes(
    names: Sequence[str], lines: Sequence[Line], peers: PeerValues
) -> list[Change]:
    changes = []
    for key in sorted(set[str]().union(*(x.metadata for x in lines))):
        values = {
            name: x.metadata[key] for name, x in zip(names, lines, strict=True) if key in x.metadata
        }
        if len(values) == len(lines) and _all_equal(list(values.values())):
            continue
        if all(
            names_its_process(
                Variable(key, str(x.metadata[key]), None), x.rank, x.local_rank, x.host
            )
            for x in lines
            if key in x.metadata
        ):
            continue
        middle = peers.beside(lines[0]).median(key)
        changes.append(Change(key, None, values, middle, _distance(list(values.values()), middle)))
    return changes


def _distance(values: Sequence[object], middle: float | None) -> float | None:
    numbers = finite(values)
    if middle is not None and numbers:
        return max(abs(value - middle) for value in numbers)
    return max(numbers) - min(numbers) if len(numbers) >= 2 else None


def _all_equal(values: Sequence[object]) -> bool:
    return all(value == values[0] for value in values[1:])


def _words(text: str) -> list[Variable]:
    words = text.split()
    return [
        Variable(words[at - 1].rstrip(":=") if at else None, word, parse_number(word))
        for at, word in enumerate(words)
    ]


def words_alike(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether two shapes have equally many words and most of them agree."""
    if len(first) != len(second) or not first:
        return False
    same = sum(x == y for x, y in zip(first, second, strict=True))
    return same >= WORDS_ALIKE_SHARE * len(first)
