"""A finished job: who wrote what, as files of the job's layout hold it.

layout         files
rank_files     rank-7.log, one per rank, attempts one after the other
torchrun_dir   HOST/RUN_RANDOM/attempt_N/LOCAL/{stdout,stderr}.log, console_HOST.txt of the agents
tee            consoles of `torchrun --tee`: all of a node (or of all nodes), interleaved by pipes
bare           console.txt of `torchrun` alone: no labels, all ranks' lines between each other
srun           slurm-ID.out of `srun -l`, one file
sdk            rank-7/logging.log: messages whose rank, time and iteration travel beside them
Beside them HOST/dmesg.log, slurm-ID.out and torchfrtrace.txt where there are such.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests.faults.stamps import MS, iso_us
from tests.faults.topology import Topology
from tests.faults.truth import Truth
from tests.faults.world import Line, Scene, World

LAYOUTS = ("rank_files", "torchrun_dir", "tee", "bare", "srun", "sdk")


Lines = list[tuple[int, bytes, int | None]]


class Stream(NamedTuple):
    """`name` is the file's path. `rank`: who wrote it, whether or not a reader can know.

    `lines` are (ns by the writer's clock, text, iteration or None): the iteration only where it
    travels beside the line.
    """

    name: str
    rank: int | None
    host: str
    channel: str
    lines: Lines
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class Job:
    """`processes` are the ranks' own streams before any layout, `streams` what is written."""

    seed: int
    truth: Truth
    scene: Scene
    topology: Topology
    processes: list[Stream]
    streams: list[Stream]

    def write(self, folder: Path | str) -> list[Path]:
        """Write the streams as files for `ranklog import`; nothing of the truth is among them.

        Files are as old as their last line: readers take the year of times without one from there.
        """
        paths = []
        for stream in self.streams:
            path = Path(folder) / stream.name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("ab") as file:
                file.write(b"".join(self._file_lines(stream)))
            if stream.lines:
                last = max(ns for ns, _, _ in stream.lines)
                os.utime(path, ns=(last, last))
            paths.append(path)
        return sorted(set(paths))

    def _file_lines(self, stream: Stream) -> Iterable[bytes]:
        if stream.channel != "logging":
            return [text + b"\n" for _, text, _ in stream.lines]
        return [
            f"{iso_us(ns)} INFO {'' if it is None else f'iteration={it} '}".encode() + text + b"\n"
            for ns, text, it in stream.lines
        ]


def finish_job(seed: int, w: World, truth: Truth) -> Job:
    """Order what was said, label it as the layout does."""
    others = (*w.agents.values(), *w.kernel.values(), *w.extra.values(), w.launcher)
    for lines in (*w.processes.values(), *others):
        lines.sort(key=lambda line: line[0])
    streams = _LAYOUTS[w.scene.layout](w) + _beside(w)
    return Job(
        seed,
        truth,
        w.scene,
        w.topo,
        _processes(w),
        [s for s in streams if s.lines or s.rank is not None],
    )


def _stamped(
    w: World, node: int, lines: Iterable[Line], label: str = "", *, iterations: bool = False
) -> Lines:
    skew = w.skew_ns[node]
    return [
        (t + skew, (label + text).encode(), it if iterations else None) for t, text, it, _ in lines
    ]


def _processes(w: World) -> list[Stream]:
    out = []
    for (attempt, rank), lines in sorted(w.processes.items()):
        node = w.topo.node(rank)
        text = _stamped(w, node, lines, iterations=w.scene.layout == "sdk")
        name = f"attempt_{attempt}/rank_{rank}"
        out.append(Stream(name, rank, w.topo.hosts[node], "process", text, attempt))
    return out


def _beside(w: World) -> list[Stream]:
    """Launcher, agents, kernels, analyses: where the layout has not put them elsewhere."""
    out = []
    if w.scene.layout != "srun":
        name = f"slurm-{w.job_id}.out"
        out.append(Stream(name, None, w.topo.hosts[0], "launcher", _stamped(w, 0, w.launcher)))
    if w.scene.layout not in ("tee", "bare", "srun"):
        for node, lines in sorted(w.agents.items()):
            host = w.topo.hosts[node]
            out.append(Stream(f"console_{host}.txt", None, host, "agent", _stamped(w, node, lines)))
    for node, lines in sorted(w.kernel.items()):
        host = w.topo.hosts[node]
        out.append(Stream(f"{host}/dmesg.log", None, host, "kernel", _stamped(w, node, lines)))
    for name, lines in sorted(w.extra.items()):
        out.append(Stream(name, None, w.topo.hosts[0], "analysis", _stamped(w, 0, lines)))
    return out


# --- layouts --------------------------------------------------------------------------------------
def _rank_files(w: World) -> list[Stream]:
    folder = "logs/" if w.chance(0.3) else ""
    out = []
    for rank in range(w.topo.ranks):
        lines = [line for a in range(w.attempt + 1) for line in w.processes.get((a, rank), ())]
        text = _stamped(w, w.topo.node(rank), lines)
        out.append(Stream(f"{folder}rank-{rank}.log", rank, w.topo.host(rank), "file", text))
    return out


def _torchrun_dir(w: World) -> list[Stream]:
    out = []
    letters = "abcdefghijklmnopqrstuvwxyz0123456789_"
    trees = [
        f"{host}/{w.run_id}_" + "".join(letters[i] for i in w.rng.integers(0, 36, 8))
        for host in w.topo.hosts
    ]
    for attempt, rank in product(range(w.attempt + 1), range(w.topo.ranks)):
        node, lines = w.topo.node(rank), w.processes.get((attempt, rank), [])
        for channel in ("stdout", "stderr"):  # empty files, too: the launcher opens them
            name = f"{trees[node]}/attempt_{attempt}/{w.topo.local(rank)}/{channel}.log"
            text = _stamped(w, node, [line for line in lines if line[3] == channel])
            out.append(Stream(name, rank, w.topo.hosts[node], channel, text, attempt))
    return out


# Whose text carries no rank: in one console of all nodes its local rank would be anybody's.
_UNTAGGED = ("hang_silent", "segfault_rank", "segfault_all")


def _tee(w: World) -> list[Stream]:
    """Pipes are read when they are, each in order: a rank's lines stay in order, no two ranks' do."""
    role = "default" if w.chance(0.8) else "trainer"
    tags_name_ranks = w.scene.framework in ("titan", "deepspeed", "megatron", "nemo")
    tags_name_ranks &= w.scene.fault not in _UNTAGGED
    bare = w.scene.layout == "bare"
    merged = bare or w.topo.nodes == 1 or (tags_name_ranks and w.chance(0.4))
    pieces: dict[int, list[tuple[int, int, bytes]]] = {}
    for (_, rank), lines in sorted(w.processes.items()):
        node = w.topo.node(rank)
        shown = _delayed(w, [line[0] for line in lines])
        label = "" if bare else f"[{role}{w.topo.local(rank)}]:"
        text = _stamped(w, node, lines, label)
        out = pieces.setdefault(0 if merged else node, [])
        out += [(at, ns, line) for at, (ns, line, _) in zip(shown, text, strict=True)]
    for node, lines in w.agents.items():
        out = pieces.setdefault(0 if merged else node, [])
        out += [
            (line[0], ns, text)
            for line, (ns, text, _) in zip(lines, _stamped(w, node, lines), strict=True)
        ]
    streams = []
    for node, out in sorted(pieces.items()):
        out.sort(key=lambda piece: piece[0])
        if bare and w.chance(0.4):
            out = _joined(w, out)
        name = "console.txt" if merged else f"console_node{node}.txt"
        shown_lines: Lines = [(ns, text, None) for _, ns, text in out]
        streams.append(Stream(name, None, w.topo.hosts[node], "console", shown_lines))
    return streams


def _joined(w: World, pieces: list[tuple[int, int, bytes]]) -> list[tuple[int, int, bytes]]:
    """Two processes write at once: a line of an iteration stands behind another on one line."""
    out: list[tuple[int, int, bytes]] = []
    lost = w.rng.random(len(pieces)) < 0.02
    for (at, ns, text), join in zip(pieces, lost.tolist(), strict=True):
        if join and out and b"iteration" in text and b"iteration" in out[-1][2]:
            out[-1] = (out[-1][0], out[-1][1], out[-1][2] + text)
        else:
            out.append((at, ns, text))
    return out


def _delayed(w: World, times: list[int]) -> list[int]:
    """When a pipe's lines reach the console: up to 150 ms later, never before an earlier one."""
    if not times:
        return []
    delays = w.rng.integers(0, 150 * MS, len(times))
    return np.maximum.accumulate(np.array(times, np.int64) + delays).tolist()  # type: ignore[no-any-return]


def _srun(w: World) -> list[Stream]:
    width = len(str(w.topo.ranks - 1))
    pieces = []
    for (_, rank), lines in sorted(w.processes.items()):
        text = _stamped(w, w.topo.node(rank), lines, f"{rank:{width}d}: ")
        shown = _delayed(w, [line[0] for line in lines])
        pieces += [(at, ns, line) for at, (ns, line, _) in zip(shown, text, strict=True)]
    launched = _stamped(w, 0, w.launcher)
    pieces += [
        (line[0], ns, text) for line, (ns, text, _) in zip(w.launcher, launched, strict=True)
    ]
    pieces.sort(key=lambda piece: piece[0])
    shown_lines: Lines = [(ns, text, None) for _, ns, text in pieces]
    return [Stream(f"slurm-{w.job_id}.out", None, w.topo.hosts[0], "console", shown_lines)]


def _sdk(w: World) -> list[Stream]:
    """What goes through the SDK, and what the process's stderr caught beside it."""
    out = []
    for (attempt, rank), lines in sorted(w.processes.items()):
        node = w.topo.node(rank)
        for channel, name in (("stdout", "logging"), ("stderr", "stderr")):
            own = [line for line in lines if line[3] == channel]
            text = _stamped(w, node, own, iterations=True)
            path = f"rank-{rank}/{name}.log"
            out.append(Stream(path, rank, w.topo.hosts[node], name, text, attempt))
    return out


_LAYOUTS = {
    "rank_files": _rank_files,
    "torchrun_dir": _torchrun_dir,
    "tee": _tee,
    "bare": _tee,
    "srun": _srun,
    "sdk": _sdk,
}
