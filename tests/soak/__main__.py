"""Producers, agents, a faulty network, ingest, compaction, retention and questions, together for minutes.

    python -m tests.soak [--minutes 10] [--producers 64] [--rate 3] [--seed 1] [--trace]

Half of the producers log to an agent that is killed now and then, whose frames a process ingests that is killed
now and then; the other half's agent and ingest live on, and their memory is measured, and that of compaction
and of who asks. Frames are refused, lost after they were taken, delivered twice; calls of the store fail before
or after they did their work. Lines are deleted, a run is let go of by retention, and of the other one launch after
launch begins and the one before the last is deleted whole, so that the store stays as large as it is. At the
end every line that a producer said must be there once, but for those that were deleted or are too old, which
must be gone; indexes are few, since compaction keeps up; and no process may have more than 1.05 times the
memory it had after three tenths of the time. By then caches and merges have reached their bounds, which are
small ones here (workers.py): under a server's own, minutes of lines fill no cache, and memory would tell
nothing of leaks.
Exits with 1 where one of these does not hold.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from ranklog.client import Client
from ranklog.client.deletion import delete, find_deletion
from ranklog.client.reader import local_reader
from ranklog.client.words import read_query
from ranklog.delete.retention import load_policy, save_policy
from ranklog.errors import NotFound, Unavailable
from ranklog.ingest.local import ingest_stream
from ranklog.layout import keys
from ranklog.limits import COMPACT_OBJECTS_MAX
from ranklog.store.disk import DiskStore
from ranklog.stream.disk import DiskStream
from tests.soak.door import Door, opened
from tests.soak.producers import BRIEF, RUN, launch_of, run_of
from tests.soak.workers import KEEP_NS, TENANT, resident_bytes, retain

GROWTH_MAX = 1.05
# Indexes that may be left: more are those of a compaction that does not come to an end.
INDEXES_MAX = 2 * COMPACT_OBJECTS_MAX
# How long what is under way may take when the time is up.
DRAIN_S = 300
HALVES = ("steady", "killed")
# Of the whole time: a launch; two of them are there, a third while it is being deleted.
LAUNCH_SHARE = 0.1
LAUNCH_S_MIN = 2.5

Key = tuple[str, int, int]  # a line's launch, rank and number


@dataclass(slots=True)
class Soak:
    """One run in a folder."""

    options: argparse.Namespace
    folder: Path
    draw: random.Random
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    memory: dict[str, list[tuple[float, int]]] = field(default_factory=dict)
    kills: Counter[str] = field(default_factory=Counter)
    deleted: set[Key] = field(default_factory=set)
    ended: int = 0  # launches that were deleted whole
    begun: float = 0.0

    @property
    def launch_s(self) -> float:
        """How long a launch says something."""
        return max(LAUNCH_S_MIN, float(self.options.minutes) * 60 * LAUNCH_SHARE)

    # --- processes ------------------------------------------------------------------------------
    def start(self, name: str, module: str, *words: object) -> None:
        """Start, or start again."""
        command = [sys.executable, "-m", f"tests.soak.{module}", *map(str, words)]
        quiet = subprocess.DEVNULL if module == "producers" else None  # they say it to us
        # Arrow's own pool keeps pages of threads that `release_unused` does not reach: +13 % within
        # 70,000 lines of which nothing is held, +3 % where malloc gives and trims them
        environ = os.environ | {"ARROW_DEFAULT_MEMORY_POOL": "system"}
        self.processes[name] = subprocess.Popen(
            command, stderr=quiet, start_new_session=True, env=environ
        )

    def start_worker(self, name: str, role: str, *words: object) -> None:
        trace = ["--trace"] if self.options.trace else []
        where = ("--store", self.folder / "store", "--tell", self.folder / "tell", "--name", name)
        self.start(name, "workers", role, *where, *words, *trace)

    def ingest(self, half: str) -> None:
        self.start_worker(f"ingest-{half}", "ingest", "--stream", self.folder / f"stream-{half}")

    def begin(self, destinations: dict[str, str]) -> None:
        (self.folder / "tell").mkdir()
        (self.folder / "said").mkdir()
        store = DiskStore(str(self.folder / "store"), create=True)
        policy = load_policy(store, TENANT).with_rule(BRIEF, KEEP_NS)
        save_policy(store, TENANT, policy)
        for half in HALVES:
            self.ingest(half)
        self.start_worker("compact", "compact", "--ahead-s", 7200)
        self.start_worker("query", "query")
        count = self.options.producers
        edges = {"steady": (0, count // 2), "killed": (count // 2, count)}
        for half, (first, end) in edges.items():
            words = {
                "first": first,
                "end": end,
                "producers": count,
                "rate": self.options.rate,
                "spool": self.folder / f"spool-{half}",
                "said": self.folder / "said",
                "destination": destinations[half],
                "launch-s": self.launch_s,
            }
            flags = [f"--{name}={value}" for name, value in words.items()]
            self.start(f"producers-{half}", "producers", *flags)

    def agent(self, half: str) -> int:
        """The pid of the agent of a half, 0 where there is none now."""
        try:
            return int((self.folder / f"spool-{half}" / "collector.lock").read_text())
        except (OSError, ValueError):
            return 0

    # --- what goes on meanwhile -----------------------------------------------------------------
    def disturb(self) -> None:
        """Now and then something is killed; now and then lines are deleted."""
        if self.draw.random() < 0.06 and (pid := self.agent("killed")):
            _kill(pid)
            self.kills["agent"] += 1
        if self.draw.random() < 0.06:
            process = self.processes["ingest-killed"]
            process.kill()
            process.wait()
            self.ingest("killed")
            self.kills["ingest"] += 1
        if self.draw.random() < 0.04:
            self.delete_some()
        # some seconds after the last line of it, which may still be on its way
        if time.time() - self.begun > (self.ended + 2.2) * self.launch_s:
            self.delete_launch()

    def delete_launch(self) -> None:
        """The oldest launch that is there; tried again where the store fails."""
        reader = local_reader(DiskStore(str(self.folder / "store")), TENANT)
        run = f"{RUN}@{launch_of(self.ended)}"
        with suppress(NotFound, Unavailable):
            asked = read_query("", {"run": run}, now_ns=time.time_ns())
            delete(reader, find_deletion(reader, asked, who="soak"))
            self.ended += 1

    def delete_some(self) -> None:
        """The first lines of a rank: those that came, and none that are still to come."""
        rank = self.draw.randrange(self.options.producers)
        if run_of(rank) != RUN:
            return
        reader = local_reader(DiskStore(str(self.folder / "store")), TENANT)
        launch = launch_of(self.ended)
        text = f'rank:{rank} "producer {rank} line 0 "'
        asked = read_query(text, {"run": f"{RUN}@{launch}"}, now_ns=time.time_ns())
        # nothing came yet; or what a merge replaced went, for whose clock grace is over, at once
        with suppress(NotFound, Unavailable):
            found = find_deletion(reader, asked, who="soak")
            if found.lines:
                delete(reader, found)
                self.deleted.add((launch, rank, 0))

    def sample(self, now: float) -> None:
        if pid := self.agent("steady"):
            self.memory.setdefault("agent", []).append((now, resident_bytes(pid)))

    # --- the end --------------------------------------------------------------------------------
    def end(self) -> None:
        """Producers end and their agents send all; then what reads and writes beside them ends."""
        for half in HALVES:
            self.processes[f"producers-{half}"].terminate()
        for half in HALVES:
            self.processes[f"producers-{half}"].wait(DRAIN_S)
        until = time.monotonic() + DRAIN_S
        while any(self.waiting(half) for half in HALVES) and time.monotonic() < until:
            time.sleep(0.5)
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        store = DiskStore(str(self.folder / "store"))
        for half in HALVES:  # what came last
            for _ in ingest_stream(DiskStream(self.folder / f"stream-{half}", sync=False), store):
                pass
        retain(store)

    def stop(self) -> None:
        """Whatever still runs: a rank or an agent must not outlive the soak."""
        for process in self.processes.values():
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for _ in range(2):  # an agent and who would start it again
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                with suppress(OSError):
                    if str(self.folder).encode() in path.read_bytes():
                        _kill(int(path.parent.name))

    def waiting(self, half: str) -> bool:
        """Whether the agent of a half is not done: an agent that is ends by itself."""
        spool = self.folder / f"spool-{half}"
        return any(spool.glob("*.process"))

    def read_memory(self) -> None:
        """What workers told."""
        for path in (self.folder / "tell").glob("*.jsonl"):
            if not path.stem.endswith("killed"):
                rows = [json.loads(line) for line in path.read_text().splitlines()]
                self.memory[path.stem] = [(float(at), int(size)) for at, size in rows]


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


# --- what must hold -----------------------------------------------------------------------------
def count_lines(soak: Soak) -> dict[str, int]:
    """Lines that are lost, doubled, undeleted; and how many there are."""
    client = Client(store=str(soak.folder / "store"), tenant=TENANT)
    found: Counter[Key] = Counter()
    with suppress(NotFound):  # all launches were deleted
        for line in client.lines("producer", run=f"{RUN}@*"):
            words = line.text.split()
            found[line.launch, int(words[1]), int(words[3])] += 1
    said = {key: lines for key, lines in read_said(soak.folder / "said") if run_of(key[1]) == RUN}
    gone = {launch_of(nth) for nth in range(soak.ended)}
    wanted = {(*key, n) for key, lines in said.items() for n in range(lines) if key[0] not in gone}
    wanted -= soak.deleted
    undeleted = sum(1 for key in found if key[0] in gone or key in soak.deleted)
    with suppress(NotFound):  # all of it is gone
        undeleted += sum(1 for _ in client.lines("producer", run=f"{BRIEF}@*"))
    return {
        "said": sum(said.values()),
        "lost": len(wanted - found.keys()),
        "doubled": sum(count - 1 for count in found.values())
        + (soak.folder / "tell" / "doubled").exists(),
        "invented": sum(1 for key in found if key[2] >= said.get(key[:2], 0)),
        "undeleted": undeleted,
        "deleted": len(soak.deleted) + sum(n for key, n in said.items() if key[0] in gone),
    }


def read_said(folder: Path) -> Iterator[tuple[tuple[str, int], int]]:
    """How many lines each rank of each launch said."""
    for path in folder.iterdir():
        launch, _, rank = path.name.partition(".")
        yield (launch, int(rank)), int(path.read_text())


def told_passes(tell: Path) -> str:
    """How compaction fared."""
    with suppress(FileNotFoundError):
        rows = [json.loads(line) for line in (tell / "passes").read_text().splitlines()]
        seconds = sorted(seconds for seconds, _ in rows)
        cut = sum(not ended for _, ended in rows)
        middle, longest = seconds[len(seconds) // 2], seconds[-1]
        return (
            f"{len(rows)} passes of compaction, {middle:.1f} s in the median, {longest:.1f} s the "
            f"longest, {cut} cut short by a fault"
        )
    return "no pass of compaction"


def growth(samples: list[tuple[float, int]], begun: float, seconds: float) -> float | None:
    """Memory at the end over that after three tenths of the time; None: too little was told."""

    def around(share: float, width: float) -> list[int]:
        middle = begun + share * seconds
        return [size for at, size in samples if size and abs(at - middle) <= width * seconds]

    first, last = around(0.3, 0.05), around(0.97, 0.05)
    return statistics.median(last) / statistics.median(first) if first and last else None


def run(options: argparse.Namespace, folder: Path) -> int:
    """Minutes of it, then the count."""
    soak = Soak(options, folder, random.Random(options.seed))
    doors = {half: Door(options.seed + i) for i, half in enumerate(HALVES)}
    seconds = options.minutes * 60
    with ExitStack() as stack:
        begun = soak.begun = time.time()
        try:
            soak.begin(
                {
                    half: stack.enter_context(opened(door, folder / f"stream-{half}"))
                    for half, door in doors.items()
                }
            )
            while time.time() - begun < seconds:
                time.sleep(1.0)
                soak.disturb()
                soak.sample(time.time())
            for door in doors.values():
                door.share = 0.0
            soak.end()
        finally:
            soak.stop()
    soak.read_memory()
    return report(soak, doors, begun, seconds)


def report(soak: Soak, doors: dict[str, Door], begun: float, seconds: float) -> int:
    """Print, and whether all held."""
    counts = count_lines(soak)
    done = sum((door.done for door in doors.values()), Counter[str]())
    print(f"{soak.options.producers} producers, {seconds / 60:g} minutes, seed {soak.options.seed}")
    print("frames: " + ", ".join(f"{name} {number}" for name, number in done.most_common()))
    print("killed: " + (", ".join(f"{n} {c} times" for n, c in soak.kills.items()) or "nothing"))
    print("lines:  " + ", ".join(f"{name} {number:,}" for name, number in counts.items()))
    held = not any(counts[name] for name in ("lost", "doubled", "invented", "undeleted"))
    indexes = sum(1 for _ in DiskStore(str(soak.folder / "store")).list(keys.index_prefix(TENANT)))
    print(f"indexes: {indexes} objects (mark {INDEXES_MAX}); {told_passes(soak.folder / 'tell')}")
    held = held and indexes <= INDEXES_MAX
    for name, samples in sorted(soak.memory.items()):
        grown = growth(samples, begun, seconds)
        shown = "too short to tell" if grown is None else f"{grown:.3f} (mark {GROWTH_MAX})"
        last = samples[-1][1] / 2**20 if samples else 0
        print(f"memory: {name} {last:.0f} MiB, end over three tenths {shown}")
        if grown is not None and grown > GROWTH_MAX and not soak.options.short:
            held = False
    print("held" if held else "MISSED")
    return 0 if held else 1


def main() -> int:
    """Parse, run in a folder of its own."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--producers", type=int, default=64)
    parser.add_argument("--rate", type=float, default=3.0, help="lines a second of a producer")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--trace", action="store_true", help="workers say what grew in them")
    parser.add_argument("--short", action="store_true", help="memory is shown, and not judged")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="soak-", ignore_cleanup_errors=True) as name:
        return run(options, Path(name))


if __name__ == "__main__":
    sys.exit(main())
