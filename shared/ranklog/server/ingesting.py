"""The role ingest: frames from a stream on disk into a store, in batches, and the stream kept short."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

from ranklog.errors import RanklogError
from ranklog.ingest.batch import IngestReport
from ranklog.ingest.local import consumer_of, ingest_stream
from ranklog.limits import LOCAL_BATCH_BYTES_MAX, SECOND_NS
from ranklog.objectives.recorder import Recorder
from ranklog.store.protocol import Store
from ranklog.stream.disk import DiskStream

# Between two looks at a stream.
LOOK_S = 0.1
# A store that is away is asked again after a random part of this, which doubles with each failure.
RETRY_S, RETRY_S_MAX = 0.5, 30.0


def ingest_until(
    stopping: Callable[[], bool],
    folder: Path,
    store: Store,
    *,
    window_s: float,
    tell: Callable[[str], None],
) -> None:
    """Gather frames for at most `window_s`, ingest them, remove them from the stream; and again.

    One process at a time ingests a stream into a store: another waits, and takes over where it ends.
    What fails for now is tried again and told once; nothing leaves the stream before it is stored.
    """
    stream = DiskStream(folder)
    recorder = Recorder(store, background=True)
    failures = 0
    with stream.consuming(consumer_of(store), stopping) as taken:
        while taken and not stopping():
            try:
                if not _is_due(stream, store, window_s):
                    time.sleep(LOOK_S)
                    continue
                for report in ingest_stream(stream, store, recorder):
                    _tell_bad(report, tell)
                stream.trim()
            except RanklogError as error:
                if failures == 0:
                    tell(f"ingest waits: {error.message}")
                time.sleep(random.uniform(0, min(RETRY_S_MAX, RETRY_S * 2**failures)))
                failures = min(failures + 1, 16)
            else:
                if failures:
                    tell("ingest goes on")
                failures = 0


def _is_due(stream: DiskStream, store: Store, window_s: float) -> bool:
    """Whether a frame has waited for the window, or a batch is full."""
    waiting = stream.waiting(consumer_of(store))
    if waiting is None:
        return False
    oldest_ns, held = waiting
    # a clock that was set back makes nobody wait for longer than that
    age_s = abs(time.time_ns() - oldest_ns) / SECOND_NS
    return held >= LOCAL_BATCH_BYTES_MAX or age_s >= window_s


def _tell_bad(report: IngestReport, tell: Callable[[str], None]) -> None:
    for frame in report.bad:
        tell(f"quarantined: {frame.reason}: {frame.key}")
    for rule, reason in report.rules_failed.items():
        tell(f"rule {rule}: {reason}")
