"""`python -m tests.artefacts marks`: the issue's marks, measured on the built functions on this machine.

    freshness    PutRecords to searchable, batch window of 1 s
    warm query   a rare literal over the corpus, api -> root -> 8 scan workers
    requests     of that query to the object store, counted by a proxy before it

`--json FILE` has all figures, for the model of scale and cost (README.md says what is in it).
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.artefacts import freshness, stages, warm_query
from tests.artefacts.build import WORK
from tests.artefacts.lambdas import Counts
from tests.artefacts.s3_proxy import tally
from tests.artefacts.stack import Options, Stack
from tests.bench.figures import Figure, show
from tests.servers import running_moto, running_seaweedfs

FRESH_S_MARK, QUERY_S_MARK = 3.0, 0.25
WINDOW_S, PRODUCE_S = 1, 60.0
# Lines put in each stretch of so many seconds are told apart: whether it grows.
_SLICE_S = 15.0
_STAGES = {
    "put": "until Kinesis has it",
    "poll": "until the mapping has read it",
    "window": "until its batch goes out",
    "ingest": "until the function has returned",
    "turn": "until the reader asks",
    "answer": "until it has the answer",
}


@contextmanager
def running(built: Path, python: Path, options: Options) -> Iterator[Stack]:
    """A stack with its servers, in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="ranklog-") as work:
        for name in ("weed", "moto"):
            (Path(work) / name).mkdir()
        with (
            running_seaweedfs(Path(work) / "weed") as s3,
            running_moto(Path(work) / "moto") as aws,
            Stack(built, python, Path(work) / "stack", s3, aws, options) as stack,
        ):
            yield stack


def measure_freshness(built: Path, python: Path, seconds: float) -> dict[str, Any]:
    """Times in seconds, and what the functions did for it, of lines that are put for so long."""
    with running(built, python, Options(parameters={"BatchWindowSeconds": WINDOW_S})) as stack:
        stack.start_mappings()
        for name in ("Ingest", "Scan", "Api"):
            stack[name].warm(2)
        cpu_s = stack["Ingest"].cpu_s
        found = freshness.measure(stack, seconds)
        puts = tally(stack.proxy.take())
        if found.lost:
            raise RuntimeError(f"of {len(found.put_s)} lines were not seen: {found.left_at()}")
        lines = found.lines
        lags = [line.lag_s for line in lines]
        batches = stack.mappings[0].delivered
        ingest = {
            "cpu_s": stack["Ingest"].cpu_s - cpu_s,
            "frames": found.frames,
            "bytes": found.frame_bytes,
        }
        return {
            "window_s": WINDOW_S,
            "lines": len(lags),
            "p50_s": statistics.median(lags),
            "p99_s": stages.share_of(lags, 0.99),
            "max_s": max(lags),
            "stages": {"p50_s": stages.medians(lines), "slowest_s": stages.slowest(lines)},
            "by_time": stages.by_time(lines, _SLICE_S),
            "cold_max_s": found.cold_s,
            "batches": len(batches),
            "ingest": ingest,
            "asked": found.asked,
            "ask_p50_s": statistics.median(found.ask_s),
            "whole_s": statistics.median(found.whole_s),
            "requests": puts,
            "functions": _functions(stack),
        }


def measure_query(built: Path, python: Path, lines: int) -> dict[str, Any]:
    """Times in seconds, requests, what the functions did for it."""
    options = Options(
        parameters={"ScanConcurrency": warm_query.WORKERS},
        concurrency={"ScanFunction": warm_query.WORKERS, "ApiFunction": 1},
        tenant=warm_query.TENANT,
    )
    with running(built, python, options) as stack:
        stored = warm_query.fill(stack, WORK / f"corpus-{lines}", lines)
        for name in ("Scan", "Api"):
            stack[name].warm(stack[name].concurrency)
        init = {name: _cpu_each(stack, name) for name in ("Scan", "Api")}
        asked = warm_query.measure(stack)
        return {
            "lines": lines,
            "stored": stored,
            "p50_s": statistics.median(asked.wall_s),
            "p99_s": sorted(asked.wall_s)[int(len(asked.wall_s) * 0.99)],
            "scan_tasks": asked.scan_tasks,
            "lists_max": warm_query.lists_max(asked.requests),
            "requests_max": asked.requests_max,
            "functions": _functions(stack),
            "cold_cpu_s": {"init": init, "first_event": asked.first_cpu_s},
            **warm_query.describe(asked),
        }


