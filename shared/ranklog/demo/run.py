"""Runs the job, collects what its ranks say, and ingests it into a store."""

from __future__ import annotations

import os
import secrets
import socket
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from ranklog.demo.shards import write_shards
from ranklog.launch.launcher import Launcher, ranks_of
from ranklog.produce.identity import Identity
from ranklog.store.protocol import Store
from ranklog.stream.disk import DiskStream

FAULTY_RANK = 2
TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class DemoResult:
    """What the job did. `exit_codes` by rank; `lines` and `frames` were ingested."""

    tenant: str
    run: str
    launch: str
    exit_codes: dict[int, int]
    lines: int
    frames: int
    train_s: float
    ingest_s: float

    @property
    def run_id(self) -> str:
        return f"{self.run}@{self.launch}"


def run_demo(
    store: Store,
    *,
    ranks: int = 4,
    run: str = "demo",
    tenant: str = "default",
    fault: bool = True,
    out: TextIO = sys.stderr,
) -> DemoResult:
    """Train with `ranks` processes; with `fault`, one rank's data is damaged. `out`: progress.

    Nothing is left on the disk but what is in the store. Raises RanklogError of the store.
    """
    from ranklog.ingest.local import ingest_stream

    identity = _identity(tenant, run)
    with tempfile.TemporaryDirectory(prefix="ranklog-demo-") as temporary:
        folder = Path(temporary)
        print(f"training {identity.run}@{identity.launch} on {ranks} processes …", file=out)
        start = time.perf_counter()
        codes = train_job(folder, identity, ranks, fault=fault)
        train_s = time.perf_counter() - start
        stream = DiskStream(folder / "stream", sync=False)
        frames = sum(1 for _ in stream.read())
        print(f"ingesting {frames} frames …", file=out)
        start = time.perf_counter()
        lines = sum(report.lines for report in ingest_stream(stream, store))
        ingest_s = time.perf_counter() - start
    return DemoResult(
        tenant=tenant,
        run=run,
        launch=identity.launch,
        exit_codes=codes,
        lines=lines,
        frames=frames,
        train_s=train_s,
        ingest_s=ingest_s,
    )


def train_job(folder: Path, identity: Identity, ranks: int, *, fault: bool) -> dict[int, int]:
    """Run the job in `folder`; its frames are in the disk stream `folder/stream`."""
    data = folder / "data"
    data.mkdir()
    damaged = min(FAULTY_RANK, ranks - 1) if fault else None
    write_shards(data, ranks, damaged=damaged)
    launcher = Launcher(folder / "spool", DiskStream(folder / "stream", sync=False))
    command = [sys.executable, "-m", "ranklog.demo.train", str(data)]
    for rank in ranks_of(identity, ranks, command):
        launcher.start(rank, _environment())
    return launcher.wait(TIMEOUT_S)


def _identity(tenant: str, run: str) -> Identity:
    launch = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()) + "-" + secrets.token_hex(2)
    host = socket.gethostname()
    return Identity(tenant, run, launch, 0, host, None, None, None)


def _environment() -> dict[str, str]:
    """The ranks import this very ranklog, installed or not."""
    package = str(Path(__file__).parents[2])
    inherited = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": f"{package}:{inherited}" if inherited else package}
