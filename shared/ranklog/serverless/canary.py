"""The canary function's settings, and its ways in and out.

RANKLOG_STORE            s3://bucket[/prefix]
RANKLOG_STREAM           name of the Kinesis stream of frames
RANKLOG_SCAN_FUNCTION    name or ARN of the scan function
RANKLOG_CANARY_TENANT    whose lines they are; default canary
RANKLOG_CANARY_LINES     lines a round, 1 to 1000; default 20
RANKLOG_CANARY_SECONDS   how long they may take to be found, 1 to 600; default 60
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ranklog.access.seals import Seals
from ranklog.api.sinks import KinesisFrames
from ranklog.client import Client
from ranklog.errors import BadInput
from ranklog.scan.lambda_invoke import LambdaInvoker
from ranklog.serverless.settings import SCAN_FUNCTION, STREAM, read_settings
from ranklog.store.aws import aws_client
from ranklog.store.protocol import Store

TENANT, LINES, SECONDS = (
    "RANKLOG_CANARY_TENANT",
    "RANKLOG_CANARY_LINES",
    "RANKLOG_CANARY_SECONDS",
)
_LINES_MAX, _SECONDS_MAX = 1_000, 600


@dataclass(frozen=True, slots=True)
class CanarySettings:
    """`reserve_s`: what is kept of the function's time to look once more and tell."""

    store_url: str
    kinesis_stream: str
    scan_function: str
    tenant: str
    lines: int
    seconds: int
    reserve_s: float = 15.0


def read_canary(environment: Mapping[str, str]) -> CanarySettings:
    """Raises BadInput with the variable's name, what it holds and what it should."""
    settings = read_settings(environment, STREAM, SCAN_FUNCTION)
    return CanarySettings(
        settings.store_url,
        settings.kinesis_stream,
        settings.scan_function,
        environment.get(TENANT, "").strip() or "canary",
        _number(environment, LINES, 20, _LINES_MAX),
        _number(environment, SECONDS, 60, _SECONDS_MAX),
    )


def _number(environment: Mapping[str, str], name: str, default: int, most: int) -> int:
    text = environment.get(name, "").strip()
    if not text:
        return default
    if not text.isdecimal() or not 1 <= int(text) <= most:
        raise BadInput(f"{name} is {text!r}", hint=f"a number from 1 to {most}")
    return int(text)


def make_sink(settings: CanarySettings, store: Store) -> KinesisFrames:
    """The way in: sealed with the tenant's ingest key where it has one, as behind the API."""
    return KinesisFrames(aws_client("kinesis"), settings.kinesis_stream, Seals(store))


def make_client(settings: CanarySettings, store: Store) -> Client:
    """The way out: planned here, scanned by the scan function."""
    invoker = LambdaInvoker(settings.scan_function)
    return Client(store=store, tenant=settings.tenant, invoker=invoker)
