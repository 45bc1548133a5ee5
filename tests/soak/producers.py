"""Many ranks from one process that was imported once: each child logs numbered lines until it is told to end.

Every `--launch-s` seconds the ranks of a new launch begin, and then those of the one before end. A child writes how
many it said to `<folder>/said/<launch>.<rank>` when it ends.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import time
from pathlib import Path

RUN, BRIEF = "soak", "brief"
# Ranks of the run that is kept briefly: those whose number ends so, in base 16.
BRIEF_OF = 3


def run_of(rank: int) -> str:
    """The run that a rank belongs to."""
    return BRIEF if rank % 16 == BRIEF_OF else RUN


def launch_of(nth: int) -> str:
    """The name of a launch."""
    return f"l{nth}"


def text(rank: int, number: int) -> str:
    """What a rank says, which names the line of a launch."""
    return f"producer {rank} line {number} loss {1 / (number + 1):.5f} on node{rank % 8}"


def one(rank: int, nth: int, ending: list[int], options: argparse.Namespace) -> None:
    """Be a rank of a launch, until `ending` has something."""
    import ranklog

    ranklog.init(
        run=run_of(rank),
        launch=launch_of(nth),
        rank=rank,
        world_size=options.producers,
        spool_dir=options.spool,
        destination=options.destination,
    )
    logger = logging.getLogger("trainer")
    logger.setLevel(logging.INFO)
    logging.getLogger().addHandler(logging.NullHandler())  # warnings are not for this console
    begun, number = time.monotonic(), 0
    while not ending:
        while number < (time.monotonic() - begun) * options.rate:
            level = logging.WARNING if number % 97 == 96 else logging.INFO
            logger.log(level, text(rank, number))
            number += 1
        time.sleep(0.05)
    ranklog.close()
    (options.said / f"{launch_of(nth)}.{rank}").write_text(str(number))


def fork_all(nth: int, ending: list[int], options: argparse.Namespace) -> list[int]:
    """The ranks of a launch, each a child; their pids. Each has its own copy of `ending`, which SIGTERM
    fills from the first moment on."""
    children = []
    for rank in range(options.first, options.end):
        pid = os.fork()
        if pid == 0:
            try:
                one(rank, nth, ending, options)
            finally:
                os._exit(0)
        children.append(pid)
    return children


def end_all(children: list[int]) -> None:
    """Tell them to end, and wait until they have."""
    for pid in children:
        os.kill(pid, signal.SIGTERM)
    for pid in children:
        os.waitpid(pid, 0)


def main() -> int:
    """Launch after launch, until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--first", type=int, required=True)
    parser.add_argument("--end", type=int, required=True)
    parser.add_argument("--producers", type=int, required=True)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--spool", type=Path, required=True)
    parser.add_argument("--said", type=Path, required=True)
    parser.add_argument("--destination", required=True)
    parser.add_argument("--launch-s", type=float, required=True)
    options = parser.parse_args()
    import ranklog  # noqa: F401  once, for all children

    ending: list[int] = []
    signal.signal(signal.SIGTERM, lambda *_: ending.append(1))
    nth, begun, children = 0, time.monotonic(), fork_all(0, ending, options)
    while not ending:
        time.sleep(0.1)
        if time.monotonic() - begun >= (nth + 1) * options.launch_s:
            nth += 1
            newer = fork_all(nth, ending, options)  # first, so that the agent of the host lives on
            end_all(children)
            children = newer
    end_all(children)
    return 0


if __name__ == "__main__":
    sys.exit(main())
