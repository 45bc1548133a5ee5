"""Says what a seed tells it, through everything that has two forms: `python -m tests.produce.saying
FOLDER SEED`. Files of the process are left in FOLDER, its ring among them."""

from __future__ import annotations

import logging
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ranklog
from ranklog.produce import spool, telemetry
from ranklog.produce.compiled import hot
from ranklog.produce.fast_log import FastLog
from ranklog.produce.handler import RanklogHandler
from ranklog.produce.identity import Identity
from ranklog.produce.producer import Producer

STEPS = 3_000
INTS = [0, 1, 31, 127, 128, 255, 256, 65535, 65536, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1]
INTS += [-number for number in INTS] + [-33, -129, -(2**15) - 1, -(2**31) - 1, 2**64, -(2**63) - 1]
TEXTS = ["", "a", "x" * 31, "y" * 32, "z" * 255, "ü" * 128, "€" * 200, "\udc80", "w" * 600]
TEXTS += ["v" * 5_000, "100%", "two\nlines", "nul\0", "😀"]
STRANGE: list[Any] = [[1, 2], (1,), {"a": 1}, b"bytes", 1j]
LOGGERS = [logging.getLogger(name) for name in ("a", "a.b", "a.b.c", "other")]


class Rude:
    """Of a stranger."""

    def __str__(self) -> str:
        raise RuntimeError("no")


def value_of(source: random.Random) -> Any:
    """Mostly what waits to be formatted."""
    kinds: list[Callable[[], Any]] = [
        lambda: source.choice(INTS),
        lambda: source.choice([0.0, -0.0, 1.5, 1e300, float("inf"), float("-inf")]),
        lambda: source.choice(TEXTS),
        lambda: source.choice([True, False, None]),
        lambda: source.choice(STRANGE),
    ]
    return source.choices(kinds, [6, 4, 6, 3, 1])[0]()


def log(source: random.Random) -> None:
    """A line, in one of the ways that Python's logging has."""
    logger, level = source.choice(LOGGERS), source.choice([10, 15, 20, 25, 30, 40])
    values = tuple(value_of(source) for _ in range(source.choice([0, 1, 1, 2, 3, 20])))
    way = source.randrange(9)
    if way == 0:
        logger.log(level, source.choice(TEXTS))
    elif way == 1:
        logger.info("at %s and %s", *values[:2])
    elif way == 2:
        logger.log(level, "%s " * len(values), *values)
    elif way == 3:
        logger.info("%(a)s", {"a": source.choice(INTS)})
    elif way == 4:
        logging.info("by the module %s", source.choice(INTS))
    elif way == 5:
        logger.info("with extra", extra={"shard": source.randrange(3)})
    elif way == 6:
        logger.info(Rude() if source.random() < 0.2 else source.choice(INTS))
    elif way == 7:
        logger.debug("step %d loss %.4f", source.randrange(1 << 20), source.random())
    else:
        logger.log(level, "adapted %s", source.choice(TEXTS), stacklevel=source.choice([1, 2]))


def point(source: random.Random) -> None:
    """Values, some of them with dimensions."""
    size = source.choice([0, 1, 1, 1, 2, 20])
    any_kind = source.random() < 0.2
    values: Any = {
        f"series{n}": value_of(source) if any_kind else source.random() for n in range(size)
    }
    ways = source.randrange(6)
    if ways == 0:
        ranklog.telemetry(values, layer=f"h.{source.randrange(3)}")
    elif ways == 1:
        ranklog.telemetry(values, layer="h", shard=source.choice([1, True, 1.0, "1", 2, None, -1]))
    elif ways == 2:
        ranklog.telemetry(dict(reversed(values.items())))
    elif ways == 3:
        ranklog.telemetry({source.choice([3, "name", None]): 1.5})
    else:
        ranklog.telemetry(values)


def turn(source: random.Random, handler: RanklogHandler) -> None:
    """Something that changes what lines are stamped with, or who else sees them."""
    way = source.randrange(8)
    root = logging.getLogger()
    if way == 0:
        root.handlers = [handler] if len(root.handlers) > 1 else [logging.NullHandler(), handler]
    elif way == 1:
        source.choice(LOGGERS).filters = source.choice([[], [lambda record: True]])
    elif way == 2:
        LOGGERS[1].propagate = not LOGGERS[1].propagate
    elif way == 3:
        handler.setLevel(source.choice([0, 10, 20]))
    elif way == 4:
        handler.filters = source.choice([[], [lambda record: record.levelno != 15]])
    elif way == 5:
        ranklog.context(shard=source.randrange(4), rank=source.choice([None, 1, 2]))
    else:
        ranklog.iteration(source.choice([*range(10), 2**61, -5]))


def main() -> None:
    folder, source = Path(sys.argv[1]), random.Random(int(sys.argv[2]))
    print("compiled:", hot is not None)
    identity = Identity("t", "r", "l", 0, "h", 0, 0, 1)
    made = Producer(folder / "spool", identity, size=8 << 20, rings=folder / "rings")
    handler = RanklogHandler(made)
    root = logging.getLogger()
    root.setLevel(1)
    root.addHandler(handler)
    fast = FastLog(handler)
    fast.install()
    telemetry.attach(made)
    logging.lastResort = None
    for _ in range(STEPS):
        said = source.random()
        if said < 0.6:
            log(source)
        elif said < 0.9:
            point(source)
        elif said < 0.95:
            turn(source, handler)
        else:
            with ranklog.context(inside=source.randrange(3)), ranklog.iteration(7):
                log(source)
    made.close()
    files = made.process.files
    for name, end in ((spool.RING, "ring"), (spool.JOURNAL, "lines"), (spool.DEFS, "defs")):
        (made.folder / files[name]).rename(folder / f"process.{end}")


if __name__ == "__main__":
    main()
