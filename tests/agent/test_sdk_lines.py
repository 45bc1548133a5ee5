"""What a rank logged becomes lines: ring and journal, formatted late, masked, sampled, grouped."""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranklog.agent.admission import Admission
from ranklog.agent.framer import Framer
from ranklog.agent.mask import Masker
from ranklog.agent.rows import StreamState
from ranklog.agent.sampling import Sampler
from ranklog.agent.sdk_decode import Decoder
from ranklog.agent.sdk_lines import SdkLines
from ranklog.agent.sdk_source import SdkSource
from ranklog.ingest.records import check_frame
from ranklog.model.frame import Drop
from ranklog.produce import records, ring, spool
from ranklog.produce.definitions import Definitions
from ranklog.produce.identity import Identity
from ranklog.produce.journal import append, encode_record
from ranklog.produce.records import CALL, CONTEXT, DROP, LINE, SERIES, SITE, TELEMETRY
from ranklog.produce.ring import Ring
from ranklog.produce.spool import ProcessFiles
from ranklog.stream.frames import decode_frame
from tests.agent.reading import Seen, lines_of
from tests.point_frames import SeenPoint, points_of
from tests.record_lines import line_text
from tests.stream.test_frames import stream

DEFINITIONS: list[list[Any]] = [
    [SITE, 1, "train.py:8", "step", "train"],
    [CALL, 2, 1, 20, "loss %.2f at %d"],
    [CALL, 3, 1, 40, "%s"],
    [CONTEXT, 4, None, {"dataset": "c4"}],
    [CONTEXT, 5, 7, {"dataset": "owt", "api_key": "abcdefgh12345678"}],
    [SERIES, 6, ["loss"], {"layer": "h.3"}],
    [SERIES, 7, ["loss", "grad_norm"], None],
]
SHORT = struct.Struct("=IqqQ")


def short(kind: int, number: int, payload: bytes, context: int = 0, at: int = 3) -> bytes:
    return SHORT.pack(kind | number << 8, 1_000 + at, at, context) + payload


def arguments(*values: Any) -> bytes:
    return records.encode(list(values))


class Process:
    """SdkLines with its definitions, and what came out of them."""

    def __init__(self, **policy: Any) -> None:
        self.framer = Framer("agent")
        self.state = StreamState(stream(3))
        telemetry = StreamState(stream(3, channel="telemetry"), points=True)
        self.lines = SdkLines(self.state, telemetry, {"job": "j1"}, Masker(), **policy)
        for fields in DEFINITIONS:
            self.lines.define(fields)

    def take(self, bodies: Sequence[bytes] = (), journal: Sequence[list[Any]] = ()) -> list[Seen]:
        self.lines.take(bodies, list(journal), self.framer)
        self.frames = [decode_frame(frame.data) for frame in self.framer.cut()[0]]
        return [line for frame in self.frames for line in lines_of(frame)]

    def points(
        self, bodies: Sequence[bytes] = (), journal: Sequence[list[Any]] = ()
    ) -> list[SeenPoint]:
        self.take(bodies, journal)
        return [point for frame in self.frames for point in points_of(frame)]


def test_short_and_whole_records_are_lines_in_their_order() -> None:
    one = Process()
    whole = records.encode([LINE, 5, 30, 1, 4, None, "whole", {"loss": 2.5}])
    lines = one.take(
        [
            short(ring.ARGUMENTS, 2, arguments(2.314, 7)),
            whole,
            short(ring.TEXT, 3, "plain ü".encode(), context=5),
            short(ring.ARGUMENTS, 2, arguments("no number", 7)),
        ]
    )

    assert [line.text for line in lines[:3]] == ["loss 2.31 at 7", "whole", "plain ü"]
    assert lines[3].text.startswith("loss %.2f at %d ('no number', 7) (not formatted: TypeError(")
    assert [line.level for line in lines] == [20, 30, 40, 20]
    assert [line.rank for line in lines] == [3, 3, 7, 3]
    assert [line.iteration for line in lines] == [3, None, 3, 3]
    assert {line.site for line in lines} == {"train.py:8"}
    assert [dict(line.metadata) for line in lines] == [
        {"job": "j1"},
        {"job": "j1", "dataset": "c4", "loss": 2.5},
        {"job": "j1", "dataset": "owt", "api_key": "[masked:api_key]"},
        {"job": "j1"},
    ]
    assert [line.ts_ns for line in lines] == [1_003] * 4  # time never decreases
    assert one.lines.last_iteration == 3


