"""Wrappers that transports put around a line: which a file has, and peeling them off, layer by layer.

Shapes: n lines. `Peeled.body_at[i]` is the offset in the text where line i's body begins; labels are
int32[n] with NONE where a line has none. A label is what the wrapper says, not yet a global rank.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ranklog.importer.lines import I64, U8, Flags
from ranklog.importer.windows import extract, lengths, matches, slices, to_integers

NONE = -1
_WINDOW_BYTES = 256
_ROUNDS_MAX = 8
_DIGITS = b"0123456789"
_LETTERS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_WORD = _DIGITS + _LETTERS + b"_"
_ISO = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"


@dataclass(frozen=True, slots=True)
class Layer:
    """One wrapper. `first`: bytes it can begin with. `literal` stands in every line that has it.

    `share`: how large a part of a file's lines must have it before it is believed at all (the
    expressions of those layers also match what programs print). Groups: task, rank, local are
    labels; time is the wrapper's. `limit`: task ids from here on are none.
    """

    name: str
    pattern: str
    first: bytes
    literal: bytes = b""
    share: float = 0.0
    limit: int | None = None


# Outermost first as far as there is an order; lines carry them in any.
LAYERS: tuple[Layer, ...] = (
    Layer("colour", r"^(?:\x1b\[[0-9;]*m|\[\d[0-9;]*m)+", b"\x1b[", b"m"),
    Layer("kubectl", r"^\[pod/[\w.-]+/[\w.-]+\] ", b"[", b"[pod/"),
    # [1,3], and [prterun-host-4711@1,3] since Open MPI 5
    Layer(
        "mpirun", r"^\[(?:[\w.-]+@)?\d+,(?P<rank>\d{1,9})\]<std(?:out|err|diag)>: ?", b"[", b"]<std"
    ),
    # the files of a Kubernetes node
    Layer("cri", r"^(?P<time>" + _ISO + r") std(?:out|err) [FP] ", _DIGITS, b" std"),
    Layer("milabench", r"^[\w.-]+ \[(?:stderr|stdout)\] ", _WORD, b" [std"),
    Layer("ray", r"^\([^()]{0,80}?pid=\d+(?:, ip=[\d.]+)?\)(?:\x1b?\[\d*m)? ?", b"(", b"pid="),
    Layer("nemo_run", r"^[\w.-]+/\d+ \[[a-z_]+(?P<local>\d+)\]:", _WORD, b" ["),
    Layer("rank_tag", r"^\[rank(?P<rank>\d{1,9})\]: ?", b"[", b"[rank"),
    Layer("tee", r"^\[(?P<role>[A-Za-z_][\w-]{0,40}?)(?P<local>\d{1,5})\]:", b"[", b"]:", 0.1),
    # srun always writes the blank; transports may strip it from an empty line's end.
    Layer("srun", r"^ *(?P<task>\d{1,7}):(?: |$)", b" " + _DIGITS, b":", 0.9),
    Layer(
        "pdsh",
        r"^(?P<host>[A-Za-z][\w-]*\d[\w.-]*|localhost|\d{1,3}(?:\.\d{1,3}){3}): ",
        _DIGITS + _LETTERS,
        b": ",
        0.9,
    ),
    Layer("compose", r"^(?P<host>[A-Za-z][\w.-]*) +\| ?", _LETTERS, b"| ", 0.9),
    Layer("counter", r"^\[(?P<count>\d+)\] ?", b"[", b"] ", 0.9),
    Layer("time", r"^(?: *\| )?(?P<time>" + _ISO + r")(?: \| |[ \t])", b" |" + _DIGITS, b":", 0.9),
)


@dataclass(slots=True)
class Peeled:
    """Where bodies begin and what the wrappers said."""

    body_at: I64
    task: npt.NDArray[np.int32]
    rank: npt.NDArray[np.int32]
    local: npt.NDArray[np.int32]
    time_rows: I64  # lines with a wrapper's time, ascending, and its text
    times: Any
    rows: dict[str, I64]  # layer -> its lines

    @property
    def seen(self) -> list[str]:
        """Names of the layers that some line has."""
        return [layer.name for layer in LAYERS if len(self.rows.get(layer.name, ()))]


def peel(text: bytes, starts: I64, ends: I64, layers: Sequence[Layer]) -> Peeled:
    """Peel off whatever of these layers lines carry, in whatever order; each once, colours again."""
    count = len(starts)
    labels = {name: np.full(count, NONE, np.int32) for name in ("task", "rank", "local")}
    pieces: dict[str, list[I64]] = {}
    times: list[tuple[I64, Any]] = []
    at = starts.copy()
    present: dict[str, bool] = {}  # a literal is looked for when a line begins like the layer
    done = {layer.name: np.zeros(count, np.bool_) for layer in layers}
    active = np.arange(count)
    content = np.frombuffer(text, np.uint8)
    for _ in range(_ROUNDS_MAX):
        moved: list[I64] = []
        for layer in layers:
            rows = _candidates(content, at, ends, active, layer, done[layer.name])
            if not len(rows):
                continue
            if layer.name not in present:
                present[layer.name] = layer.literal in text
            if not present[layer.name]:
                continue
            rows, groups = _peel_layer(text, at, ends, rows, layer)
            if not len(rows):
                continue
            done[layer.name][rows] = layer.name != "colour"
            pieces.setdefault(layer.name, []).append(rows)
            moved.append(rows)
            for name in labels.keys() & groups.keys():
                fresh = labels[name][rows] == NONE
                labels[name][rows[fresh]] = to_integers(groups[name], NONE)[fresh]
            if "time" in groups:
                times.append((rows, groups["time"]))
        if not moved:
            break
        active = np.unique(np.concatenate(moved))
    time_rows, values = _joined(times)
    found = {name: np.unique(np.concatenate(rows)) for name, rows in pieces.items()}
    return Peeled(at, **labels, time_rows=time_rows, times=values, rows=found)


def _joined(pieces: list[tuple[I64, Any]]) -> tuple[I64, Any]:
    """Pieces of (lines, values) as one, lines ascending."""
    if not pieces:
        return np.empty(0, np.int64), pa.array([], pa.binary())
    rows = np.concatenate([rows for rows, _ in pieces])
    values = pa.concat_arrays([values for _, values in pieces])
    order = np.argsort(rows, kind="stable")
    return rows[order], values.take(pa.array(order))


def _candidates(content: U8, at: I64, ends: I64, active: I64, layer: Layer, done: Flags) -> I64:
    """Active lines that go on with a byte that the layer can begin with."""
    rows = active[(at[active] < ends[active]) & ~done[active]]
    allowed = np.zeros(256, np.bool_)
    allowed[list(layer.first)] = True
    kept: I64 = rows[allowed[content[at[rows]]]]
    return kept


def _peel_layer(
    text: bytes, at: I64, ends: I64, rows: I64, layer: Layer
) -> tuple[I64, dict[str, Any]]:
    """The lines that had the layer, moved behind it, with its groups' values."""
    if not len(rows):
        return rows, {}
    stops = np.minimum(ends[rows], at[rows] + _WINDOW_BYTES)
    wrapped = "^(?P<whole>" + layer.pattern.removeprefix("^") + ")"
    matched, groups = extract(slices(text, at[rows], stops), wrapped)
    if layer.limit is not None and "task" in groups:
        matched &= to_integers(groups["task"], NONE) < layer.limit
    rows, mask = rows[matched], pa.array(matched)
    kept = {name: values.filter(mask) for name, values in groups.items()}
    at[rows] += lengths(kept.pop("whole"))
    return rows, kept


