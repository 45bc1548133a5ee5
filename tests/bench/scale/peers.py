"""What others cost for the same TB: VictoriaLogs by its measured CPU and bytes where its binary is there,
Loki by the sizes its makers publish. Neither has the price of people who run it.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranklog.objectives import prices

# On-demand Linux in us-east-1, a general machine of 4 vCPUs and 16 GiB by the hour, and gp3 by the month.
VCPU_HOUR_USD = 0.192 / 4
GP3_GB_MONTH_USD = 0.08
INSTANCES = "https://aws.amazon.com/ec2/pricing/on-demand/"
LOKI_SOURCE = "https://grafana.com/docs/loki/latest/setup/size/"
# The first table of that page: the sum of its CPU requests, for less than 3 TB a day.
LOKI_VCPUS, LOKI_TB_A_DAY = 38.0, 3.0
VICTORIALOGS_FULL = 0.5
_LINES = 300_000


@dataclass(frozen=True, slots=True)
class Peer:
    """CPU seconds and stored bytes of a byte of text; `measured` here, or `source` says so."""

    name: str
    cpu_s_per_byte: float
    stored_per_byte: float
    measured: bool
    source: str

    def usd_per_tb(self) -> float:
        """Machines that are half full, and 30 days of the bytes on two gp3 disks."""
        hours = self.cpu_s_per_byte * 1e12 / 3_600 / VICTORIALOGS_FULL
        kept = self.stored_per_byte * 1e12 / prices.GB
        return hours * VCPU_HOUR_USD + kept * GP3_GB_MONTH_USD * 2

    def to_json(self) -> dict[str, Any]:
        """For the file of figures."""
        found = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**found, "usd_per_tb": self.usd_per_tb()}


def loki() -> Peer:
    """By the published size of a cluster; stored bytes as its blocks' compression is usually told."""
    cpu_s = LOKI_VCPUS * 86_400 * VICTORIALOGS_FULL / (LOKI_TB_A_DAY * 1e12)
    return Peer("Loki", cpu_s, 0.15, False, LOKI_SOURCE)


def victorialogs() -> Peer | None:
    """Measured on the corpus's plain table; None where its variable names no binary."""
    from tests.bench.corpus import corpus
    from tests.bench.peers import PlainFiles
    from tests.bench.victorialogs import VARIABLE, VictoriaLogs

    binary = os.environ.get(VARIABLE)
    if not binary:
        return None
    with tempfile.TemporaryDirectory() as work:
        plain = PlainFiles(Path(work))
        text = sum(len(frame.text) + frame.rows for frame in plain.write(corpus(_LINES)))
        server = VictoriaLogs(binary, plain.parquet_path, _LINES, Path(work) / "victorialogs")
        try:
            cpu_s = server.cpu_s()
        finally:
            server.close()  # what is in memory goes to disk
        stored = server.stored_bytes()
    return Peer("VictoriaLogs", cpu_s / text, stored / text, True, "measured in this run")


def all_peers() -> list[Peer]:
    """Those that there is something to say of."""
    found = victorialogs()
    return [*([found] if found else []), loki()]