def test_a_record_of_several_lines_is_a_group_among_the_others() -> None:
    one = Process()
    lines = one.take(
        [short(ring.TEXT, 3, b"before")],
        [
            [
                LINE,
                9,
                40,
                1,
                0,
                4,
                "failed\nbadly",
                None,
                "Traceback\nValueError: token=abcdef123456",
            ],
            [LINE, 9, 20, 1, 0, 4, "after"],
        ],
    )

    assert [(line.seq, line.group, line.text) for line in lines] == [
        (0, None, "before"),
        (1, 1, "failed"),
        (2, 1, "badly"),
        (3, 1, "Traceback"),
        (4, 1, "ValueError: token=[masked:token]"),
        (5, None, "after"),
    ]
    assert one.state.masked == 1


def test_telemetry_is_points_of_its_own_channel() -> None:
    one = Process()
    summary = {"count": 2, "nan": 1, "inf": 0, "min": 0.5, "max": 2.0, "quantiles": {"0.5": 1.0}}
    points = one.points(
        [
            short(ring.DOUBLE, 6, struct.pack("=d", 2.5), context=4),
            short(ring.VALUES, 7, arguments(2, 0.25), context=5),
            short(ring.VALUES, 7, arguments(None, "N/A")),
            records.encode(
                [
                    TELEMETRY,
                    5,
                    0,
                    None,
                    {"ok": True, "phase": "warm", "g": summary},
                    {"b": 1, "a": "x"},
                ]
            ),
        ]
    )

    assert [(p.series, p.dims, p.value, p.rank, p.iteration, p.seq) for p in points] == [
        ("loss", '{"layer":"h.3"}', 2.5, 3, 3, 0),
        ("loss", "{}", 2.0, 7, 3, 1),
        ("grad_norm", "{}", 0.25, 7, 3, 1),
        ("loss", "{}", None, 3, 3, 2),
        ("grad_norm", "{}", None, 3, 3, 2),
        ("ok", '{"a":"x","b":1}', 1.0, 3, None, 3),
        ("g", '{"a":"x","b":1}', None, 3, None, 3),
    ]
    assert {p.channel for p in points} == {"telemetry"}
    assert [p.context for p in points[::2]] == [
        '{"dataset":"c4","job":"j1"}',
        '{"api_key":"[masked:api_key]","dataset":"owt","job":"j1"}',
        '{"job":"j1"}',
        '{"job":"j1","phase":"warm"}',
    ]
    assert points[-1].summary == {
        "count": 2,
        "nan": 1,
        "inf": 0,
        "min": 0.5,
        "max": 2.0,
        "mean": None,
        "std": None,
        "norm": None,
        "histogram": None,
        "quantiles": {0.5: 1.0},
    }
    assert one.lines.last_iteration == 3


def test_the_last_iteration_is_the_later_one_of_lines_and_points() -> None:
    one = Process()
    point = short(ring.DOUBLE, 6, struct.pack("=d", 0.5), context=4, at=50)
    one.take([short(ring.ARGUMENTS, 2, arguments(0.25, 1), at=49), point])
    assert one.lines.last_iteration == 50
    one.take([point, short(ring.ARGUMENTS, 2, arguments(0.25, 1), at=99)])
    assert one.lines.last_iteration == 99
    one.take([])
    assert one.lines.last_iteration == 99
    one.take([short(ring.ARGUMENTS, 2, arguments(0.25, 1), at=60)])  # back to a checkpoint
    assert one.lines.last_iteration == 60


def test_points_that_make_no_sense_cost_themselves_only() -> None:
    one = Process()
    points = one.points(
        [
            short(ring.DOUBLE, 7, struct.pack("=d", 2.5)),  # of two names
            short(ring.DOUBLE, 99, struct.pack("=d", 2.5)),
            short(ring.VALUES, 7, arguments(1.0)),
            short(ring.VALUES, 7, b"\xc1"),
            short(ring.DOUBLE, 6, struct.pack("=d", 1.5), context=77),
            records.encode([TELEMETRY, "no time", 0, None, {"a": 1.0}, None]),
            records.encode([TELEMETRY, 5, 0, None, {"h": {"histogram": {"edges": [1]}}}, None]),
            records.encode([TELEMETRY, 5, 0, None, {"a": 1.0}, None]),
        ]
    )

    assert [(point.series, point.value) for point in points] == [("a", 1.0)]
    assert one.lines.damaged == 7


def test_a_record_of_very_many_values_becomes_several() -> None:
    one = Process()
    names = {f"series/{number:05d}": float(number) for number in range(20_000)}
    points = one.points([], [[TELEMETRY, 5, 0, 9, names, None]])

    assert {point.series: point.value for point in points} == names
    assert [point.seq for point in points] == sorted(point.seq for point in points)
    assert len({point.seq for point in points}) > 1
    assert {point.iteration for point in points} == {9}


