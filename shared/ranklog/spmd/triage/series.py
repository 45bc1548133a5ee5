"""Numbers that lines of iterations carry: NaN, spikes, and ranks that take longer than their peers.

values[key][rank] is a list of (iteration, value) in order; rank -1: lines without a rank.
"""

from __future__ import annotations

import math
import re
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ranklog.model.answer import Line
from ranklog.spmd.triage.progress import iteration_of
from ranklog.spmd.triage.read import Sign, body_of

NOBODY = -1
_LOSS = re.compile(r"^(?:\w+[_ /.-])?loss$", re.IGNORECASE)
_NOT_LOSS = re.compile(r"eval|val|scale|best|avg|aux", re.IGNORECASE)
_TIME = re.compile(
    r"(?:^|_)(?:time|ms|s|elapsed|duration|fwd|bwd|forward|backward|compute|timing)(?:_|$)"
)
_NOT_TIME = re.compile(
    r"total|eta|train_time|avg|samples|tokens|tps|since|epoch|wait|comm|iter_time$"
)
_PAIR = re.compile(
    r"(?P<key>[A-Za-z_][\w/.-]*)(?: ?\((?:ms|s)\))? ?[=:]? ?"
    r"(?P<value>[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?|[-+]?inf\b|nan\b|NaN\b)(?: ?ms\b| ?s\b)?"
)
# Work per second of one rank; the times they stand for are compared.
_RATES = frozenset(
    ["tps", "tflops", "tokens_per_second", "samples_per_second", "throughput_tflops"]
)
SPIKE_VALUES_MIN = 6  # finite values before a jump that can be called one
SPIKE_MADS = 10.0
SPIKE_PAST, SPIKE_LASTS = 20, 4  # values that are compared: those before, and those that stay above
SLOW_FACTOR = 1.3
SLOW_MADS = 6.0
SLOW_SAMPLES_MIN = 4
SLOWDOWN_STEPS_MIN, SLOWDOWN_FACTOR = 15, 1.35


@dataclass(frozen=True, slots=True)
class Odd:
    """`ranks` empty: all of them. `iteration`: since when; `line`: the first that shows it; `key`: of
    the values that show it."""

    kind: str  # nan | spike | slow
    ranks: frozenset[int]
    iteration: int | None
    line: Line | None
    why: str
    lines: Sequence[Line] = ()
    key: str | None = None


Values = dict[str, dict[int, list[tuple[int, float, Line]]]]


def read_values(steps: Iterable[Line]) -> Values:
    """Losses and times of lines that name an iteration."""
    values: Values = defaultdict(lambda: defaultdict(list))
    for line in steps:
        iteration = iteration_of(line)
        if iteration is None:
            continue
        rank = NOBODY if line.rank is None else line.rank
        for key, value in _numbers(line).items():
            values[key][rank].append((iteration, value, line))
    return values


def _numbers(line: Line) -> dict[str, float]:
    found: dict[str, float] = {
        key: float(value)
        for key, value in line.metadata.items()
        if isinstance(value, int | float) and (is_value(key) or key == "bar_rate")
    }
    for match in _PAIR.finditer(body_of(line)):
        key = match["key"].strip("_")
        if key not in found and (is_loss(key) or is_time(key)):
            found[key] = float(match["value"])
    return found


def is_value(key: str) -> bool:
    """Whether a name is one that is judged: a loss, or a time or a rate of a rank."""
    return is_loss(key) or is_time(key) or _is_rate(key)


def is_loss(key: str) -> bool:
    """Whether a name is the loss's that is trained on."""
    return _LOSS.match(key) is not None and _NOT_LOSS.search(key) is None


def is_time(key: str) -> bool:
    """Whether a name is a time that a rank takes itself."""
    return _TIME.search(key.lower()) is not None and _NOT_TIME.search(key.lower()) is None


def _is_rate(key: str) -> bool:
    return key in _RATES


