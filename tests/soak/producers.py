"""Many ranks from one process that was imported once: each child logs numbered lines until it is told to end.

A child writes how many it said to `<folder>/said/<rank>` when it ends.
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


def text(rank: int, number: int) -> str:
    """What a rank says, which names the line."""
    return f"producer {rank} line {number} loss {1 / (number + 1):.5f} on node{rank % 8}"


def one(rank: int, options: argparse.Namespace) -> None:
    """Be a rank."""
    import ranklog

    ending = []
    signal.signal(signal.SIGTERM, lambda *_: ending.append(1))
    ranklog.init(
        run=run_of(rank),
        launch="l1",
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
    (options.said / str(rank)).write_text(str(number))


def main() -> int:
    """Fork, wait, pass SIGTERM on."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--first", type=int, required=True)
    parser.add_argument("--end", type=int, required=True)
    parser.add_argument("--producers", type=int, required=True)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--spool", type=Path, required=True)
    parser.add_argument("--said", type=Path, required=True)
    parser.add_argument("--destination", required=True)
    options = parser.parse_args()
    import ranklog  # noqa: F401  once, for all children

    children = []
    for rank in range(options.first, options.end):
        pid = os.fork()
        if pid == 0:
            try:
                one(rank, options)
            finally:
                os._exit(0)
        children.append(pid)

    def end(*_: object) -> None:
        for pid in children:
            os.kill(pid, signal.SIGTERM)

    signal.signal(signal.SIGTERM, end)
    for pid in children:
        while True:
            try:
                os.waitpid(pid, 0)
            except InterruptedError:
                continue
            except ChildProcessError:
                pass
            break
    return 0


if __name__ == "__main__":
    sys.exit(main())
