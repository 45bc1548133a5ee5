"""`ranklog canary`: numbered lines through the whole path and back, once or again and again."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ranklog.cli.console import Console
from ranklog.cli.source import Source, open_client, open_store_of, source_of
from ranklog.errors import BadInput

if TYPE_CHECKING:
    from ranklog.canary.lines import Outcome

WELL, MISSED = 0, 1
LINES_MAX = 1_000


def run(arguments: argparse.Namespace, console: Console) -> int:
    """0 where every line of every round was found once, in time; else 1."""
    console.json = console.json or arguments.format == "json"
    if arguments.once and arguments.every:
        raise BadInput("--once and --every", hint="give one of them")
    if not 0 < arguments.lines <= LINES_MAX:
        raise BadInput(f"--lines {arguments.lines}", hint=f"1 to {LINES_MAX}")
    rounds = bad = 0
    try:
        for outcome in _rounds(arguments):
            rounds += 1
            bad += not outcome.is_well
            _show(console, outcome)
            sys.stdout.flush()  # somebody may follow
    except KeyboardInterrupt:
        if not arguments.every:
            raise
    if console.json:
        console.object({"report": {"rounds": rounds, "bad": bad}})
    return MISSED if bad else WELL


def _rounds(arguments: argparse.Namespace) -> Iterator[Outcome]:
    from ranklog.canary.rounds import run_round
    from ranklog.canary.writers import ThroughProducer
    from ranklog.objectives.recorder import Recorder
    from ranklog.produce.identity import tenant_at

    source = source_of(arguments)
    recorder = None
    if source.store:  # made where it is not there: the destination may be the first to write to it
        recorder = Recorder(open_store_of(arguments, create=True)[0], every_s=0)
    client = open_client(arguments)
    destination = _destination(arguments, source)
    tenant = tenant_at(destination, os.environ) if source.api else source.tenant
    writer = ThroughProducer(destination, tenant, arguments.timeout)
    while True:
        begun_s = time.monotonic()
        outcome = run_round(writer, client, lines=arguments.lines, timeout_s=arguments.timeout)
        if recorder is not None:
            recorder.add(source.tenant, outcome.measures())
        yield outcome
        if not arguments.every:
            return
        time.sleep(max(0.0, arguments.every - (time.monotonic() - begun_s)))


def _destination(arguments: argparse.Namespace, source: Source) -> str:
    """Where lines go in: where they are looked for, unless another place is named."""
    named = arguments.destination or os.environ.get("RANKLOG_DESTINATION")
    if named:
        return str(named)
    if source.api:
        return source.api
    store = source.store or ""
    return store if "://" in store else f"store:{store}"


def _show(console: Console, outcome: Outcome) -> None:
    told = outcome.to_json()
    if console.json:
        console.object(told)
        return
    late = told["freshness_ms"]
    seen = (
        ""
        if late["max"] is None
        else (f", searchable after {late['p50']:,.0f} ms (median), {late['max']:,.0f} ms (last)")
    )
    found = outcome.round.lines - outcome.missing
    console.line(f"{found} of {outcome.round.lines} lines found{seen}")
    for count, word in (
        (outcome.missing, f"not found within {outcome.waited_s:.1f} s"),
        (outcome.doubled, "found more than once"),
        (outcome.altered, "found with other text"),
    ):
        if count:
            console.line(f"{count} {word}, in {outcome.round.run_id}: {outcome.round.query}")
    if outcome.error:
        console.note(outcome.error)