# --- which layers a file has -------------------------------------------------------------------
# What launchers and shells write beside the tasks' output, without a label.
_LAUNCHER = r"^(?:\++ |srun: |slurmstepd|sbatch: |scancel: |salloc: |\r?$)"
_SRUN_LABELS = re.compile(rb"\bsrun\b[^\n]* (?:-l|--label)\b[^\n]*")
_TASKS = re.compile(rb" (?:--ntasks[= ]|-n ?)(\d+)\b")
_TASKS_SAID = re.compile(rb"\bSLURM_N(?:TASKS|PROCS)[= ](\d+)\b")
# Where the launch itself asks for labels, less of the file has to have them.
_SHARE_ASKED_FOR = 0.3
# A host or service that speaks is met many times; words before a colon are not.
_NAMES_SHARE_MAX = 0.02
# In a short file so many names are few, where each has five lines or more.
_HOSTS_FEW = 8


def find_layers(text: bytes, starts: I64, ends: I64) -> tuple[Layer, ...]:
    """The layers to peel in a file, judged by its beginning."""
    free = [layer for layer in LAYERS if not layer.share]
    judged = [layer for layer in LAYERS if layer.share]
    active = list(free)
    for _ in range(3):  # an accepted layer uncovers the next
        at = peel(text, starts, ends, active).body_at
        known = {layer.name for layer in active}
        added = [
            accepted
            for layer in judged
            if layer.name not in known
            and (accepted := _judge(layer, text, starts, at, ends)) is not None
        ]
        if not added:
            break
        active += added[:1]
    return tuple(sorted(active, key=lambda layer: _ORDER[layer.name]))


