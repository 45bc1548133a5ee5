"""`python -m tests.bench.points`: ingest, size and reading of telemetry, beside TensorBoard's event files.

    python -m tests.bench.points [--series 5000] [--iterations 200] [--ranks 8] [--folder DIR]

8 M points by default; `--series 50000` are 80 M. Values are autoregressive with six significant digits, 50 of a
layer recorded in one call. CPU is `time.process_time`, all threads, from frame bytes to committed segment
and index; the frames are the agent's work. Event files are written and read of a sample: one rank, all series,
so many iterations that it has at most `--sample` points, a scalar an event as SummaryWriter writes them, and
scaled by the number of points. Reading is warm: the first answer is not counted, medians of `--repeat` are;
wall time and, as the machine may be busy, CPU time. It is measured as ingest left the store, then after one pass
of compaction, which is what a store is ten minutes after the hour (`ranklog compact`, and whatever runs it).
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import zstandard

from ranklog.client.points import PointAnswer, search_points
from ranklog.client.reader import Reader, local_reader
from ranklog.client.words import read_query
from ranklog.compact.compacting import Compactor
from ranklog.ingest.batch import ingest_batch
from ranklog.layout import keys
from ranklog.limits import DAY_NS, HOUR_NS, LOCAL_BATCH_BYTES_MAX
from ranklog.model.record import Record
from ranklog.store.disk import DiskStore
from tests.bench.figures import Figure, show
from tests.bench.point_corpus import NAMES, T0, Corpus, corpus

# What a dashboard asks for; in parts of a layer, the first of which is shown first.
_PLOTS = 700
_COLUMNS = ("run_id", "rank", "ts_ns", "iteration", "series", "dims", "value")


@dataclass(frozen=True, slots=True)
class Stored:
    """What ingest took: CPU seconds; bytes of segments and of indexes."""

    cpu_s: float
    segment_bytes: int
    index_bytes: int


@dataclass(frozen=True, slots=True)
class EventFiles:
    """A sample of event files: its points, bytes as zstd -3 has them, CPU seconds to load them."""

    points: int
    bytes: int
    zstd_bytes: int
    load_s: float


def batches(frames: Iterator[bytes]) -> Iterator[list[Record]]:
    """Records as one event of a Lambda holds them."""
    found: list[Record] = []
    held = 0
    for number, data in enumerate(frames):
        if found and held + len(data) > LOCAL_BATCH_BYTES_MAX:
            yield found
            found, held = [], 0
        found.append(Record(data, T0 + HOUR_NS, f"{number:08d}"))
        held += len(data)
    if found:
        yield found


def ingest(values: Corpus, store: DiskStore) -> Stored:
    """Commit every batch."""
    cpu = 0.0
    segments = indexes = 0
    for batch in batches(values.frames()):
        first, last = batch[0].sequence, batch[-1].sequence
        started = time.process_time()
        report = ingest_batch(batch, store=store, source="bench", first=first, last=last)
        cpu += time.process_time() - started
        assert not report.bad, report.bad
        segments += report.segment_bytes
        indexes += report.index_bytes
    return Stored(cpu, segments, indexes)


# --- TensorBoard --------------------------------------------------------------------------------
def event_files(values: Corpus, folder: Path, most: int) -> EventFiles:
    """Write a sample as a SummaryWriter would, and load it as TensorBoard does."""
    layers, names, _, iterations = values.values.shape
    steps = max(1, min(iterations, most // (layers * names)))
    path = folder / "events.out.tfevents.1.bench"
    _write_events(values, path, steps)
    data = path.read_bytes()
    started = time.process_time()
    _load(folder, steps, f"{values.layers[0]}/{values.names[0]}")
    load_s = time.process_time() - started
    packed = zstandard.ZstdCompressor(level=3).compress(data)
    return EventFiles(layers * names * steps, len(data), len(packed), load_s)


def _write_events(values: Corpus, path: Path, steps: int) -> None:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.record_writer import RecordWriter

    with path.open("wb") as file:
        writer = RecordWriter(file)
        writer.write(Event(wall_time=T0 / 1e9, file_version="brain.Event:2").SerializeToString())
        for step in range(steps):
            for at, layer in enumerate(values.layers):
                wall_time = int(values.ts[at, 0, step]) / 1e9
                for name, value in zip(values.names, values.values[at, :, 0, step], strict=True):
                    one = Summary.Value(tag=f"{layer}/{name}", simple_value=float(value))
                    event = Event(wall_time=wall_time, step=step, summary=Summary(value=[one]))
                    writer.write(event.SerializeToString())
        writer.flush()


def _load(folder: Path, steps: int, tag: str) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    loaded = EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0})
    loaded.Reload()
    found = loaded.Tensors(tag) if tag in loaded.Tags()["tensors"] else loaded.Scalars(tag)
    assert len(found) == steps, (tag, len(found), steps)


# --- reading ------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Took:
    """Medians, in ms."""

    wall: float
    cpu: float


def ask(reader: Reader, text: str) -> PointAnswer:
    query = read_query(f"kind:point {text}", {"run": "bench"}, now_ns=T0 + 2 * HOUR_NS)
    return search_points(reader, query, _COLUMNS)


def measured(work: Callable[[], object], repeat: int) -> Took:
    """The first time is not counted."""
    work()
    walls, cpus = [], []
    for _ in range(repeat):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        walls.append(1e3 * (time.perf_counter() - wall))
        cpus.append(1e3 * (time.process_time() - cpu))
    return Took(statistics.median(walls), statistics.median(cpus))


def compacted(store: DiskStore, points: int) -> list[Figure]:
    """One pass over the closed hour: what it takes, and how many segments are left of how many."""
    before = _segments(store)
    started = time.process_time()
    report = Compactor(store, "default", T0 + 2 * DAY_NS).run()
    cpu = time.process_time() - started
    assert not report.failed, report.failed
    left = before - report.merged + report.merges
    return [
        Figure("compaction", points / cpu / 1e6, "M/CPU s"),
        Figure(f"segments, of {before} as ingested", left),
    ]


def _segments(store: DiskStore) -> int:
    return sum(1 for _ in store.list(keys.tenant_prefix("default") + "data/"))


def reading(values: Corpus, reader: Reader, repeat: int, *, marked: bool) -> list[Figure]:
    """One series; what a dashboard asks for, name by name; and the same number across all names."""
    layers, names, ranks, iterations = values.values.shape
    name, layer = values.names[7], values.layers[layers // 2]
    one = f"series:{name} layer:{layer} rank:{min(3, ranks - 1)}"
    assert len(ask(reader, one)) == iterations
    parts = [f"series:{name}" for name in values.names[: -(-_PLOTS // layers)]]
    assert len(ask(reader, parts[0])) == layers * ranks * iterations
    across = "layer:" + ",".join(values.layers[: -(-_PLOTS // names)])
    single = measured(lambda: ask(reader, one), repeat)
    first = measured(lambda: ask(reader, parts[0]), repeat)
    every = measured(lambda: [ask(reader, part) for part in parts], repeat)
    crossed = measured(lambda: ask(reader, across), repeat)
    plots, others = len(parts) * layers, min(layers, -(-_PLOTS // names)) * names
    found = [
        ("one series of one rank", single, 50),
        (f"the first {layers} of {plots} series, all ranks", first, 300),
        (f"all {plots} series, name by name", every, 2_000),
        (f"{others} series of all names at once", crossed, 2_000),
    ]
    figures = []
    for name, took, mark in found:
        figures.append(Figure(name, took.cpu, "ms of CPU", mark if marked else None))
        figures.append(Figure(name, took.wall, "ms"))
    return figures


def measure(options: argparse.Namespace, folder: Path) -> list[Figure]:
    """Build, ingest, read; then the event files beside."""
    values = corpus(options.series, options.ranks, options.iterations, options.seed)
    points = values.points
    store = DiskStore(folder / "store")
    stored = ingest(values, store)
    size = stored.segment_bytes + stored.index_bytes
    (folder / "events").mkdir()
    sample = event_files(values, folder / "events", options.sample)
    beside = sample.zstd_bytes / sample.points
    figures = [
        Figure("ingest", points / stored.cpu_s / 1e6, "M/CPU s", 1.0, least=True),
        Figure("stored, a point", size / points, "bytes"),
        Figure("of these the index", stored.index_bytes / points, "bytes"),
        Figure(f"zstd -3 of event files, a point of {sample.points}", beside, "bytes"),
        Figure("stored by zstd of event files", size / points / beside, "x", 0.5),
    ]
    fresh = reading(values, local_reader(store, "default"), options.repeat, marked=False)
    figures += [replace(figure, name=f"as ingested: {figure.name}") for figure in fresh]
    figures += compacted(store, points)
    figures += reading(values, local_reader(store, "default"), options.repeat, marked=True)
    per_rank = points // options.ranks
    load_s = sample.load_s * per_rank / sample.points
    return [
        *figures,
        Figure("TensorBoard loads the file of one rank in (scaled)", load_s, "s of CPU"),
    ]


def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--series", type=int, default=100 * NAMES)
    parser.add_argument("--iterations", type=int, default=200)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sample", type=int, default=200_000, help="points of the event files")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where the store stays; else nowhere")
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="ranklog-points-"))
    try:
        figures = measure(options, folder)
        print(f"{options.series} series, {options.ranks} ranks, {options.iterations} iterations")
        show(figures)
    finally:
        if options.folder is None:
            shutil.rmtree(folder, ignore_errors=True)
    return int(not all(figure.ok for figure in figures))


if __name__ == "__main__":
    raise SystemExit(main())
