"""A synthetic SPMD job: 512 ranks on 64 hosts say nearly the same, iteration after iteration.

`corpus(lines, seed)` yields the frames of 64 agents (8 ranks each) in the order they would arrive;
`text_lines(frame)` is their bare text. A rank logs about a dozen lines an iteration, from fixed call
sites with numbers, times and ids, and now and then one of some 400 rarer messages; a few messages
come a handful of times in the whole job. Times are of nanosecond resolution, as `time.time_ns`
gives them; the text shows milliseconds. The same seed gives the same bytes.

Shapes: a window is up to WINDOW_ROWS rows of all ranks; columns are [n] in (agent, time) order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ranklog.model.frame import CallSite, Frame, FrameStream, StreamEnd
from ranklog.model.stream import Stream

RANKS = 512
RANKS_PER_HOST = 8
AGENTS = RANKS // RANKS_PER_HOST
START_NS = 1_772_366_403_000_000_000  # 2026-03-01T12:00:03Z
DURATION_NS = 5_400 * 1_000_000_000
WINDOW_ROWS = 524_288
FRAME_ROWS = 4_096
NEEDLE = "GPU has fallen off the bus"
# Whose lines report the loss, which the presets make metadata.
REPORT_SITE = "train/loop.py:203"

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Message:
    """What one call site says: `{kind}` fields between static parts (see `_Fields`)."""

    format: str
    level: int
    site: CallSite
    offset: float  # where in the iteration, 0..1


_LOOP = [
    ("data/loader.py:212 fetch train.data D", "fetched batch {n} shard {hex} in {ms} ms, queue {small}/64", 0.02),
    ("train/loop.py:88 step train.loop I", "iteration {iter} micro batch {small} begins, tokens {n}", 0.05),
    ("model/attention.py:301 forward model D", "attention forward {ms} ms kv cache {n} pages seq {id}", 0.2),
    ("model/moe.py:144 route model.moe D", "routed {n} tokens to {small} experts, dropped {small}, balance {f}", 0.3),
    ("train/loop.py:131 step train.loop I", "forward done in {ms} ms loss={loss}", 0.4),
    ("dist/reduce.py:77 reduce dist I", "all_reduce bucket {small} of {n} bytes took {ms} ms on comm {id}", 0.5),
    ("dist/reduce.py:93 gather dist D", "all_gather params of layer {small} took {ms} ms bandwidth {f} GB/s", 0.6),
    ("train/loop.py:160 backward train.loop I", "backward done in {ms} ms, {small} overflow checks", 0.7),
    ("train/optim.py:58 clip train.optim I", "grad norm {f} clipped to {f}, scale {n}", 0.8),
    ("train/loop.py:203 report train.loop I", "iteration {iter} loss {loss} lr {lr} tokens/s {n} mem {f} GiB mfu {f}", 0.9),
    ("train/memory.py:40 sample train.memory D", "allocated {n} MiB reserved {n} MiB peak {n} MiB fragmentation {f}", 0.95),
]  # fmt: skip
_RARE = [
    ("hw/health.py:19 poll hw C", "NVRM: Xid (PCI:{small}): 79, " + NEEDLE + ", pid {n}", 0.5),
    ("train/loop.py:240 guard train.loop W", "loss is NaN at iteration {iter}, skipping the update", 0.41),
    ("dist/watchdog.py:66 check dist E", "Watchdog caught collective operation timeout: WorkNCCL(SeqNum={n}, OpType=ALLREDUCE) ran for {n} milliseconds", 0.55),
    ("ckpt/save.py:120 save ckpt W", "checkpoint write {hex} retried {small} times: connection reset by peer", 0.99),
    ("data/loader.py:260 fetch train.data E", "shard {hex} failed its checksum, using replica {small}", 0.03),
]  # fmt: skip
_VERBS = (
    "opened closed flushed pruned moved merged cached evicted mapped pinned copied queued".split()
)
_NOUNS = "buffer tensor stream handle page block tile graph kernel socket lease ticket".split()
_PARTS = "allocator scheduler prefetcher profiler router checkpointer tokenizer sampler".split()
_TAILS = [
    "id {hex}",
    "size {n} in {ms} ms",
    "slot {small} ratio {f}",
    "key {id} age {n} ms",
    "rc {small}",
]
_LEVELS = {"D": 10, "I": 20, "W": 30, "E": 40, "C": 50}
_LEVEL_TEXT = {10: "DEBUG", 20: "INFO", 30: "WARNING", 40: "ERROR", 50: "CRITICAL"}
ODD_SHARE = 0.12  # of the lines are of the rarer messages
RARE_SHARE = 2e-5


def _message(place: str, text: str, offset: float) -> Message:
    site, function, logger, level = place.split()
    return Message(text, _LEVELS[level], CallSite(site, function, logger), offset)


def _odd_messages() -> list[Message]:
    """Some 400 messages of one component each."""
    found = []
    for i in range(400):
        part, verb = _PARTS[i % 8], _VERBS[i // 8 % 12]
        noun, other = _NOUNS[(i * 5 + i // 8) % 12], _NOUNS[(i * 7 + 3) % 12]
        place = f"{part}/{noun}.py:{40 + i} {verb}_{noun} {part} {'DDDI'[i % 4]}"
        text = f"{part} {verb} {noun} after {other} {_TAILS[i % 5]}"
        found.append(_message(place, text, (i * 37 % 100) / 100))
    return found


LOOP = [_message(*entry) for entry in _LOOP]
RARE = [_message(*entry) for entry in _RARE]
MESSAGES = [*LOOP, *_odd_messages(), *RARE]
STREAMS = tuple(
    Stream(
        tenant="bench",
        run="llama-70b",
        launch="7001",
        attempt=0,
        host=f"node-{rank // RANKS_PER_HOST:03d}",
        rank=rank,
        local_rank=rank % RANKS_PER_HOST,
        channel="logging",
        incarnation=f"{rank * 2654435761 % 2**32:08x}",
        world_size=RANKS,
    )
    for rank in range(RANKS)
)


def corpus(
    lines: int = 4_000_000,
    seed: int = 1,
    *,
    frame_rows: int = FRAME_ROWS,
    planted: int | None = None,
) -> Iterator[Frame]:
    """Frames of a job of so many lines; window by window, agents take turns. `planted`: exactly so
    many lines have the needle, at even distances, and no other rare message is there."""
    random = np.random.default_rng(seed)
    numbers = [0] * AGENTS
    next_seq = np.zeros(RANKS, np.int64)
    for first in range(0, lines, WINDOW_ROWS):
        count = min(WINDOW_ROWS, lines - first)
        window = _window(random, first, count, lines, planted)
        cuts = [
            _cut(window.agent_edges[a], window.agent_edges[a + 1], frame_rows)
            for a in range(AGENTS)
        ]
        for turn in range(max(map(len, cuts))):
            for agent in range(AGENTS):
                if turn < len(cuts[agent]):
                    last = first + count == lines and turn == len(cuts[agent]) - 1
                    yield _frame(window, agent, cuts[agent][turn], numbers, next_seq, last)


def text_lines(frame: Frame) -> bytes:
    """The frame's lines, each with its line feed, as they would stand in a file."""
    edges = np.zeros(frame.rows + 1, np.int32)
    np.cumsum(np.frombuffer(frame.text_length, "<u4"), out=edges[1:])
    texts = pa.Array.from_buffers(
        pa.binary(), frame.rows, [None, pa.py_buffer(edges), pa.py_buffer(frame.text)]
    )
    return (
        pc.binary_join_element_wise(texts, pa.scalar(b""), pa.scalar(b"\n"))
        .buffers()[2]
        .to_pybytes()
    )


