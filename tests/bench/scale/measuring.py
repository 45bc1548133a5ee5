"""The rates, measured in some ten seconds on the benchmark's corpus; the store is in memory.

CPU is the least of a few repetitions where one is short: a busy neighbour adds to it and never takes away.
"""

from __future__ import annotations

import base64
import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from ranklog.client import Client
from ranklog.client.indexes import IndexCache
from ranklog.compact.compacting import Compactor
from ranklog.ingest.batch import Record, ingest_batch
from ranklog.ingest.markers import Markers
from ranklog.limits import HOUR_NS
from ranklog.rules.ruleset import RuleSet
from ranklog.store.memory import MemoryStore
from ranklog.store.protocol import Store
from ranklog.stream.frames import encode_frame
from ranklog.stream.kinesis import records_from_lambda_event
from tests.bench.corpus import DURATION_NS, NEEDLE, START_NS, corpus
from tests.bench.scale.counting import CountingStore
from tests.bench.scale.rates import QueryRate, Rates
from tests.bench.scale.times import Curve, Linear

TENANT, RUN = "bench", "llama-70b"
LINES = 300_000
FRAME_LINES = (16, 64, 256, 1_024, 4_096)
# Lines of a batch; the last is about what a Lambda event of 6 MB holds.
BATCH_LINES = (1_024, 8_192, 32_768, 120_000)
SMALL_SEGMENT_LINES = 8_192
# Name -> query; `count` asks for a number by call site, the others for lines.
QUESTIONS = {
    "rare literal": f'"{NEEDLE}"',
    "absent literal": '"zookeeper"',
    "one id": "",  # of a line in the store
    "count by call site": "level>=INFO",
    "dense regex": r"/loss=\d+\.\d+/",
}
# In one segment, whatever the scope.
_ONCE = ("one id",)
_COUNTED = ("count by call site", "dense regex")
_REPEAT = 5
T = TypeVar("T")


