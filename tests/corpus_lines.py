"""Random corpora for the read path: rows that go through ingest, and the lines they must become."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from ranklog.ingest.batch import ingest_batch
from ranklog.model.answer import Line
from ranklog.model.frame import NO_GROUP, NO_ITERATION, NO_LEVEL, NO_RANK, STREAM_RANK, CallSite
from ranklog.model.record import Record
from ranklog.model.stream import Stream
from ranklog.store.protocol import Store
from ranklog.stream.frames import encode_frame
from tests.ingest.frames import T0, Row, make_frame

TENANT = "acme"
# All lines of a random corpus lie between.
BOUNDS = {"since": "2026-02-28", "until": "2026-03-03"}
SECOND = 1_000_000_000
WORDS = [
    "loss",
    "step",
    "NCCL",
    "error",
    "fallen off the bus",
    "K",
    "\u212a",
    "\u017f",
    "é",
    "日本",
]
VARIABLES = ["7", "rank3", "0x7f3a", "1.5e-05", "nan", "abc123f", "12:30:01", "gpu-01", "i9"]
ODD = ["\x00", "\r", "\x1b[31m", "\t", "\ufffd", "[", "{}", "'", '"', "\\", "%", "=", " "]
SITES = [
    None,
    CallSite("trainer.py:88", "train", "megatron"),
    CallSite("/opt/app/trainer.py:88", "fit"),
    CallSite("lib/trainer.py:9", None, "torch"),
    CallSite("x.py", None, None),
]


def random_text(rng: random.Random) -> str:
    if rng.random() < 0.05:
        return ""
    if rng.random() < 0.02:
        return "long " + "x1y" * 5_000
    parts = [
        rng.choice(rng.choice([WORDS, VARIABLES, VARIABLES, ODD])) for _ in range(rng.randint(1, 6))
    ]
    return rng.choice(["", " "]).join(parts)


def random_metadata(rng: random.Random) -> dict[str, int | float | str]:
    found: dict[str, int | float | str] = {}
    if rng.random() < 0.5:
        found["loss"] = rng.choice(
            [0.5, -1.0, 2.0, float("nan"), float("inf"), float("-inf"), 1e300, 3, -7, 2**53 + 1]
        )
    if rng.random() < 0.4:
        found["dataset"] = rng.choice(["c4", "c4/en", "", "*", "3", "NaN"])
    if rng.random() < 0.2:
        found["n"] = rng.choice([0, 3, -(2**62), 2**62])
    return found


@dataclass
class Corpus:
    """Rows by batch, and every line once."""

    batches: list[list[Row]] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    firsts: list[dict[Stream, int]] = field(default_factory=list)

    def ingest(self, store: Store, *, twice: bool = False) -> None:
        """Each batch through ingest; `twice`: the frames come again with the next batch."""
        for i, (rows, first_seq) in enumerate(zip(self.batches, self.firsts, strict=True)):
            frame = make_frame(rows, first_seq=first_seq, number=i + 1)
            data = encode_frame(frame)
            for copy in range(1 + twice):
                name = f"{i}-{copy}"
                record = Record(data, T0 + 86_400 * SECOND, name)
                report = ingest_batch([record], store=store, source="k", first=name, last=name)
                assert report.bad == []


def random_corpus(seed: int, *, batches: int = 3, rows: int = 40) -> Corpus:
    rng = random.Random(seed)
    streams = [
        Stream(TENANT, "llama", "17", 0, "gpu-01.cluster", r, r % 2, "stdout", "0")
        for r in range(3)
    ]
    streams += [
        Stream(TENANT, "llama", "17", 1, "gpu-02", 3, None, "stderr", "1", source="/logs/a.log"),
        Stream(TENANT, "other", "x", 0, None, None, None, "console", "0", copy=True),
    ]
    corpus = Corpus()
    next_seq = dict.fromkeys(streams, 0)
    ts = T0
    for _ in range(batches):
        batch: list[Row] = []
        corpus.firsts.append(dict(next_seq))
        for _ in range(rows):
            stream = rng.choice(streams)
            ts += rng.choice([0, 1, SECOND, 60 * SECOND])
            row = _random_row(rng, stream, ts)
            batch.append(row)
            corpus.lines.append(_line(row, next_seq[stream]))
            next_seq[stream] += 1
        corpus.batches.append(batch)
    return corpus


def _random_row(rng: random.Random, stream: Stream, ts: int) -> Row:
    return Row(
        text=random_text(rng),
        ts=ts,
        stream=stream,
        level=rng.choice([NO_LEVEL, NO_LEVEL, 10, 20, 30, 40, 50, 15]),
        site=rng.choice(SITES),
        rank=rng.choice([STREAM_RANK] * 5 + [NO_RANK, 1, 9]),
        iteration=rng.choice([NO_ITERATION, 0, 1, 2, 3, 50, 51, 100]),
        metadata=random_metadata(rng),
        group=NO_GROUP,
    )


def _line(row: Row, seq: int) -> Line:
    stream = row.stream
    rank = stream.rank if row.rank == STREAM_RANK else None if row.rank == NO_RANK else row.rank
    assert isinstance(row.text, str)
    return Line(
        stream_id=stream.stream_id,
        seq=seq,
        ts_ns=row.ts,
        run=stream.run,
        launch=stream.launch,
        attempt=stream.attempt,
        rank=rank,
        local_rank=stream.local_rank,
        host=stream.host,
        channel=stream.channel,
        group=None,
        level=None if row.level == NO_LEVEL else row.level,
        call_site=row.site.site if row.site else None,
        function=row.site.function if row.site else None,
        logger=row.site.logger if row.site else None,
        text=row.text,
        iteration=None if row.iteration == NO_ITERATION else row.iteration,
        metadata=dict(row.metadata),
        copy=stream.copy,
        source=stream.source,
    )


TERMS: Sequence[str] = (
    "*",
    "loss",
    '"fallen off"',
    '"\\x00"',
    "abc12",
    "3f",
    "é",
    "/loss|step/",
    "/k/i",
    "/s/i",
    "/^nccl/i",
    "/[0-9]{2,}:30/",
    "/^$/",
    "/a.c/s",
    "/x1y{1}x1/",
    "/\\bnan\\b/",
    "/rank\\d/",
    "/e$/m",
    "//",
    "rank:0-1",
    "rank:9",
    "rank:null",
    "rank!=3",
    "rank>=2",
    "local_rank:1",
    "local_rank:*",
    "host:gpu-01",
    "host:gpu-01.cluster",
    "host:/^gpu/",
    "host:null",
    "host!=gpu-01",
    "attempt:1",
    "(run:other OR run:nope)",
    "channel:std*",
    'source:"/logs/a.log"',
    "copy:true",
    "level>=WARNING",
    "level:ERROR,INFO",
    "level:null",
    "level!=ERROR",
    "level:15",
    "iteration:1..51",
    "iteration:null",
    "iteration!=1",
    "step>50",
    "call_site:trainer.py:88",
    "call_site:trainer.py",
    "call_site:lib/trainer.py",
    "call_site:train*",
    "call_site:null",
    "call_site!=trainer.py",
    "call_site:/a.p/",
    "function:fit",
    "logger:m*",
    "logger:*",
    'template:"<*>"',
    "template:*loss*",
    "loss>0",
    "loss<=2",
    "loss<3.5",
    "loss:NaN",
    "loss!=NaN",
    "loss:Inf",
    "loss:-Inf",
    "loss>=-Inf",
    "loss:3",
    "loss!=3",
    "loss:2..",
    "loss:9007199254740993",
    "loss<9007199254740993",
    "loss:null",
    "loss:*",
    "dataset:c4",
    'dataset:"3"',
    "dataset:3",
    "dataset:c4*",
    'dataset:"\\*"',
    "dataset:/4/",
    "dataset:null",
    "dataset!=c4",
    'dataset:""',
    "n:4611686018427387904",
    "n>=1e3",
    "n<0.5",
    "nokey:*",
    "nokey:null",
    "time:2026-03-01T00:05..00:20",
)


def random_query(rng: random.Random, depth: int = 2) -> str:
    """Terms under AND, OR and NOT."""
    if depth == 0 or rng.random() < 0.35:
        term = rng.choice(TERMS)
        return f"NOT {term}" if rng.random() < 0.25 else term
    parts = [random_query(rng, depth - 1) for _ in range(rng.randint(2, 3))]
    joined = rng.choice([" ", " OR ", " AND "]).join(parts)
    return f"NOT ({joined})" if rng.random() < 0.15 else f"({joined})"