def find_nan(values: Values) -> Odd | None:
    """A loss that was finite and is NaN or infinite to the end. Who had it first, where several
    ranks print theirs."""
    firsts: dict[int, tuple[int, Line, str]] = {}
    speaking: dict[int, set[int]] = {}
    for key, by_rank in values.items():
        if not is_loss(key):
            continue
        for rank, items in by_rank.items():
            onset = _nan_onset(items)
            speaking.setdefault(rank, set()).update(iteration for iteration, _, _ in items)
            if onset is not None and (rank not in firsts or onset[0] < firsts[rank][0]):
                firsts[rank] = (*onset, key)
    if not firsts:
        return None
    first, key = min((iteration, key) for iteration, _, key in firsts.values())
    odd = frozenset(rank for rank, (iteration, _, _) in firsts.items() if iteration == first)
    lines = [line for rank, (_, line, _) in sorted(firsts.items()) if rank in odd][:6]
    others = {rank for rank, seen in speaking.items() if rank not in odd and first in seen}
    ranks = odd if others and NOBODY not in odd else frozenset[int]()
    why = f"the loss is not finite since iteration {first}"
    return Odd("nan", ranks, first, lines[0], why, lines, key)


def _nan_onset(items: Sequence[tuple[int, float, Line]]) -> tuple[int, Line] | None:
    at = len(items)
    while at and not math.isfinite(items[at - 1][1]):
        at -= 1
    finite = sum(math.isfinite(value) for _, value, _ in items[:at])
    if at == len(items) or finite < 1:
        return None
    return items[at][0], items[at][2]


def find_spike(values: Values) -> Odd | None:
    """A loss that jumps far above its past and stays there for some iterations."""
    for key, by_rank in values.items():
        if not is_loss(key):
            continue
        found = {rank: at for rank, items in by_rank.items() if (at := _jump(items)) is not None}
        if (
            not found
            or len(found) < len([r for r in by_rank if len(by_rank[r]) > SPIKE_VALUES_MIN]) / 2
        ):
            continue
        rank, at = min(found.items(), key=lambda item: by_rank[item[0]][item[1]][0])
        iteration, value, line = by_rank[rank][at]
        return Odd("spike", frozenset(), iteration, line, f"{key} jumps to {value:g}", [line], key)
    return None


def _jump(items: Sequence[tuple[int, float, Line]]) -> int | None:
    """Where the values leave their past for good."""
    values = [value for _, value, _ in items]
    if len(values) < SPIKE_VALUES_MIN + 2 or not all(map(math.isfinite, values)):
        return None
    for at in range(SPIKE_VALUES_MIN, len(values) - 1):
        past = values[max(0, at - SPIKE_PAST) : at]
        middle = statistics.median(past)
        spread = statistics.median(abs(value - middle) for value in past)
        top = max(past)
        after = values[at : at + SPIKE_LASTS]
        if values[at] > max(1.5 * top, middle + SPIKE_MADS * spread) and min(after) > 1.2 * top:
            return at
    return None