def measure() -> Rates:
    """All of them. Raises RuntimeError where a batch is not stored whole."""
    started = {name: _import_s(name) for name in ("ingest", "query", "scan")}
    line_bytes, wire = _wire()
    batches = [_batch_cost(lines) for lines in BATCH_LINES]
    small = _stored(LINES // 6, SMALL_SEGMENT_LINES)
    large = _stored(LINES, BATCH_LINES[-1])
    merge_s, merged_bytes, merged = _merged(large)
    questions = {name: _question(name, small, merged) for name in QUESTIONS}
    opened = [_open_cost(store) for store in (small, merged)]
    return Rates(
        machine=machine(),
        line_bytes=line_bytes,
        wire=wire,
        ingest_s=Linear.fit(BATCH_LINES, [cost["cpu_s"] for cost in batches]),
        part_s=_part_cost(),
        segment=Curve(BATCH_LINES, tuple(cost["segment"] for cost in batches)),
        index=Curve(BATCH_LINES, tuple(cost["index"] for cost in batches)),
        puts=batches[-1]["puts"],
        merge_s=merge_s,
        merged_lines=LINES,
        merged_segment=merged_bytes[0] / LINES,
        merged_index=merged_bytes[1] / LINES,
        open_s=Linear.fit([size for size, _ in opened], [spent for _, spent in opened]),
        lists=_lists(merged),
        queries=questions,
        import_s=started,
    )


def machine() -> str:
    """Processor, cores, Python and the load when this was asked."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        names = [x for x in cpuinfo.read_text().splitlines() if x.startswith("model name")]
        model = names[0].partition(":")[2].strip() if names else model
    load = os.getloadavg()[0]
    return f"{os.cpu_count()} cores of {model}, Python {platform.python_version()}, load {load:.1f}"


def _cpu(action: Callable[[], T], repeat: int = 1) -> tuple[float, T]:
    """The least CPU of some calls, and the last result."""
    spent = []
    for _ in range(repeat):
        started = time.process_time()
        result = action()
        spent.append(time.process_time() - started)
    return min(spent), result


def _import_s(function: str) -> float:
    """Seconds that a fresh process takes to import a function's code, less those of Python itself."""
    path = Path(__file__).parents[3] / "functions" / function / "app.py"
    code = f"import runpy; runpy.run_path({str(path)!r})"

    def run(text: str) -> float:
        started = time.perf_counter()
        environment = os.environ | {"POWERTOOLS_LOG_LEVEL": "ERROR"}
        subprocess.run([sys.executable, "-c", text], check=True, env=environment)
        return time.perf_counter() - started

    return max(0.0, min(run(code), run(code)) - min(run("pass"), run("pass")))


def _wire() -> tuple[float, Curve]:
    """Bytes of a line of text with its line feed, and its bytes in frames of some sizes."""
    found, line_bytes = [], 0.0
    for rows in FRAME_LINES:
        frames = list(islice(corpus(120_000, frame_rows=rows), 400))
        lines = sum(frame.rows for frame in frames)
        line_bytes = sum(len(frame.text) + frame.rows for frame in frames) / lines
        found.append(sum(len(encode_frame(frame)) for frame in frames) / lines)
    return line_bytes, Curve(FRAME_LINES, tuple(found))


def _records(lines: int, batch_lines: int) -> Iterator[list[Record]]:
    """Batches of about so many lines of one corpus."""
    records: list[Record] = []
    held = 0
    frames = corpus(lines, frame_rows=min(1_024, batch_lines), planted=max(1, lines // 20_000))
    for number, frame in enumerate(frames, 1):
        arrival_ns = int.from_bytes(frame.ts[-8:], "little")
        records.append(Record(encode_frame(frame), arrival_ns, f"{number:09d}"))
        held += frame.rows
        if held >= batch_lines:
            yield records
            records, held = [], 0
    if records:
        yield records


def event_of(records: Sequence[Record]) -> str:
    """JSON of the Lambda event that holds these records."""
    items = [
        {
            "eventID": f"shardId-000000000000:{record.sequence}",
            "eventSourceARN": "arn:aws:kinesis:us-east-1:123456789012:stream/frames",
            "kinesis": {
                "sequenceNumber": record.sequence,
                "data": base64.b64encode(record.data).decode(),
                "approximateArrivalTimestamp": record.arrival_ns / 1e9,
            },
        }
        for record in records
    ]
    return json.dumps({"Records": items})


def _ingest(
    event: str, store: Any, rules: RuleSet, source: str = "bench", markers: Markers | None = None
) -> Any:
    """What the function does between Lambda's bytes and its answer."""
    records = records_from_lambda_event(json.loads(event))
    first, last = records[0].sequence, records[-1].sequence
    report = ingest_batch(
        records, store=store, rules=rules, markers=markers, source=source, first=first, last=last
    )
    if report.bad or report.lines == 0:
        raise RuntimeError(f"not stored: {report.bad or 'no line'}")
    return report


def _batch_cost(lines: int) -> dict[str, float]:
    """CPU of a batch of so many lines, what it stores a line, and PUTs of a part: segment and index, in a
    process that has put the hours' markers with a batch before."""
    rules = RuleSet.load()
    event = event_of(next(_records(2 * lines, lines)))
    _ingest(event, MemoryStore(), rules)
    store = CountingStore(MemoryStore())
    repeat = 1 if lines > 100_000 else 3
    spent, report = _cpu(lambda: _ingest(event, CountingStore(MemoryStore()), rules), repeat)
    # the corpus is of a day long ago, whose markers are put with every batch
    markers = Markers(store, clock_ns=lambda: START_NS + DURATION_NS)
    _ingest(event, store, rules, "before", markers)
    store.reset()
    _ingest(event, store, rules, markers=markers)
    return {
        "cpu_s": spent * lines / report.lines,
        "segment": report.segment_bytes / report.lines,
        "index": report.index_bytes / report.lines,
        "puts": store.requests["PUT"] / len(report.committed),
    }


def _part_cost() -> float:
    """CPU of a batch of few lines: what each tenant in a batch costs before its first line."""
    event, rules = event_of(next(_records(4_096, 64))), RuleSet.load()
    return _cpu(lambda: _ingest(event, MemoryStore(), rules), _REPEAT)[0]


def _stored(lines: int, batch_lines: int) -> MemoryStore:
    """A store of batches of so many lines."""
    store, rules = MemoryStore(), RuleSet.load()
    for number, records in enumerate(_records(lines, batch_lines)):
        _ingest(event_of(records), store, rules, f"bench{number}")
    return store


def _merged(store: MemoryStore) -> tuple[Linear, tuple[int, int], MemoryStore]:
    """(CPU of a merge by its lines, bytes of segments and of indexes, the store of what was merged)."""
    now_ns = START_NS + DURATION_NS + 3 * HOUR_NS
    few = _stored(LINES // 6, SMALL_SEGMENT_LINES)
    few_s, few_report = _cpu(lambda: Compactor(few, TENANT, now_ns).run())
    many_s, report = _cpu(lambda: Compactor(store, TENANT, now_ns).run())
    if report.failed or not report.merges:
        raise RuntimeError(f"not merged: {report.failed or report}")
    sizes = [few_report.rows / few_report.merges, report.rows / report.merges]
    merge_s = Linear.fit(sizes, [few_s / few_report.merges, many_s / report.merges])
    kept = MemoryStore()
    bytes_ = {"data": 0, "index": 0}
    for info in store.list(f"{TENANT}/"):
        folder = info.key.split("/")[1]
        if "/~1." in info.key or ".~1." in info.key or folder not in bytes_:
            kept.put(info.key, store.get(info.key))
            if folder in bytes_:
                bytes_[folder] += info.length
    return merge_s, (bytes_["data"], bytes_["index"]), kept


def words_of(client: Client, name: str) -> str:
    """The question's query; that for an id asks for one of the store's."""
    if name not in _ONCE:
        return QUESTIONS[name]
    [line] = client.search('"fetched batch"', run=RUN, limit=1).lines
    found = re.search(r"shard ([0-9a-f]{12}) in", line.text)
    assert found is not None
    return f'"{found[1]}"'


def ask(client: Client, name: str, query: str) -> Any:
    if name == "dense regex":
        return client.count(query, run=RUN)
    if name in _COUNTED:
        return client.count(query, run=RUN, by="call_site")
    return client.search(query, run=RUN, limit=100)


def _question(name: str, small: MemoryStore, merged: MemoryStore) -> QueryRate:
    """Its rates, from a store of small segments and one of large ones."""
    sides = [_side(name, store) for store in (small, merged)]
    listed = [side["listed"] for side in sides]
    texts = [side["text"] for side in sides]
    # Who needs no segment on one side is answered by indexes.
    scans = all(side["scanned"] for side in sides)
    hits = max(side["hits"] / side["lines"] for side in sides) if scans else 0.0
    return QueryRate(
        name=name,
        query=QUESTIONS[name] or "a token of a line",
        root_s=min(side["root_s"] for side in sides),
        plan_s=Linear.fit(listed, [side["plan_s"] for side in sides]),
        hits=hits,
        once=name in _ONCE,
        scan_s=Linear.fit(texts, [side["scan_s"] for side in sides]),
        gets=max(side["gets"] for side in sides),
        read_bytes=Linear.fit(texts, [side["read"] for side in sides]),
    )


def _side(name: str, store: MemoryStore) -> dict[str, float]:
    """What one store says of a question: CPU and requests, warm; scans by scanned segment."""
    counting = CountingStore(store)
    text, lines = held_in(store)
    with Client(store=counting, tenant=TENANT, concurrency=1) as client:
        query = words_of(client, name)
        ask(client, name, query)
        counting.reset()
        best: dict[str, float] = {}
        for _ in range(_REPEAT):
            before = counting.requests["GET data"], counting.bytes_got
            spent, answer = _cpu(lambda: ask(client, name, query))
            report = answer.report
            wall = sum(report.ms.values()) / 1e3
            scale = min(1.0, spent / wall) if wall else 1.0  # less CPU than wall: others worked
            scans = max(1, report.segments_scanned)
            found = {
                "total": spent,
                "plan_s": max(report.ms.get("plan", 0.0) / 1e3 * scale, 1e-5),
                "scan_s": max(report.ms.get("scan", 0.0) / 1e3 * scale / scans, 1e-6),
                "gets": (counting.requests["GET data"] - before[0]) / scans,
                "read": max((counting.bytes_got - before[1]) / scans, 1.0),
                "scanned": report.segments_scanned,
                "listed": report.segments_listed,
                "text": text / report.segments_listed,
                "hits": answer.count if name in _COUNTED else len(answer.lines),
                "lines": lines,
            }
            in_scans = found["scan_s"] * report.segments_scanned
            found["root_s"] = max(1e-4, spent - found["plan_s"] - in_scans)
            if not best or found["total"] < best["total"]:
                best = found
    return best


def held_in(store: Store) -> tuple[float, float]:
    """(bytes of text, lines) of a store."""
    keys = [info.key for info in store.list(f"{TENANT}/index/")]
    heads = [index.head for index in IndexCache(store).load(keys).indexes]
    return float(sum(head.text_bytes for head in heads)), float(sum(head.rows for head in heads))


def _open_cost(store: MemoryStore) -> tuple[float, float]:
    """(bytes of an index in the mean, CPU to open one) of a client that knows none."""
    keys = [info.key for info in store.list(f"{TENANT}/index/")]
    size = sum(info.length for info in store.list(f"{TENANT}/index/")) / len(keys)
    spent, loaded = _cpu(lambda: IndexCache(store).load(keys), 3)
    return size, spent / max(1, len(loaded.indexes))


def _lists(store: MemoryStore) -> float:
    """LISTs of a warm question that names a run."""
    counting = CountingStore(store)
    with Client(store=counting, tenant=TENANT) as client:
        for _ in range(2):
            counting.reset()
            ask(client, "absent literal", QUESTIONS["absent literal"])
    return float(counting.requests["LIST"])
