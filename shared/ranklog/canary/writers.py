"""The ways in: through a producer and an agent of the canary's own, or as a frame at the door of a stream."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from ranklog.canary.lines import LEVEL, Round
from ranklog.errors import Unavailable
from ranklog.limits import CANARY_RUN, HOUR_NS
from ranklog.model.frame import CallSite, Fence, StreamEnd
from ranklog.model.stream import Stream
from ranklog.stream.builder import FrameBuilder
from ranklog.stream.frames import encode_frame

# A launcher's words would make the canary a rank of the job that it runs beside.
_NOT_OURS = (
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "SLURM_",
    "PMI",
    "OMPI_",
    "TORCHELASTIC_",
    "MASTER_",
)
# For a process that starts, logs some lines and ends.
PROCESS_S = 60
_OURS_TOO = ("RANKLOG_INGEST_KEY", "RANKLOG_INGEST_KEY_FILE", "RANKLOG_API_KEY")


@dataclass(frozen=True, slots=True)
class ThroughProducer:
    """A process logs through `ranklog.init`; then an agent frames, seals and sends what it left in its
    spool, and is done when everything is acknowledged."""

    destination: str
    tenant: str
    timeout_s: float

    def write(self, lines: Round) -> None:
        """Raises Unavailable where the process fails, or the destination does not take all in time."""
        from ranklog.agent.replay import replay

        folder = Path(tempfile.mkdtemp(prefix="ranklog-canary-"))
        try:
            self._log(lines, folder / "spool")
            sent = replay(folder / "spool", self.destination, os.environ, timeout_s=self.timeout_s)
            if sent.left or sent.refused:
                raise Unavailable(
                    f"{self.destination} did not take the canary's lines: {sent.error}"
                )
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _log(self, lines: Round, spool: Path) -> None:
        said = {
            "run": CANARY_RUN,
            "launch": lines.launch,
            "tenant": self.tenant,
            "spool": str(spool),
            "lines": lines.texts(),
        }
        try:
            done = subprocess.run(
                [sys.executable, "-m", "ranklog.canary.process"],
                input=json.dumps(said),
                env=clean_environment(os.environ),
                capture_output=True,
                text=True,
                timeout=PROCESS_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise Unavailable(f"the canary's process took over {PROCESS_S} s") from error
        except OSError as error:
            raise Unavailable(f"the canary's process does not run: {error}") from error
        if done.returncode:
            why = done.stderr.strip().rpartition("\n")[2]
            raise Unavailable(f"the canary's process ended with {done.returncode}: {why}")


def clean_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Without what makes a process a rank of a job, or tells the SDK of another run."""
    return {
        name: value
        for name, value in environ.items()
        if name in _OURS_TOO or not name.startswith((*_NOT_OURS, "RANKLOG_"))
    }


@dataclass(frozen=True, slots=True)
class AsFrame:
    """One frame to whom takes a tenant's: the stream behind the API. It names who wrote it, `host`."""

    accept: Callable[[str, bytes], None]
    tenant: str
    host: str
    clock_ns: Callable[[], int] = time.time_ns

    def write(self, lines: Round) -> None:
        """Raises what `accept` raises."""
        agent = uuid.uuid4().hex
        stream = Stream(
            self.tenant, CANARY_RUN, lines.launch, 0, self.host, None, None, "logging", agent
        )
        builder = FrameBuilder(self.tenant, agent, 0, "")
        begun_ns = self.clock_ns()
        times = [begun_ns + at for at in range(lines.lines)]
        site = CallSite("ranklog/canary/writers.py:1")
        for seq, (ts_ns, text) in enumerate(zip(times, lines.texts(), strict=True)):
            builder.add(stream, seq, ts_ns, LEVEL, site, text, rank=None)
        for hour, seqs in groupby(range(lines.lines), key=lambda seq: times[seq] // HOUR_NS):
            own = list(seqs)
            builder.fence(stream, lines.lines, Fence(hour, ((own[0], own[-1] + 1),)))
        builder.end(stream, StreamEnd(lines.lines, 0))
        self.accept(self.tenant, encode_frame(builder.build()))