# --- a window -----------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Window:
    rank: Ints
    ts: Ints
    message: Ints
    iteration: Ints
    text_edges: Ints
    text: bytes
    agent_edges: list[int]


def _window(
    random: np.random.Generator, first: int, count: int, lines: int, planted: int | None
) -> _Window:
    """Rows first .. first + count of the job, whose pace is even."""
    place = np.arange(first, first + count)
    per_iteration = RANKS * len(LOOP)
    iteration = place // per_iteration
    rank = place // len(LOOP) % RANKS
    message = place % len(LOOP)
    odd = np.flatnonzero(random.random(count) < ODD_SHARE)
    # Zipf-like: the first odd messages are frequent, the last come a few times.
    message[odd] = len(LOOP) + (400 * random.random(len(odd)) ** 3).astype(np.int64)
    if planted is None:
        rare = np.flatnonzero(random.random(count) < RARE_SHARE)
        message[rare] = len(MESSAGES) - len(RARE) + random.integers(0, len(RARE), len(rare))
    else:
        rare = (2 * np.arange(planted) + 1) * lines // (2 * planted) - first
        message[rare[(rare >= 0) & (rare < count)]] = len(MESSAGES) - len(RARE)
    iterations = max(lines / per_iteration, 1)
    step_ns = DURATION_NS / iterations
    offset = np.array([m.offset for m in MESSAGES])[message]
    late = np.abs(random.normal(0, 0.004, count)) + 0.02 * ((rank * 40503 % 997) / 997)
    ts = START_NS + ((iteration + 0.95 * offset + late) * step_ns).astype(np.int64)
    ts += random.integers(0, 1_000, count)  # float64 has no nanoseconds left here
    order = np.lexsort((ts, rank // RANKS_PER_HOST))
    rank, ts, message, iteration = rank[order], ts[order], message[order], iteration[order]
    edges, text = _texts(random, rank, ts, message, iteration)
    agents = np.searchsorted(rank // RANKS_PER_HOST, np.arange(AGENTS + 1))
    return _Window(rank, ts, message, iteration, edges, text, agents.tolist())


def _texts(
    random: np.random.Generator, rank: Ints, ts: Ints, message: Ints, iteration: Ints
) -> tuple[Ints, bytes]:
    """Lines: time, rank, level, call site, message."""
    order = np.argsort(message.astype(np.uint16), kind="stable")
    edges = np.searchsorted(message[order], np.arange(len(MESSAGES) + 1))
    parts = []
    for number, (start, end) in enumerate(pairwise(edges.tolist())):
        if start < end:
            rows = order[start:end]
            fields = _Fields(random, rank[rows], ts[rows], iteration[rows])
            parts.append(fields.render(MESSAGES[number]))
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    texts = pa.concat_arrays(parts).take(pa.array(back))
    offsets = np.frombuffer(texts.buffers()[1], np.int32)[: len(texts) + 1].astype(np.int64)
    return offsets, texts.buffers()[2].to_pybytes()[: int(offsets[-1])]


def _table(count: int, form: str) -> Any:
    return pa.array([format(i, form) for i in range(count)])


_TWO, _THREE, _FOUR, _HEX = (
    _table(100, "02d"),
    _table(1000, "03d"),
    _table(10_000, "04d"),
    _table(65_536, "04x"),
)


class _Fields:
    """Rendered fields of the rows of one message."""

    def __init__(self, random: np.random.Generator, rank: Ints, ts: Ints, iteration: Ints) -> None:
        self.random, self.rank, self.ts, self.iteration = random, rank, ts, iteration

    def render(self, message: Message) -> Any:
        pieces = self._head(message)
        for part in message.format.replace("}", "{").split("{"):
            found = getattr(self, f"_{part}", None) if part.isalpha() else None
            pieces += found() if found else [pa.scalar(part)]
        return pc.binary_join_element_wise(*pieces, "")

    def _head(self, message: Message) -> list[Any]:
        second, ms = self.ts // 1_000_000_000, self.ts // 1_000_000 % 1000
        day = second % 86_400
        clock = [_TWO.take(pa.array(v)) for v in (day // 3600, day // 60 % 60, day % 60)]
        where = f"] {_LEVEL_TEXT[message.level]} {message.site.site}: "
        colon = pa.scalar(":")
        return [
            *(pa.scalar("2026-03-01 "), clock[0], colon, clock[1], colon, clock[2]),
            *(pa.scalar(","), _THREE.take(pa.array(ms)), pa.scalar(" [rank "), _number(self.rank)),
            pa.scalar(where),
        ]

    def _below(self, limit: int) -> Ints:
        return self.random.integers(0, limit, len(self.rank))

    def _iter(self) -> list[Any]:
        return [_number(self.iteration)]

    def _n(self) -> list[Any]:
        return [_number(16_000 + self._below(4_000))]

    def _small(self) -> list[Any]:
        return [_number(self._below(32))]

    def _f(self) -> list[Any]:
        return [_number(self._below(3)), pa.scalar("."), _FOUR.take(pa.array(self._below(10_000)))]

    def _ms(self) -> list[Any]:
        return [
            _number(20 + self._below(12)),
            pa.scalar("."),
            _TWO.take(pa.array(self._below(100))),
        ]

    def _loss(self) -> list[Any]:
        value = (
            20_000 + 80_000 / (1 + self.iteration / 50) + self.random.normal(0, 40, len(self.rank))
        )
        loss = value.astype(np.int64)
        return [_number(loss // 10_000), pa.scalar("."), _FOUR.take(pa.array(loss % 10_000))]

    def _lr(self) -> list[Any]:
        rate = 30_000 - np.minimum(self.iteration * 20, 29_000)
        return [
            _number(rate // 10_000),
            pa.scalar("."),
            _FOUR.take(pa.array(rate % 10_000)),
            pa.scalar("e-4"),
        ]

    def _hex(self) -> list[Any]:
        """An id that never comes again."""
        return [_HEX.take(pa.array(self._below(65_536))) for _ in range(3)]

    def _id(self) -> list[Any]:
        """One of a few thousand ids."""
        which = self._below(4_096)
        return [
            pa.scalar("c"),
            *(_HEX.take(pa.array(which * k % 65_536)) for k in (40_503, 30_011)),
        ]


def _number(values: Ints) -> Any:
    return pa.array(values).cast(pa.string())


# --- frames -------------------------------------------------------------------------------------
_LEVEL_OF = np.array([message.level for message in MESSAGES], np.int16)


def _cut(start: int, end: int, size: int) -> list[tuple[int, int]]:
    return [(at, min(at + size, end)) for at in range(start, end, size)]


def _frame(
    window: _Window,
    agent: int,
    span: tuple[int, int],
    numbers: list[int],
    next_seq: Ints,
    last: bool,
) -> Frame:
    start, end = span
    rank, message = window.rank[start:end], window.message[start:end]
    used, site = np.unique(message, return_inverse=True)
    count = end - start
    numbers[agent] += 1
    streams = _frame_streams(agent, rank, next_seq, last)
    edges = window.text_edges[start : end + 1]
    return Frame(
        tenant="bench",
        agent=f"{agent:016x}",
        number=numbers[agent],
        previous="",
        streams=streams,
        rows=count,
        stream=(rank - agent * RANKS_PER_HOST).astype("<u2").tobytes(),
        ts=window.ts[start:end].astype("<i8").tobytes(),
        level=_LEVEL_OF[message].astype("<i2").tobytes(),
        site=(site + 1).astype("<u4").tobytes(),
        body_at=np.zeros(count, "<u4").tobytes(),
        flags=np.zeros(count, "<u2").tobytes(),
        group=np.full(count, 0xFFFFFFFF, "<u4").tobytes(),
        rank=np.full(count, -(2**31), "<i4").tobytes(),
        iteration=window.iteration[start:end].astype("<i8").tobytes(),
        text_length=np.diff(edges).astype("<u4").tobytes(),
        text=window.text[int(edges[0]) : int(edges[-1])],
        sites=tuple(MESSAGES[m].site for m in used.tolist()),
    )


def _frame_streams(
    agent: int, rank: Ints, next_seq: Ints, last: bool
) -> Sequence[FrameStream] | Any:
    entries = []
    for one in range(agent * RANKS_PER_HOST, (agent + 1) * RANKS_PER_HOST):
        rows = int((rank == one).sum())
        first = int(next_seq[one])
        next_seq[one] += rows
        end = StreamEnd(int(next_seq[one]), 0) if last else None
        entries.append(FrameStream(STREAMS[one], first, rows, end=end))
    return tuple(entries)
