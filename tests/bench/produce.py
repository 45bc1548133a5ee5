"""What a line costs the training process and its collector: `python -m tests.bench.produce`.

Best of several repeats, in ns a line. The first two are one call of `logging.info` with one argument: ours and
a FileHandler's; their ratio is what to look at, the times are the machine's.
"""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ranklog.agent.framer import Framer
from ranklog.agent.sources import JournalSource
from ranklog.produce import spool
from ranklog.produce.handler import RanklogHandler
from ranklog.produce.identity import Identity
from ranklog.produce.producer import Producer
from ranklog.stream.frames import decode_frame, encode_frame

LINES = 20_000
REPEATS = 5
IDENTITY = Identity("default", "bench", "l1", 0, "n0", 0, 0, 1)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        producer = Producer(Path(folder) / "spool", IDENTITY)
        plain = logging.FileHandler(Path(folder) / "plain.log")
        plain.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
        ours = _best(lambda: _log(RanklogHandler(producer)))
        theirs = _best(lambda: _log(plain))
        plain.close()
        print(f"logging.info to the journal     {ours:8.0f}")
        print(f"logging.info to a FileHandler   {theirs:8.0f}   journal / file {ours / theirs:.2f}")
        frames: list[bytes] = []
        collected = _best(lambda: _collect(producer, frames))
        print(f"journal to frames               {collected / REPEATS:8.0f}")
        decoded = [decode_frame(data) for data in frames]
        rows = sum(frame.rows for frame in decoded)
        scale = LINES / rows
        print(
            f"encode_frame                    {scale * _best(lambda: [*map(encode_frame, decoded)]):8.0f}"
        )
        print(
            f"decode_frame                    {scale * _best(lambda: [*map(decode_frame, frames)]):8.0f}"
        )
        print(f"bytes of a line in a frame      {sum(map(len, frames)) / rows:8.1f}")
        producer.close()


def _log(handler: logging.Handler) -> None:
    logger = logging.Logger("bench")
    logger.addHandler(handler)
    for number in range(LINES):
        logger.info("iteration %d done", number)


def _collect(producer: Producer, frames: list[bytes]) -> None:
    """Read the whole journal (REPEATS times LINES) into frames."""
    frames.clear()
    framer = Framer("bench", lambda _, data: frames.append(data))
    state = framer.state(producer.process.stream(spool.JOURNAL))
    path = producer.folder / producer.process.files[spool.JOURNAL]
    source = JournalSource(path, producer.process, state)
    source.read(framer, 0, final=False)
    framer.cut_all()
    source.close()


def _best(work: Callable[[], object]) -> float:
    """Nanoseconds by LINES."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter_ns()
        work()
        times.append(time.perf_counter_ns() - start)
    return min(times) / LINES


if __name__ == "__main__":
    main()
