"""`python -m tests.fuzz_bytes`: mutated frames, indexes, segments, HTTP bodies and queries.

    python -m tests.fuzz_bytes [--count 100000] [--seed 1] [--seconds 3600]

Each is taken, or refused with an error of ours: no other exception, nothing that lasts longer than 20 s, no more than
4 GiB of memory beyond the start, and no wrong answer. A mutated frame that decodes is the frame it was, unless the
mutation repaired its hashes as a forger would; an answer over a mutated object has the lines that are there, or does not
claim to be complete; the API never answers 500 to what a client sent. Stops at the first failure and prints the seed of it.
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ranklog.api.app import Handler
from ranklog.api.local import make_handler
from ranklog.client import Client
from ranklog.errors import Corrupt, NewerVersion, RanklogError
from ranklog.ingest.batch import ingest_batch
from ranklog.model.record import Record
from ranklog.store.memory import MemoryStore
from ranklog.stream.frames import PRELUDE, decode_frame, encode_frame, seal_frame
from ranklog.stream.header import hash_header
from tests.api.job import NOW_NS, frame_of
from tests.ingest.frames import T0, Row, make_frame

HANG_S = 20
MEMORY_BYTES = 4 << 30
# Of a hundred, so many of each: an answer costs as much as fifty frames.
SHARES = {"frame": 62, "ingest": 12, "index": 8, "segment": 6, "http": 12}

WORDS = (
    'loss "a b" /lo+ss/i -x NOT OR AND ( ) rank:0-2 level>=ERROR iteration:1..3 since:1h near(loss,time,3s) '
    'spike(loss,3) * key:null a:1,2 x:/y/ \\ " / : = .. 99999999999999999999 NaN -Inf é \ud800 \x00 '
    "time:2026-01-01..02 last:10m meta.loss>1 call_site:train.py:7 host:gpu-* run:job@l1 kind:point"
).split(" ")
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**63, 1e308, "", "x", "job", "0,1", "10s", "100i", "newest", [], ["rank"],
    {}, {"a": []}, [[[[]]]], "é" * 300, "\x00", "../..", "2026-01-01", "main", "jsonl",
)  # fmt: skip
MEMBERS = (
    "query run attempt rank host level iteration since until last tz full_scan limit order cursor fields context "
    "explain pin timeout by every top stats ranks with all format thread columns aggregate max_points stat detect"
).split()
ROUTES = (
    "search count series compare outliers triage stacks export runs callsites patterns tail frames health x"
).split()


# --- mutations ----------------------------------------------------------------------------------
def mutated(data: bytes, draw: random.Random) -> bytes:
    """A few bytes changed, cut, doubled, moved, or numbers set to their ends."""
    out = bytearray(data)
    for _ in range(draw.choice((1, 1, 1, 2, 4, 16))):
        if not out:
            break
        at = draw.randrange(len(out))
        kind = draw.randrange(7)
        if kind == 0:
            out[at] ^= 1 << draw.randrange(8)
        elif kind == 1:
            out[at] = draw.choice((0, 1, 0x7F, 0x80, 0xFF))
        elif kind == 2:
            del out[at : at + draw.choice((1, 2, 4, 64, len(out)))]
        elif kind == 3:
            out[at:at] = out[at : at + draw.choice((1, 4, 32))]
        elif kind == 4:
            size = draw.choice((2, 4, 8))
            number = draw.choice(
                (0, 1, 2 ** (8 * size) - 1, 2 ** (8 * size - 1), draw.getrandbits(8 * size))
            )
            out[at : at + size] = number.to_bytes(size, "little")
        elif kind == 5:
            other = draw.randrange(len(out))
            out[at : at + 8], out[other : other + 8] = out[other : other + 8], out[at : at + 8]
        else:
            out[at:at] = draw.randbytes(draw.choice((1, 8, 100)))
    return bytes(out)


def rehashed(data: bytes) -> bytes:
    """With lengths and header hash made good again: what a forger would send."""
    if len(data) < PRELUDE.size:
        return data
    magic, version, zero, mac, head, _, _ = PRELUDE.unpack_from(data)
    at = PRELUDE.size + mac
    head = min(head, max(0, len(data) - at))
    packed = len(data) - at - head
    if packed < 0:
        return data
    digest = hash_header(data[at : at + head])
    return PRELUDE.pack(magic, version, zero, mac, head, packed, digest) + data[PRELUDE.size :]


# --- what is fuzzed -----------------------------------------------------------------------------
def frames() -> list[bytes]:
    """Frames of lines with metadata, raw bytes and groups; sealed ones, too."""
    rows = [
        Row(
            f"step {k} loss {k / 7}",
            ts=T0 + k,
            level=20,
            metadata={"loss": k / 7, "n": k, "s": "é"},
        )
        for k in range(20)
    ]
    plain = [
        frame_of(),
        encode_frame(make_frame(rows)),
        encode_frame(make_frame([Row("é", raw=b"\xe9")])),
    ]
    return [*plain, *(seal_frame(data, b"k" * 32) for data in plain)]


class Fuzz:
    """One kind of input per method; each raises AssertionError for what must not be."""

    def __init__(self) -> None:
        self.frames = frames()
        self.decoded = {data: decode_frame(data) for data in self.frames}
        self.store = MemoryStore()
        ingest_batch(
            [Record(frame_of("default"), NOW_NS, "1")],
            store=self.store,
            source="s",
            first="1",
            last="1",
        )
        self.texts = self._texts(self.store)
        assert self.texts.total() == 13
        self.api: Handler = make_handler(self.store, clock_ns=lambda: NOW_NS)
        self.taken: Counter[str] = Counter()

    def frame(self, draw: random.Random) -> None:
        """The codec: what decodes is what was encoded."""
        data = draw.choice(self.frames)
        made = mutated(data, draw)
        forged = draw.random() < 0.5
        made = rehashed(made) if forged else made
        try:
            found = decode_frame(made)
        except (Corrupt, NewerVersion):
            return
        self.taken["frame"] += 1
        # The MAC and how a payload is packed are no part of a frame; its header is, and is hashed.
        assert forged or found == self.decoded[data], "a changed frame was taken for another one"

    def ingest(self, draw: random.Random) -> None:
        """Ingest: stored or in quarantine, and never in the way of a good frame."""
        made = [mutated(draw.choice(self.frames), draw) for _ in range(3)]
        made = [rehashed(data) if draw.random() < 0.7 else data for data in made]
        good = encode_frame(make_frame([Row("the good one")], tenant="acme", number=77))
        store = MemoryStore()
        records = [Record(data, T0, f"q{at}") for at, data in enumerate([*made, good])]
        report = ingest_batch(records, store=store, source="s", first="q0", last="q3")
        assert "q3" not in {bad.sequence for bad in report.bad}, "a good frame was set aside"
        for bad in report.bad:
            assert store.get(bad.key) == made[int(bad.sequence[1:])]
        self.taken["ingest"] += 3 - len(report.bad)

    def index(self, draw: random.Random) -> None:
        """A reader over a mutated index."""
        self._object("/index/", draw)

    def segment(self, draw: random.Random) -> None:
        """A reader over a mutated segment."""
        self._object("/data/", draw)

    def _object(self, part: str, draw: random.Random) -> None:
        store = MemoryStore()
        for info in self.store.list("default/"):
            data = self.store.get(info.key)
            store.put(info.key, mutated(data, draw) if part in info.key else data)
        client = Client(store=store, tenant="default")
        try:
            answer = client.search("*", limit=None, run=draw.choice(("job", None)))
        except RanklogError:
            return
        found = Counter(line.text for line in answer.lines)
        if answer.completeness.state == "complete":
            assert found == self.texts, f"a complete answer of {found.total()} lines"
            self.taken[part] += 1
        assert not found - self.texts, f"lines that nobody logged: {found - self.texts}"

    def _texts(self, store: MemoryStore) -> Counter[str]:
        found = Client(store=store, tenant="default").search("*", limit=None)
        return Counter(line.text for line in found.lines)

    def http(self, draw: random.Random) -> None:
        """The API: every request has an answer that is no fault of ours."""
        event = self._event(draw)
        response = self.api(event, None)
        status = int(response["statusCode"])
        assert status < 500, f"{status} to {event}: {response['body'][:300]}"
        if status >= 400:
            problem = json.loads(response["body"])
            assert problem["status"] == status and problem["detail"]
        self.taken[f"http {status // 100}xx"] += 1

    def _event(self, draw: random.Random) -> dict[str, Any]:
        query = " ".join(draw.choices(WORDS, k=draw.choice((0, 1, 1, 2, 3, 8, 80))))
        route, method = draw.choice(ROUTES), draw.choice(("POST", "POST", "POST", "GET", "PUT"))
        said: Any = {"query": query} if draw.random() < 0.8 else {}
        for name in draw.sample(MEMBERS, draw.choice((0, 0, 1, 2, 3))):
            said[name] = draw.choice(VALUES)
        body = json.dumps(said).encode()
        if draw.random() < 0.2:
            body = mutated(body, draw)
        if route == "frames":
            body = mutated(self.frames[0], draw)
        if route == "tail":
            said["wait"] = 0
        query_of = {name: str(value) for name, value in said.items()} if method == "GET" else None
        return {
            "version": "2.0",
            "rawPath": f"/v1/{route}",
            "rawQueryString": "",
            "headers": {
                "content-type": "application/octet-stream"
                if route == "frames"
                else "application/json"
            },
            "queryStringParameters": query_of,
            "requestContext": {
                "http": {"method": method, "path": f"/v1/{route}"},
                "stage": "$default",
            },
            "body": base64.b64encode(body).decode() if method != "GET" else None,
            "isBase64Encoded": True,
        }


# --- the round ----------------------------------------------------------------------------------
@contextmanager
def bounded_time() -> Iterator[None]:
    """A hang is a failure, with where it hangs."""

    def ring(number: int, frame: object) -> None:
        raise AssertionError(f"lasted longer than {HANG_S} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(HANG_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def fuzz(
    count: int, *, seed: int, seconds: float, told: Callable[[str], None] = lambda text: None
) -> tuple[int, str | None, Counter[str]]:
    """(how many were tried, the first failure with its seed or None, what was taken)."""
    target, until = Fuzz(), time.monotonic() + seconds
    kinds = [kind for kind, share in SHARES.items() for _ in range(share)]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range(count):
        if time.monotonic() > until:
            return number, None, target.taken
        own = f"{seed}:{number}"
        draw = random.Random(own)
        kind = draw.choice(kinds)
        try:
            with bounded_time():
                getattr(target, kind)(draw)
        except Exception as error:
            return number, f"{kind} {own}: {type(error).__name__}: {error}", target.taken
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) << 10
        if grown > MEMORY_BYTES:
            return number, f"{kind} {own}: {grown} bytes of memory", target.taken
        if number % 10_000 == 9_999:
            told(f"{number + 1} tried")
    return count, None, target.taken


def main() -> int:
    """Fuzz, and say how far it came."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz_bytes", description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3_600.0)
    given = parser.parse_args()
    tried, failure, taken = fuzz(
        given.count,
        seed=given.seed,
        seconds=given.seconds,
        told=lambda text: print(text, flush=True),
    )
    print(f"{tried} tried; taken: {dict(sorted(taken.items()))}")
    if failure:
        print(f"failed: {failure}")
    return 1 if failure else 0


if __name__ == "__main__":
    sys.exit(main())
