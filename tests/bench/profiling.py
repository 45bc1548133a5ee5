"""`python -m tests.bench.profiling`: where the time of a question of the suite goes, on a kept folder.

    python -m tests.bench --folder .bench --keep
    python -m tests.bench.profiling --folder .bench [--top 20] [words of the question's name …]

Without words: wall and CPU of every question, and the answer's own account of list, plan, scan and merge.
With words: cProfile of the questions that have them, in this thread's share; DuckDB is one line of it.
CPU is of the process, the least of `--repeat` warm calls: a busy neighbour changes it less than the wall.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import statistics
import sys
import time
from pathlib import Path

from ranklog.client import Client
from tests.bench.asking import ask_ranklog
from tests.bench.suite import Question, questions, take_sample


def show_times(client: Client, question: Question, repeat: int) -> None:
    """One line of the table."""
    ask_ranklog(client, question)
    walls, cpus = [], []
    for _ in range(repeat):
        wall, cpu = time.perf_counter(), time.process_time()
        ask_ranklog(client, question)
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    ms = ask_ranklog(client, question).report.ms
    stages = " ".join(f"{name} {spent:.1f}" for name, spent in ms.items())
    wall_ms, cpu_ms = statistics.median(walls) * 1e3, min(cpus) * 1e3
    print(f"{question.name:30} wall {wall_ms:8.1f} cpu {cpu_ms:8.1f}   {stages}")


def show_profile(client: Client, question: Question, repeat: int, top: int) -> None:
    """Functions by their own time."""
    ask_ranklog(client, question)
    profile = cProfile.Profile()
    profile.enable()
    for _ in range(repeat):
        ask_ranklog(client, question)
    profile.disable()
    print(f"{question.name}, {repeat} calls")
    pstats.Stats(profile).sort_stats("tottime").print_stats(top)


def main() -> int:
    """Print, change nothing."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("words", nargs="*", help="questions whose names have any of them")
    parser.add_argument("--folder", type=Path, default=Path(".bench"))
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--top", type=int, default=20)
    options = parser.parse_args()
    client = Client(store=str(options.folder / "store"), tenant="bench")
    for question in questions(take_sample(client, options.folder / "bare.log")):
        if not options.words:
            show_times(client, question, options.repeat)
        elif any(word in question.name for word in options.words):
            show_profile(client, question, options.repeat, options.top)
    return 0


if __name__ == "__main__":
    sys.exit(main())