def find_slowdown(values: Values, firsts: Sequence[tuple[int, int]]) -> Odd | None:
    """Iterations that take longer than they did at first, to the end; who makes them, nobody tells."""
    paces = _paces(values, firsts)
    if len(paces) > 4:  # what came before a break of the whole run is another attempt's
        long = 10 * statistics.median(paces)
        paces = paces[max((at + 1 for at, pace in enumerate(paces) if pace > long), default=0) :]
    paces = paces[2:]  # the first ones compile and fill caches
    if len(paces) < SLOWDOWN_STEPS_MIN:
        return None
    early = statistics.median(paces[: max(4, len(paces) // 6)])
    late = statistics.median(paces[len(paces) // 2 :])
    last = statistics.median(paces[len(paces) * 3 // 4 :])
    if early <= 0 or min(late, last) < SLOWDOWN_FACTOR * early:
        return None
    why = (
        f"iterations take {late:.3g} s and took {early:.3g} s; no rank's own times tell who is slow"
    )
    bars = max(values.get("bar_rate", {}).values(), key=len, default=[])
    lines = [line for _, _, line in bars[-3:]]
    return Odd("slow", frozenset(), None, lines[0] if lines else None, why, lines)


def _paces(values: Values, firsts: Sequence[tuple[int, int]]) -> list[float]:
    """Seconds per iteration, one after the other: as a bar tells them, else between lines."""
    bars = max(values.get("bar_rate", {}).values(), key=len, default=[])
    if len(bars) > len(firsts):
        anew = (at for at, (b, a) in enumerate(pairwise(bars), 1) if a[0] < b[0])
        return [1 / rate for _, rate, _ in bars[max(anew, default=0) :] if rate > 0]
    pairs = pairwise(firsts)
    return [(b[0] - a[0]) / 1e9 / (b[1] - a[1]) for a, b in pairs if b[1] > a[1]]


def find_slow(values: Values, rank_times: Sequence[Sign]) -> Odd | None:
    """Ranks whose own times are above their peers', iteration by iteration."""
    tables = {key: table for key in values if (table := _times_of(values, key))}
    reported = _reported(rank_times)
    found: dict[str | None, tuple[float, frozenset[int]]] = {
        key: slow for key, table in tables.items() if (slow := _slow_ranks(table)) is not None
    }
    if (slow := _slow_ranks(reported)) is not None:
        found[None] = slow
    if not found:
        return None
    key = max(found, key=lambda key: found[key][0])
    ratio, ranks = found[key]
    lines = [
        items[-1][2]
        for told in tables
        for rank, items in sorted(values[told].items())
        if rank in ranks
    ]
    lines = lines or [sign.line for sign in rank_times if sign.ranks <= ranks]
    why = f"takes {ratio:.2f} times as long as its peers"
    return Odd("slow", ranks, None, lines[0] if lines else None, why, lines[-6:], key)


def _times_of(values: Values, key: str) -> dict[int, list[tuple[int, float]]]:
    """(iteration, time) of each rank, of a time or a rate; empty for what is neither."""
    if not is_time(key) and not _is_rate(key):
        return {}
    table: dict[int, list[tuple[int, float]]] = {}
    for rank, items in values[key].items():
        if rank == NOBODY:
            continue
        if is_time(key):
            table[rank] = [(iteration, value) for iteration, value, _ in items]
        else:
            table[rank] = [(iteration, 1 / value) for iteration, value, _ in items if value > 0]
    return table


def _reported(signs: Sequence[Sign]) -> dict[int, list[tuple[int, float]]]:
    """Times of all ranks that one rank prints below each other, report by report."""
    table: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for sign in signs:
        for rank in sign.ranks:
            table[rank].append((len(table[rank]), float(sign.data["value"])))
    return table


def _slow_ranks(
    table: Mapping[int, list[tuple[int, float]]],
) -> tuple[float, frozenset[int]] | None:
    """By the second half of what each rank tells: (how much slower, ranks)."""
    halves = {
        rank: [value for _, value in items[len(items) // 2 :]]
        for rank, items in table.items()
        if len(items) >= SLOW_SAMPLES_MIN
    }
    if len(halves) < 3:
        return None
    usual = {rank: statistics.median(values) for rank, values in halves.items()}
    order = sorted(usual.values())
    # where the values part most: those above are slow if they are no more than half
    at = max(range(len(order) - len(order) // 2, len(order)), key=lambda i: order[i] - order[i - 1])
    middle = statistics.median(order[:at])
    spread = statistics.median(abs(value - middle) for value in order[:at])
    bound = max(order[at - 1] * SLOW_FACTOR, middle + SLOW_MADS * spread)
    slow = frozenset(rank for rank, value in usual.items() if value > bound)
    steady = frozenset(
        rank for rank in slow if sum(v > middle for v in halves[rank]) >= 0.75 * len(halves[rank])
    )
    if not steady or len(steady) > len(usual) / 2 or middle <= 0:
        return None
    return statistics.median(usual[rank] for rank in steady) / middle, steady
