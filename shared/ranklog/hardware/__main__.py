"""The monitor of a host, beside a job of `ranklog run --monitor`; ends when its standard input does."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

from ranklog.hardware.monitor import EVERY_S, Monitor, sources
from ranklog.produce import telemetry
from ranklog.produce.identity import identify
from ranklog.produce.producer import Producer
from ranklog.produce.surroundings import here

ROLE = "monitor"
CLOSE_S = 5.0


def main() -> int:
    """Read until whoever started us closes our standard input, or ends."""
    who = identify(os.environ, here())
    whose_host = replace(who, rank=None, local_rank=None, world_size=None, role=ROLE)
    folder = Path(os.environ["RANKLOG_SPOOL"])
    producer = Producer(folder, whose_host, launched=True)
    telemetry.attach(producer)

    def say(text: str) -> None:
        producer.line(producer.call(__file__, 0, None, ROLE, 20), text)

    monitor = Monitor(*sources(True, say, takes_process=False), EVERY_S)
    monitor.start()
    while sys.stdin.buffer.read(4096):
        pass
    monitor.close()
    telemetry.attach(None)
    producer.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
