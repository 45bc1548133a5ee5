"""Random corpora for the read path: rows that go through ingest, and the lines they must become."""

from __future__ import annotations

import random
import re
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


def random_id(rng: random.Random) -> str:
    """A token, or some: ids that share parts, numbers that look like ids, one too long to index."""
    pool = ["4fa1c07b92de", "4FA1c07b92df", "deadbeef4fa1c0", "c9d50aa1", "rank00012", "1234567e89"]
    kind = rng.randrange(8)
    if kind == 0:
        return "-".join(f"{rng.getrandbits(4 * n):0{n}x}" for n in (8, 4, 4, 12))
    if kind == 1:
        return rng.choice(["1" * 70 + "x1" * 30, "x1" * 64, "a1" * 65])
    if kind == 2:
        return f"{rng.choice(['req', 'K', 's', ''])}{rng.randrange(10**8):08d}{rng.choice(['', 'e', 'k'])}"
    if kind == 3:
        return rng.choice(pool) + rng.choice(["", "x", "\u212a", "\u017f", "\x00", "é"])
    if kind == 4:
        return f"{rng.getrandbits(40):010X}"
    token = rng.choice(pool)
    cut = rng.randrange(len(token))
    return token[cut:] + token[:cut]


def random_text(rng: random.Random, ids: bool = False) -> str:
    if ids and rng.random() < 0.6:
        parts = [rng.choice([random_id(rng), *WORDS]) for _ in range(rng.randint(1, 4))]
        parts.insert(rng.randint(0, len(parts)), random_id(rng))
        return rng.choice(["", " ", " ", ":"]).join(parts)
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


def random_corpus(seed: int, *, batches: int = 3, rows: int = 40, ids: bool = False) -> Corpus:
    """`ids`: most lines hold some."""
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
            row = _random_row(rng, stream, ts, ids)
            batch.append(row)
            corpus.lines.append(_line(row, next_seq[stream]))
            next_seq[stream] += 1
        corpus.batches.append(batch)
    return corpus


def _random_row(rng: random.Random, stream: Stream, ts: int, ids: bool) -> Row:
    return Row(
        text=random_text(rng, ids),
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


_ALNUM = re.compile(r"[0-9A-Za-z]+")
_BEFORE, _BEHIND = ("", r"\b", "^", "[^0-9]"), ("", r"\b", "$", ".")


def random_part(rng: random.Random, text: str, least: int, most: int) -> str:
    size = rng.randint(least, most)
    start = rng.randint(0, max(0, len(text) - size))
    return text[start : start + size]


def id_terms(rng: random.Random, corpus: Corpus, count: int) -> list[str]:
    """Terms on parts of the corpus's tokens: there, in another case, changed, across their ends."""
    texts = [text for line in corpus.lines if (text := line.text)]
    tokens = [token for text in texts for token in _ALNUM.findall(text) if len(token) > 3]
    return [_id_term(rng, rng.choice(texts), rng.choice(tokens)) for _ in range(count)]


def _id_term(rng: random.Random, text: str, token: str) -> str:
    part = random_part(rng, token, 3, 14)
    at = rng.randrange(len(part))
    kind = rng.randrange(8)
    if kind == 0:  # a neighbour that hardly any token has
        part = part[:at] + rng.choice("0af9Zk") + part[at + 1 :]
    if kind == 1:
        return f"/{rng.choice([part, part.upper(), part.lower()])}/i"
    if kind == 2:
        return f"/{rng.choice(_BEFORE)}{part}{rng.choice(_BEHIND)}/"
    if kind == 3:
        return f"/{part[:at]}[0-9a-f]{part[at + 1 :]}/{rng.choice(['', 'i'])}"
    if kind == 4:
        return f"/{part}|{random_part(rng, token, 5, 9)}x/"
    if kind in (5, 6):
        part = random_part(rng, text, 4, 20)
    quoted = part.replace("\\", "\\\\").replace('"', '\\"').replace("\x00", "\\x00")
    return f'"{quoted}"'


def random_query(rng: random.Random, depth: int = 2, terms: Sequence[str] = TERMS) -> str:
    """Terms under AND, OR and NOT."""
    if depth == 0 or rng.random() < 0.35:
        term = rng.choice(terms)
        return f"NOT {term}" if rng.random() < 0.25 else term
    parts = [random_query(rng, depth - 1, terms) for _ in range(rng.randint(2, 3))]
    joined = rng.choice([" ", " OR ", " AND "]).join(parts)
    return f"NOT ({joined})" if rng.random() < 0.15 else f"({joined})"
