"""A producer alone, read back as the agent reads it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ranklog.produce import context, producer, records, spool
from ranklog.produce.definitions import Definitions
from ranklog.produce.identity import Identity
from ranklog.produce.journal import JournalReader
from ranklog.produce.producer import Producer
from ranklog.produce.records import LINE
from ranklog.produce.ring_reader import RingReader
from tests.record_lines import line_metadata, line_text


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Producer]:
    context.reset()
    found = Producer(tmp_path / "spool", Identity("t", "r", "l", 0, "h", 0, 0, 1))
    yield found
    found.close()
    context.reset()


def _read(made: Producer) -> tuple[list[list[Any]], Definitions]:
    """LINE and TELEMETRY records, the ring's before the journal's, and what was defined."""
    files = made.process.files
    ring = RingReader(Path(files[spool.RING]))
    bodies = ring.read(1 << 24)
    ring.close()
    journal = JournalReader(made.folder / files[spool.JOURNAL])
    rest = [*journal.read()]
    journal.close()
    defs = JournalReader(made.folder / files[spool.DEFS])
    definitions = Definitions()
    for fields in defs.read():
        definitions.take(fields)
    defs.close()
    return [definitions.fields(body) for body in bodies] + rest, definitions


def test_what_can_not_be_defined_any_more_is_told_with_each_line(
    made: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(producer, "DEFINED_MAX", 3)
    for number in range(6):
        with context.context(batch=number, rank=number % 2):
            made.line(made.call("f.py", number, None, "log", 20), "line %d", (number,))

    records, definitions = _read(made)
    seen = []
    for fields in records:
        rank, metadata = definitions.contexts[fields[4]]
        site = definitions.sites.get(fields[3])
        seen.append(
            (line_text(fields), rank, {**(metadata or {}), **(line_metadata(fields) or {})}, site)
        )
    assert seen == [
        (
            f"line {n}",
            n % 2,
            {"batch": n},
            (f"f.py:{n}", None, "log") if n < 3 else None,
        )
        for n in range(6)
    ]


def test_a_text_that_no_ring_takes_is_in_the_journal(made: Producer) -> None:
    call = made.call("f.py", 1, None, "log", 20)
    made.line(call, "short")
    made.line(call, "x" * 400_000)
    made.line(call, "%s", ("y" * 400_000,))
    made.line(call, "%s", ("y" * 400_000,))

    records, _ = _read(made)
    assert [len(line_text(fields)) for fields in records] == [5, 400_000, 400_000, 400_000]
    assert made.records == 4


def test_a_text_and_a_traceback_that_no_frame_takes_are_cut_and_say_so(
    made: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "TEXT_CHARACTERS_MAX", 10)
    made.emit(20, 0, "x" * 10)
    made.emit(20, 0, "y" * 11, None, "z" * 30)

    (whole, cut), _ = _read(made)
    assert whole[6] == "x" * 10
    assert cut[6] == "y" * 10 + "… (1 more characters were cut)"
    assert cut[8] == "z" * 10 + "… (20 more characters were cut)"


def test_signal_handlers_and_destructors_that_log_amid_lines_lose_none(made: Producer) -> None:
    call = made.call("f.py", 1, None, "log", 20)
    handled = 0

    class Loud:
        def __del__(self) -> None:
            made.line(call, "destroyed")

    def handler(*_: object) -> None:
        nonlocal handled
        made.line(call, "handler %d", (handled,))
        handled += 1

    before = signal.signal(signal.SIGPROF, handler)
    signal.setitimer(signal.ITIMER_PROF, 0.0005, 0.0005)
    try:
        for number in range(8_000):
            made.line(call, "line %d", (number,))
            if number % 1000 == 0:
                Loud()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)

    records, _ = _read(made)
    texts = [line_text(fields) for fields in records]
    lines = [text for text in texts if text.startswith("line")]
    assert sorted(lines, key=lambda text: int(text[5:])) == [f"line {n}" for n in range(8_000)]
    if sys.version_info >= (3, 11):  # before, those that a signal meets amid a record come later
        assert lines == [f"line {n}" for n in range(8_000)]
    assert sorted(t for t in texts if t.startswith("h")) == sorted(
        f"handler {n}" for n in range(handled)
    )
    assert texts.count("destroyed") == 8


def test_contexts_of_one_producer_are_defined_anew_by_another(
    made: Producer, tmp_path: Path
) -> None:
    other = Producer(tmp_path / "other", Identity("t", "r", "l", 0, "h", 0, 0, 1))
    with context.context(shard=3):
        for each in (made, other, made, other):
            each.line(each.call("f.py", 1, None, "log", 20), "x")

    for each in (made, other):
        records, definitions = _read(each)
        assert [definitions.contexts[fields[4]] for fields in records] == [
            (context.STREAM_RANK, {"shard": 3})
        ] * 2
        assert {fields[0] for fields in records} == {LINE}
    other.close()


def test_after_close_nothing_is_taken_and_nothing_raised(made: Producer) -> None:
    call = made.call("f.py", 1, None, "log", 20)
    made.line(call, "before")
    made.close()
    made.line(call, "after")
    made.emit(20, 0, "after")
    made.telemetry({"loss": 1.0}, None)

    assert made.records == 1


def test_a_place_that_logs_by_many_names_is_defined_once_for_each(made: Producer) -> None:
    frame = sys._getframe()
    for _ in range(3):
        for name, level in (("a", 20), ("b", 20), ("a", 10)):
            made.line(made.call_at(frame, name, level), "text")

    records, definitions = _read(made)
    assert [line_text(fields) for fields in records] == ["text"] * 9
    assert sorted(site[2] for site in definitions.sites.values()) == ["a", "b"]
    assert len(definitions._calls) == 3