def _cpu_each(stack: Stack, name: str) -> float:
    """CPU seconds of one worker until now."""
    return stack[name].cpu_s / len(stack[name].pids)


def _functions(stack: Stack) -> dict[str, Any]:
    """Of those that did anything."""
    every = {name: one.counts for name, one in stack.lambdas.functions.items()}
    return {name: _counts(counts) for name, counts in every.items() if counts.invocations}


def _counts(counts: Counts) -> dict[str, Any]:
    """What a function did; times in ms."""
    ms = sorted(counts.ms)
    return {
        "invocations": counts.invocations,
        "cold_starts": counts.cold_starts,
        "errors": counts.errors,
        "throttles": counts.throttles,
        "ms_p50": statistics.median(ms),
        "ms_p99": ms[int(len(ms) * 0.99)],
        "init_ms_p50": statistics.median(counts.init_ms) if counts.init_ms else None,
        "first_ms_p50": statistics.median(counts.first_ms) if counts.first_ms else None,
    }


def fresh_figures(fresh: dict[str, Any]) -> list[Figure]:
    """The mark, what its slowest lines waited for, and whether that grows."""
    spent, stretches = fresh["stages"]["slowest_s"], fresh["by_time"]
    return [
        Figure("freshness, PutRecords to searchable, p50", fresh["p50_s"], "s"),
        Figure("freshness, PutRecords to searchable, p99", fresh["p99_s"], "s", FRESH_S_MARK),
        *(Figure(f"  of the slowest hundredth: {_STAGES[n]}", s, "s") for n, s in spent.items()),
        *(Figure(f"  p99 of lines put from {_from(one)}", one["p99_s"], "s") for one in stretches),
        Figure("freshness, longest of the first seconds", fresh["cold_max_s"], "s"),
        Figure("the newest 400 lines of the whole run, then", fresh["whole_s"], "s"),
    ]


def _from(stretch: dict[str, float]) -> str:
    return f"{stretch['from_s']:.0f} s on"


def query_figures(query: dict[str, Any]) -> list[Figure]:
    """The marks of the warm query, and what explains them."""
    requests, first = query["requests"], query["first_requests"]
    return [
        Figure("warm query, rare literal, p50", query["p50_s"], "s", QUERY_S_MARK),
        Figure("warm query, p99", query["p99_s"], "s"),
        Figure("warm query, CPU of all functions", query["cpu_s"], "s"),
        Figure("first query of warm processes", query["first_s"], "s"),
        Figure("  CPU of the api function's first event", query["cold_cpu_s"]["first_event"], "s"),
        Figure("LIST of a warm query", requests.get("LIST", 0), "", query["lists_max"]),
        Figure("  keys that they named", requests.get("listed keys", 0)),
        Figure("GET of an index, warm", requests.get("GET index", 0), "", 0),
        Figure("GET of an index, first", first.get("GET index", 0), "", query["index_objects"]),
        Figure(
            "GET of a segment", requests.get("GET data", 0), "", 2 * query["runs_of_row_groups"]
        ),
        Figure(
            "other requests",
            sum(requests.get(n, 0) for n in ("GET", "PUT", "DELETE", "HEAD")),
            "",
            0,
        ),
    ]


def main(
    built: Path, python: Path, lines: int | None, path: Path | None, seconds: float = PRODUCE_S
) -> int:
    """Print the figures; 1 where a mark is missed. `lines` of the query's corpus; None: freshness alone."""
    found: dict[str, Any] = {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "freshness": measure_freshness(built, python, seconds),
    }
    shown = fresh_figures(found["freshness"])
    if lines is not None:
        found["query"] = measure_query(built, python, lines)
        shown += query_figures(found["query"])
    show(shown)
    print(
        f"load average {found['load']:.1f} before, {os.getloadavg()[0]:.1f} after, {found['cores']} cores"
    )
    found["figures"] = [figure.to_json() for figure in shown]
    if path is not None:
        path.write_text(json.dumps(found, indent=1) + "\n")
    return 0 if all(figure.ok for figure in shown) else 1