def test_what_makes_no_sense_costs_itself_only() -> None:
    one = Process()
    lines = one.take(
        [
            b"",
            b"\x03",
            b"\xff\xff",
            short(ring.ARGUMENTS, 99, arguments(1)),
            short(ring.ARGUMENTS, 2, b"\xc1"),
            short(ring.TEXT, 3, b"good"),
            records.encode([LINE, "no time", 20]),
            short(ring.TEXT, 3, b"unknown context", context=77),
            records.encode([77]),
        ]
    )

    assert [line.text for line in lines] == ["good"]
    assert one.lines.damaged == 8
    one.lines.define([SITE])
    assert one.lines.damaged == 9


def test_lines_below_a_warning_are_sampled_by_call_site_and_counted() -> None:
    one = Process(sampler=Sampler(rate=1.0, burst=2.0))
    bodies = [short(ring.ARGUMENTS, 2, arguments(1.0, n), at=n) for n in range(10)]
    bodies += [short(ring.TEXT, 3, b"error %d" % n) for n in range(5)]
    lines = one.take(bodies)

    assert [line.text for line in lines] == [
        "loss 1.00 at 0",
        "loss 1.00 at 1",
        *(f"error {n}" for n in range(5)),
    ]
    assert [line.seq for line in lines] == list(range(7))
    drops = [drop for frame in one.frames for entry in frame.streams for drop in entry.drops]
    assert drops == [Drop(8, "sampled INFO train.py:8")]


def test_a_spool_that_is_getting_full_takes_no_debug_lines() -> None:
    admission = Admission()
    one = Process(admission=admission)
    admission.update(60, 100)
    lines = one.take(journal=[[LINE, 1, level, 1, 0, None, str(level)] for level in (10, 20, 30)])

    assert [line.text for line in lines] == ["20", "30"]
    drops = [drop for frame in one.frames for entry in frame.streams for drop in entry.drops]
    assert drops == [Drop(1, "spool quota: debug")]


scalars = st.one_of(
    st.integers(-(2**40), 2**40), st.floats(), st.text(max_size=9), st.booleans(), st.none()
)
bodies = st.one_of(
    st.builds(
        lambda values, context: short(ring.ARGUMENTS, 2, arguments(*values), context),
        st.lists(scalars, min_size=1, max_size=3),
        st.sampled_from([0, 4, 5]),
    ),
    st.builds(lambda text: short(ring.TEXT, 3, text.encode()), st.text(max_size=20)),
    st.builds(
        lambda text, extra, trace: records.encode([LINE, 5, 20, 1, 4, 9, text, extra, trace]),
        st.text(max_size=9),
        st.none() | st.dictionaries(st.sampled_from(["job", "loss"]), scalars, max_size=2),
        st.none() | st.text(max_size=9),
    ),
    st.binary(max_size=40),
)


def _makes_sense(
    ts: Any,
    level: Any,
    site: Any,
    context: Any,
    at: Any,
    text: Any,
    _: Any = None,
    trace: Any = None,
) -> bool:
    numbers = type(ts) is int and type(level or 0) is int
    return numbers and type(text) is str and (not trace or type(trace) is str)


@settings(max_examples=200)
@given(st.lists(bodies, max_size=12))
def test_columns_say_what_the_records_say(found: list[bytes]) -> None:
    decoder, definitions = Decoder(), Definitions()
    for fields in DEFINITIONS:
        decoder.define(fields)
        definitions.take(fields)
    columns = decoder.bodies(found)
    expected = []
    for body in found:
        try:
            fields = definitions.fields(body)
            if fields[0] == LINE and _makes_sense(*fields[1:9]):
                fields[8:9] = [trace or None for trace in fields[8:9]]
                expected.append((fields[1], line_text(fields)))
        except (ValueError, KeyError, TypeError, IndexError):
            continue

    got = [
        (ts, text if line not in columns.trace else f"{text}\n{columns.trace[line]}")
        for line, (ts, text) in enumerate(zip(columns.ts, columns.text, strict=True))
    ]
    wanted = [
        (ts, text.removesuffix("\n") if text.endswith("\n") else text) for ts, text in expected
    ]
    assert [(ts, text.removesuffix("\n")) for ts, text in got] == wanted


