"""`python -m tests.bench.memory`: peak memory of the functions, each in a process of its own.

    python -m tests.bench.memory [--folder .bench]

ingest  one Lambda event of 6 MB, its frames in base64, into an empty store
query   the root: a count by call site, a page of 1,000 lines, a rare literal; its scans run elsewhere
scan    the largest task of a regex over everything, 50,000 hits and more

A process's peak is all of it: interpreter, libraries, work. What `import` alone takes is printed beside.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tests.bench.figures import Figure, show

EVENT_BYTES = 6_000_000
# MB, as the issue of the engine has them.
MARKS_MB = {"ingest": 512, "query": 256, "scan": 512}
_NAMES = {
    "ingest": "memory, ingest of one event of 6 MB",
    "query": "memory, query root",
    "scan": "memory, scan of one task",
}
_QUESTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("/v1/count", {"query": "level>=INFO", "by": ["call_site"]}),
    ("/v1/search", {"query": "level>=INFO", "limit": 1000}),
    ("/v1/search", {"query": '"GPU has fallen off the bus"'}),
)


def measure(folder: Path) -> list[Figure]:
    """Peaks in MB beside their marks."""
    with tempfile.TemporaryDirectory() as work:
        task = Path(work) / "task.json"
        task.write_bytes(largest_task(folder / "store"))
        given = {
            "ingest": [str(Path(work) / "new")],
            "query": [str(folder / "store")],
            "scan": [str(folder / "store"), str(task)],
        }
        figures = []
        for part, arguments in given.items():
            found = _peak_of(part, arguments)
            figures.append(Figure(_NAMES[part], found["peak"], "MB", MARKS_MB[part]))
            figures.append(Figure(f"  of it before its first event, {part}", found["before"], "MB"))
    return figures


def _peak_of(part: str, arguments: list[str]) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.bench.memory", "--part", part, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{part}: {done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


class _Recorder:
    """Keeps the tasks, answers none of them."""

    def __init__(self) -> None:
        self.tasks: list[bytes] = []

    def invoke(self, task: bytes) -> bytes:
        from ranklog.plan.tasks import SKIPPED, Outcome, encode_outcome

        self.tasks.append(task)
        return encode_outcome(Outcome(tag=SKIPPED, reason="only planned"))


def largest_task(store: Path) -> bytes:
    """The task with the most segments that lines of a dense regex make."""
    from ranklog.client import Client
    from tests.bench.suite import RUN

    recorder = _Recorder()
    with Client(store=str(store), tenant="bench", invoker=recorder, concurrency=1) as client:
        client.search(r"/loss=\d+\.\d+ | \d\d\d\d\d \w+ \d\d\d\d\d/", run=RUN, limit=50_000)
    return max(recorder.tasks, key=len)


# --- in the process that is measured ------------------------------------------------------------
def _peak_mb() -> float:
    """The high-water mark of this program; getrusage's begins with that of the parent, which forked."""
    status = Path("/proc/self/status").read_text()
    [kib] = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(kib) / 1024


def _child(part: str, arguments: list[str]) -> dict[str, float]:
    os.environ["RANKLOG_STORE"] = arguments[0]
    return {"ingest": _ingest, "query": _query, "scan": _scan}[part](arguments)


def _ingest(arguments: list[str]) -> dict[str, float]:
    from ranklog.store.open import open_store

    open_store(arguments[0], create=True)
    with get_context("spawn").Pool(1) as other:  # what makes frames takes memory of its own
        event = json.loads(other.apply(lambda_event, (EVENT_BYTES,)))
    from tests.bench.functions import load_handler

    handler = load_handler("ingest")
    before = _peak_mb()
    failures = handler(event)["batchItemFailures"]
    if failures:
        raise RuntimeError(f"not stored: {failures}")
    return {"before": before, "peak": _peak_mb()}


def lambda_event(size: int) -> str:
    """JSON of an event of Kinesis records that is nearly so large."""
    from ranklog.stream.frames import encode_frame
    from tests.bench.corpus import corpus

    records: list[dict[str, Any]] = []
    left = size
    for number, frame in enumerate(corpus(2_000_000), 1):
        data = base64.b64encode(encode_frame(frame)).decode()
        left -= len(data) + 500
        if left < 0:
            break
        records.append(
            {
                "eventID": f"shardId-000000000000:{number:056d}",
                "eventSourceARN": "arn:aws:kinesis:eu-central-1:123456789012:stream/frames",
                "kinesis": {
                    "partitionKey": frame.agent,
                    "sequenceNumber": f"{number:056d}",
                    "data": data,
                    "approximateArrivalTimestamp": int.from_bytes(frame.ts[-8:], "little") / 1e9,
                },
            }
        )
    return json.dumps({"Records": records})


def _query(arguments: list[str]) -> dict[str, float]:
    os.environ |= {"RANKLOG_SCAN_FUNCTION": "scan", "AWS_DEFAULT_REGION": "eu-central-1"}
    from ranklog.serverless import root
    from tests.bench.functions import load_handler

    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        setattr(root, "LambdaInvoker", lambda *_, **__: _Elsewhere(pool))  # noqa: B010
        handler = load_handler("query")
        before = _peak_mb()
        for path, body in _QUESTIONS:
            answer = handler(
                {"tenant": "bench", "path": path, "body": {"run": "llama-70b", **body}}
            )
            if answer["status"] != 200:
                raise RuntimeError(str(answer))
    return {"before": before, "peak": _peak_mb()}


class _Elsewhere:
    """Scans in another process."""

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self._pool = pool

    def invoke(self, task: bytes) -> bytes:
        return self._pool.submit(scan_elsewhere, task).result()


def scan_elsewhere(task: bytes) -> bytes:
    """A task over the store of the environment."""
    from ranklog.scan.evaluate import evaluate
    from ranklog.store.open import open_store

    return evaluate(task, open_store(os.environ["RANKLOG_STORE"]))


def _scan(arguments: list[str]) -> dict[str, float]:
    from ranklog.plan.tasks import decode_outcome
    from ranklog.scan.lambda_invoke import unpack_outcome
    from tests.bench.functions import load_handler

    task = json.loads(Path(arguments[1]).read_bytes())
    handler = load_handler("scan")
    before = _peak_mb()
    answer = handler(task)
    peak = _peak_mb()
    outcome = decode_outcome(unpack_outcome(json.dumps(answer).encode()))
    if outcome.failed:
        raise RuntimeError(str(outcome.failed[0]))
    return {"before": before, "peak": peak}


def main() -> int:
    """Print the figures; `--part` is the process that is measured."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=Path(".bench"))
    parser.add_argument("--part", choices=tuple(MARKS_MB), help=argparse.SUPPRESS)
    parser.add_argument("arguments", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        print(json.dumps(_child(options.part, options.arguments)))
        return 0
    show(measure(options.folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