_ORDER = {layer.name: place for place, layer in enumerate(LAYERS)}


def _judge(layer: Layer, text: bytes, starts: I64, at: I64, ends: I64) -> Layer | None:
    """The layer as it is to be used, or None where the file does not have it."""
    if layer.literal not in text or not len(starts):
        return None
    bodies = slices(text, at, np.minimum(ends, at + _WINDOW_BYTES))
    matched, groups = extract(bodies, layer.pattern)
    tasks = int((~matches(bodies, _LAUNCHER) | matched).sum())
    share = float(matched.sum()) / max(1, tasks)
    mask = pa.array(matched)
    values = {name: array.filter(mask) for name, array in groups.items()}
    rest = bodies.filter(mask)
    judge = _JUDGES[layer.name]
    return judge(layer, share, values, rest, text) if len(rest) else None


def _judge_srun(layer: Layer, share: float, values: Any, rest: Any, text: bytes) -> Layer | None:
    """Labels stand on nearly all lines, are below the number of tasks, and are no line numbers."""
    launches = _SRUN_LABELS.findall(text)
    ids = to_integers(values["task"], NONE)
    distinct = np.unique(ids)
    is_alone = len(distinct) == 1
    if share <= (_SHARE_ASKED_FOR if launches and not is_alone else layer.share):
        return None
    # Line numbers ascend from line to line, tasks speak in any order.
    ascends = len(ids) > 4 and (np.diff(ids) > 0).mean() > 0.9
    is_numbering = ascends and len(distinct) > 0.5 * len(ids)
    said = _TASKS.findall(b"\n".join(launches)) + _TASKS_SAID.findall(text)
    tasks = max(map(int, said), default=0)
    if is_numbering or (is_alone and not launches) or (tasks and (ids >= tasks).mean() > 0.01):
        return None
    return replace(layer, limit=tasks or None)


def _judge_tee(layer: Layer, share: float, values: Any, rest: Any, text: bytes) -> Layer | None:
    """torchrun's role is `default` unless the job names it; other roles must be met often."""
    roles = set(values["role"].to_pylist())
    local = np.unique(to_integers(values["local"], NONE))
    is_dense = len(roles) == 1 and int(local[-1]) < 256 and len(rest) > 1
    return layer if b"default" in roles or (share > layer.share and is_dense) else None


def _judge_host(layer: Layer, share: float, values: Any, rest: Any, text: bytes) -> Layer | None:
    """A few names, on nearly all lines."""
    names = set(values["host"].to_pylist())
    few = len(names) <= max(1, _NAMES_SHARE_MAX * len(rest), min(_HOSTS_FEW, len(rest) // 5))
    return layer if share > layer.share and few and len(rest) > 4 else None


def _judge_counter(layer: Layer, share: float, values: Any, rest: Any, text: bytes) -> Layer | None:
    """Line numbers ascend, by one each."""
    numbers = to_integers(values["count"], NONE)
    ascends = len(numbers) > 4 and (np.diff(numbers) == 1).mean() > 0.9
    return layer if share > layer.share and ascends else None


def _judge_time(layer: Layer, share: float, values: Any, rest: Any, text: bytes) -> Layer | None:
    """A wrapper's time stands on every line, also where the program would write none.

    A program's own time is followed by its level, logger or message; behind a wrapper's stand
    lines that begin with a time of their own, with a rank tag, or go on with a record.
    """
    inner = matches(rest, r"^(?: *\| )?" + _ISO + r"(?: \| |[ \t])" + _INNER)
    return layer if share > layer.share and inner.mean() > 0.05 else None


_INNER = (
    r"(?:\[rank\d+\]:|\[\w+\d+\]:|frame #\d+:|Traceback \(most|\x1b?\[\d|"
    r"[ \t]{2,}|\[?\d{4}[-/]\d\d[-/]\d\d[ T]|\[?[IWEF]\d{3,4} \d\d:)"
)
_JUDGES = {
    "srun": _judge_srun,
    "tee": _judge_tee,
    "pdsh": _judge_host,
    "compose": _judge_host,
    "counter": _judge_counter,
    "time": _judge_time,
}