def test_a_source_goes_on_where_it_was_and_tells_nothing_twice(tmp_path: Path) -> None:
    made = Ring.create(tmp_path / "r", 4096)
    defs = spool.open_append(tmp_path / "p.defs")
    journal = spool.open_append(tmp_path / "p.lines")
    for fields in DEFINITIONS:
        append(defs, encode_record(fields))
    append(defs, encode_record([DROP, 3, "disk full"]))
    append(journal, encode_record([LINE, 1, 20, 1, 0, None, "from the journal"]))
    made.write(3 << 8 | ring.TEXT, 1, 1, 0, b"from the ring", False)
    made.count_drop(1, 5)
    files = ProcessFiles(
        Identity("default", "demo", "l1", 0, "n0", 3, 3, 8),
        "p",
        os.getpid(),
        "",
        {spool.RING: str(tmp_path / "r"), spool.DEFS: "p.defs", spool.JOURNAL: "p.lines"},
    )

    def read(saved: list[Any] | None) -> tuple[list[str], list[Drop], list[Any]]:
        one = Process()
        source = SdkSource(tmp_path, files, one.lines)
        if saved is not None:
            source.restore(saved)
        while source.read(one.framer, 1, final=False):
            pass
        frames = [decode_frame(frame.data) for frame in one.framer.cut()[0]]
        kept = source.saved()
        source.free(kept)
        source.close()
        drops = [drop for frame in frames for entry in frame.streams for drop in entry.drops]
        return [line.text for frame in frames for line in lines_of(frame)], drops, kept

    texts, drops, saved = read(None)
    assert sorted(texts) == ["from the journal", "from the ring"]
    assert sorted(drops, key=str) == [Drop(3, "disk full"), Drop(5, "ring full: info")]
    made.write(3 << 8 | ring.TEXT, 1, 1, 0, b"later", False)
    made.count_drop(1, 2)
    append(journal, encode_record([LINE, 1, 20, 1, 0, None, "later in the journal"]))
    append(defs, encode_record([DROP, 1, "more"]))
    texts, drops, saved = read(saved)
    assert sorted(texts) == ["later", "later in the journal"]
    assert sorted(drops, key=str) == [Drop(1, "more"), Drop(2, "ring full: info")]
    assert read(saved)[:2] == ([], [])
    made.close()
    os.close(defs)
    os.close(journal)


def test_a_process_without_definitions_of_its_own_has_them_in_its_journal(tmp_path: Path) -> None:
    journal = spool.open_append(tmp_path / "p.lines")
    append(journal, encode_record([SITE, 1, "a.py:1", None, None]))
    append(journal, encode_record([LINE, 1, 20, 1, 0, None, "a"]))
    files = ProcessFiles(
        Identity("default", "demo", "l1", 0, "n0", 3, 3, 8),
        "p",
        os.getpid(),
        "",
        {spool.JOURNAL: "p.lines"},
    )
    first = Process()
    source = SdkSource(tmp_path, files, first.lines)
    while source.read(first.framer, 1, final=False):
        pass
    saved = source.saved()
    source.close()
    append(journal, encode_record([LINE, 1, 20, 1, 0, None, "b"]))
    os.close(journal)
    second = Process()
    source = SdkSource(tmp_path, files, second.lines)
    source.restore(saved)
    while source.read(second.framer, 1, final=True):
        pass
    source.close()

    [line] = [x for frame in second.framer.cut()[0] for x in lines_of(decode_frame(frame.data))]
    assert (line.text, line.site) == ("b", "a.py:1")


@pytest.mark.parametrize("rate", [0.5, 3.0])
def test_a_bucket_fills_with_time(rate: float) -> None:
    sampler = Sampler(rate=rate, burst=1.0)
    ts = [n * 1_000_000_000 for n in range(10)]
    kept = sampler.kept([1] * 10, [20] * 10, ts)

    assert kept == [n for n in range(10) if rate >= 1 or n % 2 == 0]


def test_names_of_metadata_that_can_not_be_shown_refuse_nobodys_lines() -> None:
    one = Process()
    one.lines.define([CONTEXT, 8, None, {"lr\u00a0(max)": 1}])
    plain = [LINE, 5, 30, 1, 4, None, "plain", {"loss": 2.5}]
    odd = [LINE, 5, 30, 2, 8, None, "odd", {"a\tb": 2, "a\nb": 3, "\ud800": 4}]
    several = [LINE, 5, 30, 3, 8, None, "odd\nand long", {"\x00": "x"}]

    lines = one.take([], [plain, odd, several])

    assert [line.text for line in lines] == ["plain", "odd", "odd", "and long"]
    assert dict(lines[1].metadata) == {
        "job": "j1",
        "lr\ufffd(max)": 1,
        "a\ufffdb": 2,
        "a\ufffdb\ufffd": 3,
        "\ufffd": 4,
    }
    for frame in one.frames:
        check_frame(frame)
