"""What a process of the matrix has: clients behind the proxy and beside it, and a clock of its own.

Time is the schedule's: hours pass between two statements, and no wait for a retry takes any.
"""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import boto3
import botocore.endpoint
import botocore.retries.quota
from botocore.config import Config

from ranklog import limits
from ranklog.agent import collector as collecting
from ranklog.agent import processes, sending
from ranklog.agent.process import SpooledProcess
from ranklog.agent.sinks import KinesisSink
from ranklog.agent.wal import Wal
from ranklog.client import reader as reading
from ranklog.compact import merge
from ranklog.ingest import commit
from ranklog.limits import SECOND_NS
from ranklog.produce import spool
from ranklog.produce.output import Output
from ranklog.produce.producer import Producer
from ranklog.scan import scatter
from ranklog.store import s3
from ranklog.stream.kinesis import put_frames
from tests.matrix.boundary import name_fault, watch
from tests.servers import KEY_ID, REGION, SECRET

# 2026-03-01T00:00:00Z
T0 = 1_772_323_200_000_000_000
TENANT = "acme"


@dataclass(slots=True)
class Clock:
    """Nanoseconds since the epoch, of a schedule."""

    now_ns: int = T0

    def __call__(self) -> int:
        return self.now_ns

    def advance(self, seconds: float) -> None:
        self.now_ns += int(seconds * SECOND_NS)


class _Time:
    """In place of the module `time`: waits take none; `monotonic` is the schedule's where one is given."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    def sleep(self, seconds: float) -> None:
        """None."""

    def monotonic(self) -> float:
        return time.monotonic() if self._clock is None else self._clock.now_ns / SECOND_NS


@dataclass(frozen=True, slots=True)
class Where:
    """Servers and the proxies before them, by URL; what another process needs to know."""

    s3: str
    s3_proxy: str
    kinesis: str
    kinesis_proxy: str
    bucket: str


@dataclass
class Machine:
    """Clients; `s3` and `kinesis` go through the proxy, `sure_…` do not."""

    where: Where
    clock: Clock

    @cached_property
    def s3(self) -> Any:
        return _client("s3", self.where.s3_proxy, faults=True)

    @cached_property
    def kinesis(self) -> Any:
        return _client("kinesis", self.where.kinesis_proxy, faults=True)

    @cached_property
    def sure_s3(self) -> Any:
        return _client("s3", self.where.s3)

    @cached_property
    def sure_kinesis(self) -> Any:
        return _client("kinesis", self.where.kinesis)


# One for all: what it loaded of services is there in processes that are forked.
_session = boto3.session.Session(KEY_ID, SECRET, region_name=REGION)


def _client(service: str, url: str, *, faults: bool = False) -> Any:
    """As `ranklog.store.aws` makes them."""
    config = Config(
        retries={"mode": "standard", "total_max_attempts": 5}, proxies={}, connect_timeout=5
    )
    client = _session.client(service, endpoint_url=url, config=config)
    if faults:
        client.meta.events.register(f"before-send.{service}", name_fault)
    return client


def install(clock: Clock) -> None:
    """Give this process the clock, once; make steps of what producers and agents do."""
    for module in (commit, merge):
        vars(module)["time"] = _Time(clock)
    for module in (botocore.endpoint, s3, scatter):
        vars(module)["time"] = _Time()
    botocore.retries.quota.RetryQuota.acquire = lambda *_: True
    vars(collecting)["now_ns"] = clock
    sending.RETRY_FIRST_S = 0.0
    assert put_frames.__kwdefaults__ is not None
    put_frames.__kwdefaults__["sleep"] = _Time().sleep
    # requests of one actor come one after the other, so that the seed says which one meets what
    limits.INDEX_GETS_IN_FLIGHT_MAX = limits.COMPACT_GETS_IN_FLIGHT_MAX = 1
    # a paused question keeps its turn
    reading._turn = threading.Semaphore(1_000)
    watch(spool, "announce", "announce")
    watch(Producer, "_define", "define")
    watch(Output, "write", "write")
    watch(Output, "close", "close")
    watch(Wal, "append", "log.append")
    watch(Wal, "delivered", "log.mark")
    watch(processes.Processes, "committed", "ring.free")
    watch(processes.Processes, "acknowledge", "acknowledge")
    watch(SpooledProcess, "unlink", "unlink")
    watch(KinesisSink, "put_all", "send")


def seed_names(seed: int) -> None:
    """Incarnations of processes and agents, drawn from the seed."""
    rng = random.Random(f"names {seed}")
    spool.new_incarnation = lambda: f"{rng.getrandbits(64):016x}"
