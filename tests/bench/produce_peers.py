"""Others' ways to log a line or a value, for `tests.bench.produce`: what is installed of them."""

from __future__ import annotations

import contextlib
import logging
import logging.handlers
import os
import queue
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

CALLS = 2_000
Work = Callable[[], int]  # ns of thread CPU for CALLS calls


def peers(
    logged: Callable[[logging.Handler], Work], file: logging.FileHandler, folder: Path
) -> Iterator[tuple[str, Work]]:
    """(name, work) of each that is installed. `logged`: the usual line through a handler."""
    lines: queue.SimpleQueue[logging.LogRecord] = queue.SimpleQueue()
    listener = logging.handlers.QueueListener(lines, file)  # type: ignore[arg-type]
    queued = logged(logging.handlers.QueueHandler(lines))  # type: ignore[arg-type]

    def with_listener() -> int:
        listener.start()
        try:
            return queued()
        finally:
            listener.stop()

    yield ("QueueHandler and listener, its thread aside", with_listener)
    with contextlib.suppress(ImportError):
        from loguru import logger as loguru

        loguru.remove()
        loguru.add(folder / "loguru.log")

        def by_loguru() -> int:
            start = time.thread_time_ns()
            for number in range(CALLS):
                loguru.info("iteration {} done", number)
            return time.thread_time_ns() - start

        yield ("loguru to a file", by_loguru)
    with contextlib.suppress(ImportError):
        yield ("OpenTelemetry, batches to nowhere", logged(_opentelemetry_handler()))
    with contextlib.suppress(ImportError):
        # Its cheapest store, though it asks for a database by now.
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
        import mlflow

        mlflow.set_tracking_uri(f"file:{folder / 'mlruns'}")

        def by_mlflow() -> int:
            start = time.thread_time_ns()
            for number in range(CALLS // 100):
                mlflow.log_metric("loss", 2.31, step=number)
            return 100 * (time.thread_time_ns() - start)

        yield ("mlflow, one value to files", by_mlflow)
    with contextlib.suppress(ImportError):
        import wandb

        run = wandb.init(mode="offline", dir=folder)

        def by_wandb() -> int:
            start = time.thread_time_ns()
            for _ in range(CALLS // 10):
                run.log({"loss": 2.31})
            return 10 * (time.thread_time_ns() - start)

        yield ("wandb offline, one value", by_wandb)


def _opentelemetry_handler() -> logging.Handler:
    from opentelemetry.sdk import _logs
    from opentelemetry.sdk._logs import export

    class Nowhere(export.LogRecordExporter):
        def export(self, batch: object) -> export.LogRecordExportResult:
            return export.LogRecordExportResult.SUCCESS

        def shutdown(self) -> None: ...

        def force_flush(self, timeout_millis: int = 0) -> bool:
            return True

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        provider = _logs.LoggerProvider()
        provider.add_log_record_processor(export.BatchLogRecordProcessor(Nowhere()))
        return _logs.LoggingHandler(logger_provider=provider)
