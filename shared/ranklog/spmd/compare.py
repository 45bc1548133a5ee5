"""Two or more ranks side by side: what one says and another does not, and values that differ.

Lines are keyed by call site and shape of the text, blocks by iteration, and each block is
aligned as a sequence of integers; where there is no iteration, places within a window of time match. So 20,000 lines a side are a matter of a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from ranklog.errors import BadInput
from ranklog.limits import SECOND_NS
from ranklog.model.answer import Line
from ranklog.spmd.align import align
from ranklog.spmd.blocks import Block, Placed, place
from ranklog.spmd.changes import PeerValues, changes_of, words_alike
from ranklog.spmd.hunks import Comparison, Hunk, verdict
from ranklog.spmd.slots import Slot, Waiting, body, pair_alike
from ranklog.spmd.variables import shape

SIDES_MIN, SIDES_MAX = 2, 8
WINDOW_NS = 30 * SECOND_NS


@dataclass(frozen=True, slots=True)
class Side:
    """One column: a label (a rank's number, or `run_id:rank`) and its lines in stream order."""

    label: str
    lines: Sequence[Line]


def compare(
    sides: Sequence[Side],
    *,
    peers: Sequence[Line] = (),
    all_hunks: bool = False,
    window_ns: int = WINDOW_NS,
) -> Comparison:
    """Walk the sides next to each other.

    `peers` are lines of other ranks, whose median tells how odd a changed value is. Equal hunks are
    left out unless `all_hunks`; `counts` has them in any case. Raises BadInput for one or over 8.
    """
    if not SIDES_MIN <= len(sides) <= SIDES_MAX:
        raise BadInput(
            f"can't compare {len(sides)} ranks: from {SIDES_MIN} to {SIDES_MAX} stand side by side",
            hint="name them: --ranks 0,7",
        )
    labels = [side.label for side in sides]
    walk = _walk(sides, window_ns)
    peer_values = PeerValues(peers)
    counts = dict.fromkeys(("equal", "insert", "delete", "change"), 0)
    hunks: list[Hunk] = []
    previous: tuple[object, ...] = ()
    for block, slot in walk:
        changes = changes_of(slot, labels, peer_values)
        op = verdict(slot, changes)
        counts[op] += 1
        if op == "equal" and not all_hunks:
            previous = ()
            continue
        present = tuple(line is not None for line in slot.lines)
        group = (block, slot.key, op, present, slot.moved)
        if group == previous and not changes:
            extend_hunk(hunks[-1], slot, labels)
        else:
            hunks.append(make_hunk(op, block, slot, labels, window_ns))
            hunks[-1].values.extend(changes)
        previous = () if changes else group
    return Comparison(labels, hunks, counts)


def _walk(sides: Sequence[Side], window_ns: int) -> list[tuple[Block, Slot[Line]]]:
    """Slots of all blocks in order."""
    run_ids = {line.run_id for side in sides for line in side.lines[:1]}
    starts = [min((x.ts_ns for x in side.lines), default=0) for side in sides]
    same_clock = len(run_ids) < 2
    shared = min((s for s, side in zip(starts, sides, strict=True) if side.lines), default=0)
    origins = [shared] * len(sides) if same_clock else starts
    placed = place([side.lines for side in sides], origins=origins)
    keys: dict[tuple[str | None, str], int] = {}
    shapes: dict[str, str] = {}
    blocks: list[tuple[Block, list[Slot[Line]]]] = []
    for block in sorted({block for one in placed for block in one.blocks}):
        columns = [one.blocks.get(block, []) for one in placed]
        slots = _align_block(columns, keys, shapes, origins, None if block[1] else window_ns)
        blocks.append((block, slots))
    _join_neighbours(blocks, placed, origins, window_ns)
    for _, slots in blocks:
        _pair_by_words(slots)
    return [(block, slot) for block, slots in blocks for slot in slots]


def _align_block(
    columns: Sequence[list[Line]],
    keys: dict[tuple[str | None, str], int],
    shapes: dict[str, str],
    origins: Sequence[int],
    within_ns: int | None,
) -> list[Slot[Line]]:
    """Align one block, then let lines of one key meet that only stand in another order.

    Within an iteration any two places may match; elsewhere those at most `within_ns` apart.
    """
    sequences = [[_key(line, keys, shapes) for line in column] for column in columns]
    slots = []
    times = None
    if within_ns is not None:
        times = [
            list(accumulate((line.ts_ns - origin for line in column), max))
            for column, origin in zip(columns, origins, strict=True)
        ]
    for row in align(sequences, times, within_ns or 0):
        lines = [column[at] if at >= 0 else None for column, at in zip(columns, row, strict=True)]
        side = next(side for side, at in enumerate(row) if at >= 0)
        slots.append(Slot(sequences[side][row[side]], lines))
    waiting: Waiting[Line] = Waiting(within_ns=within_ns, origins=origins)
    for slot in slots:
        if slot.missing:
            waiting.meet_or_wait(slot, moved=True)
    return [slot for slot in slots if any(slot.lines)]


def _key(line: Line, keys: dict[tuple[str | None, str], int], shapes: dict[str, str]) -> int:
    text = body(line)
    found = shapes.get(text)
    if found is None:
        found = shapes[text] = shape(text)
    return keys.setdefault((line.call_site, found), len(keys))


def _join_neighbours(
    blocks: Sequence[tuple[Block, list[Slot[Line]]]],
    placed: Sequence[Placed],
    origins: Sequence[int],
    window_ns: int,
) -> None:
    """Let lines meet across an edge that only a clock drew: what one said just before, one after."""
    loose = set[Block]().union(*(one.loose for one in placed))
    waiting: Waiting[Line] = Waiting(within_ns=window_ns, origins=origins)
    for block, slots in blocks:
        if block not in loose:
            continue
        fresh: Waiting[Line] = Waiting(within_ns=window_ns, origins=origins)
        for slot in slots:
            if slot.missing and not waiting.meet(slot):
                fresh.wait(slot)
        waiting = fresh
        slots[:] = [slot for slot in slots if any(slot.lines)]


def _pair_by_words(slots: list[Slot[Line]]) -> None:
    """Pair lines of one call site whose words mostly agree: `dtype bf16` and `dtype float`."""
    pair_alike(
        slots,
        lambda slot: _group(slot.first),
        lambda slot, other: _alike(slot.first, other.first),
    )


def _group(line: Line) -> tuple[str | None, int | None, int]:
    return line.call_site, line.level, len(body(line).split())


def _alike(line: Line, other: Line) -> bool:
    return words_alike(shape(body(line)).split(), shape(body(other)).split())


def make_hunk(
    op: str, block: Block, slot: Slot[Line], labels: Sequence[str], window_ns: int
) -> Hunk:
    """A hunk of one place, without its values."""
    _, has_iteration, number = block
    first = slot.first
    return Hunk(
        op=op,
        attempt=first.attempt,
        iteration=number if has_iteration else None,
        window_ns=None if has_iteration else first.ts_ns // window_ns * window_ns,
        call_site=first.call_site,
        template=first.template or shape(body(first)),
        lines={
            label: [] if line is None else [line]
            for label, line in zip(labels, slot.lines, strict=True)
        },
        moved=slot.moved,
    )


def extend_hunk(hunk: Hunk, slot: Slot[Line], labels: Sequence[str]) -> None:
    """Take one more place into the hunk."""
    for label, line in zip(labels, slot.lines, strict=True):
        if line is not None:
            hunk.lines[label].append(line)
