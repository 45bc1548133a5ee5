"""Series over a store: from lines' metadata and from points, under one name and in one unit."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from ranklog.client import Client
from ranklog.errors import BadInput, BadQuery
from ranklog.ingest.batch import ingest_batch
from ranklog.model.record import Record as Sent
from ranklog.store.memory import MemoryStore
from ranklog.stream.frames import encode_frame
from tests.client.test_search import SECOND, put
from tests.ingest.frames import T0, Row, stream
from tests.point_frames import STREAM, Record, point_frame

RUN = "llama"


def put_points(store: MemoryStore, name: str, records: list[Record]) -> None:
    """One frame of points through ingest."""
    sent = [Sent(encode_frame(point_frame(records)), T0 + 3600 * SECOND, name)]
    report = ingest_batch(sent, store=store, source="p", first=name, last=name)
    assert report.bad == []


def points_stream(rank: int, **changes: object) -> object:
    return replace(STREAM, rank=rank, local_rank=rank, **changes)  # type: ignore[arg-type]


def record(rank: int, i: int, values: dict[str, object], **dims: object) -> Record:
    return Record(values, dims, T0 + i * SECOND, i, points_stream(rank))  # type: ignore[arg-type]


def metric(rank: int, i: int, **values: float | str) -> Row:
    return Row(f"it {i}", ts=T0 + i * SECOND, stream=stream(rank), iteration=i, metadata=values)  # type: ignore[arg-type]


@pytest.fixture
def client() -> Client:
    """Rank 0 and 1 log lines as Megatron does; rank 2 and 3 points, with dimensions."""
    store = MemoryStore()
    rows = [
        metric(rank, i, lm_loss=3 - i / 10 + rank, elapsed_s=0.5 + i / 100, loss_scale=-1.0, pid=7)
        for i in range(10)
        for rank in (0, 1)
    ]
    put(store, "1", rows)
    records = [
        record(rank, i, {"loss": 2.0 + rank + layer, "grad norm": float(i)}, layer=f"h.{layer}")
        for rank in (2, 3)
        for layer in (0, 1)
        for i in range(10)
    ]
    put_points(store, "1", records)
    return Client(store=store, tenant="acme")


def labels(answer: object) -> list[str]:
    return [one.label for one in answer]  # type: ignore[attr-defined]


def test_a_stable_name_finds_what_each_framework_calls_it(client: Client) -> None:
    found = client.series("loss", run=RUN)
    assert labels(found) == [
        *("loss rank 2 layer=h.0", "loss rank 3 layer=h.0"),
        *("loss rank 2 layer=h.1", "loss rank 3 layer=h.1"),
        *("loss rank 0", "loss rank 1"),
    ]
    assert [one.written for one in found] == [("loss",)] * 4 + [("lm_loss",)] * 2


@pytest.mark.parametrize("name", ["lm_loss", "lm_los?", "lm_*"])
def test_the_written_name_finds_its_own(client: Client, name: str) -> None:
    assert labels(client.series(name, run=RUN)) == ["loss rank 0", "loss rank 1"]


def test_values_are_in_the_unit_of_the_stable_name_and_so_are_comparisons(client: Client) -> None:
    (one,) = client.series("iteration_time_ms>575 rank:0", run=RUN)
    assert (one.values.tolist(), one.unit) == ([580.0, 590.0], "ms")
    (same,) = client.series("elapsed_s>0.575 rank:0", run=RUN)
    assert same.values.tolist() == [580.0, 590.0]


def test_a_value_that_says_not_measured_is_no_number(client: Client) -> None:
    (one,) = client.series("loss_scale rank:0", run=RUN)
    assert one.missing.all() and one.numbers == []
    rows = list(client.series("loss_scale rank:0", run=RUN).rows())
    assert {row["value"] for row in rows} == {None}


def test_nan_infinities_and_not_measured_are_kept_apart() -> None:
    store = MemoryStore()
    values: list[object] = [1.0, math.nan, math.inf, -math.inf, None, "N/A"]
    put_points(store, "1", [record(0, i, {"x": value}) for i, value in enumerate(values)])
    rows = Client(store=store, tenant="acme").series("x", run=RUN).rows()
    assert [row["value"] for row in rows] == [1.0, "NaN", "Infinity", "-Infinity", None, None]


def test_a_glob_names_no_identities_but_a_name_does(client: Client) -> None:
    assert {one.name for one in client.series("*", run=RUN)} == {
        *("loss", "grad_norm", "iteration_time_ms", "loss_scale")
    }
    assert labels(client.series("pid", run=RUN)) == ["pid rank 0", "pid rank 1"]


def test_terms_on_ranks_dimensions_and_values_hold_for_points(client: Client) -> None:
    assert labels(client.series("loss rank:2 layer:h.*", run=RUN)) == [
        *("loss rank 2 layer=h.0", "loss rank 2 layer=h.1")
    ]
    (one,) = client.series("grad_norm>6 rank:2 -layer:h.0", run=RUN)
    assert one.values.tolist() == [7.0, 8.0, 9.0]
    assert labels(client.series("grad_norm:3 OR loss>4.9", run=RUN, iteration="3..4")) == [
        *("grad_norm rank 2 layer=h.0", "grad_norm rank 3 layer=h.0"),
        *("grad_norm rank 2 layer=h.1", "grad_norm rank 3 layer=h.1", "loss rank 3 layer=h.0"),
        *("loss rank 2 layer=h.1", "loss rank 3 layer=h.1"),
    ]


def test_points_are_folded_over_all_that_is_not_named(client: Client) -> None:
    (one,) = client.series("loss", run=RUN, iteration="0..1", aggregate="mean")
    assert (one.rank, one.dims, one.values.tolist()) == (None, {}, [(3 + 4 + 4 + 5 + 5 + 6) / 6])
    found = client.series("loss rank:2-3", run=RUN, by="layer", every="5i", aggregate="max")
    assert [(s.dims, s.values.tolist(), s.iterations.tolist()) for s in found] == [  # type: ignore[union-attr]
        ({"layer": "h.0"}, [5.0, 5.0], [0, 5]),
        ({"layer": "h.1"}, [6.0, 6.0], [0, 5]),
    ]
    assert found.counts["count"].tolist() == [10, 10, 10, 10]
    spread = client.series("loss rank:2-3", run=RUN, by=["rank"], aggregate="spread")
    assert [(s.rank, set(s.values.tolist())) for s in spread] == [(2, {1.0}), (3, {1.0})]


def test_buckets_of_time_fold_by_time(client: Client) -> None:
    (one,) = client.series("grad_norm layer:h.0 rank:2", run=RUN, every="5s", aggregate="sum")
    assert (one.values.tolist(), one.iterations) == ([10.0, 35.0], None)
    assert one.ts_ns.tolist() == [T0, T0 + 5 * SECOND]


def test_what_is_left_out_the_answer_says() -> None:
    store = MemoryStore()
    put_points(store, "1", [record(0, i, {"x": float(i % 50)}) for i in range(1000)])
    client = Client(store=store, tenant="acme")
    found = client.series("x", run=RUN, max_points=16)
    assert len(found[0]) <= 16 and found[0].read == 1000
    assert {min(found[0].numbers), max(found[0].numbers)} == {0.0, 49.0}
    assert found.downsampled() == {"read": 1000, "shown": len(found[0]), "method": found.method}
    assert any("of 1000 points" in note for note in found.report.notes)
    assert client.series("x", run=RUN, max_points=0).downsampled() is None


def test_iterations_that_a_restart_did_again_are_left_out_unless_asked_for() -> None:
    store = MemoryStore()
    first = [Row(f"a {i}", ts=T0 + i * SECOND, stream=stream(0), iteration=i, metadata={"loss": 9.0})
             for i in range(10)]  # fmt: skip
    again = [Row(f"b {i}", ts=T0 + (20 + i) * SECOND, stream=stream(0, attempt=1), iteration=i,
                 metadata={"loss": 1.0}) for i in range(6, 12)]  # fmt: skip
    put(store, "1", first)
    put(store, "2", again)
    client = Client(store=store, tenant="acme")
    (one,) = client.series("loss", run=RUN)
    assert (one.iterations.tolist(), one.values.tolist()) == (  # type: ignore[union-attr]
        list(range(12)), [9.0] * 6 + [1.0] * 6,
    )  # fmt: skip
    assert len(client.series("loss", run=RUN, superseded=True)[0]) == 16
    assert len(client.series("loss superseded:true", run=RUN)[0]) == 4


def test_points_alone_tell_what_a_restart_did_again() -> None:
    store = MemoryStore()
    for attempt, iterations in ((0, range(10)), (1, range(6, 12))):
        one = points_stream(0, attempt=attempt)
        put_points(store, str(attempt), [
            Record({"loss": float(attempt)}, {}, T0 + (20 * attempt + i) * SECOND, i, one)  # type: ignore[arg-type]
            for i in iterations
        ])  # fmt: skip
    client = Client(store=store, tenant="acme")
    assert client.series("loss", run=RUN)[0].values.tolist() == [0.0] * 6 + [1.0] * 6
    assert len(client.series("loss", run=RUN, superseded=True)[0]) == 16


def test_lines_that_name_no_iteration_carry_that_of_their_stream() -> None:
    store = MemoryStore()
    rows = []
    for i in (1, 2):
        rows += [Row(f"iteration {i}", stream=stream(0), iteration=i)]
        rows += [Row("time (ms)", stream=stream(0), metadata={"forward_ms": 10.0 * i})]
    put(store, "1", rows)
    (one,) = Client(store=store, tenant="acme").series("forward_ms", run=RUN)
    assert (one.iterations.tolist(), one.values.tolist()) == ([1, 2], [10.0, 20.0])  # type: ignore[union-attr]


def test_two_names_of_one_series_in_one_line_stay_two_series() -> None:
    store = MemoryStore()
    put(store, "1", [metric(0, i, lm_loss=10.5, loss=10.565) for i in range(3)])
    put_points(
        store,
        "1",
        [
            record(
                1, 0, {"train_loss": 2.0, "step_loss": 3.0, "iter_time_s": 0.5, "elapsed_ms": 400}
            )
        ],
    )
    found = Client(store=store, tenant="acme").series("loss OR iteration_time_ms", run=RUN)
    assert [(one.label, one.values.tolist()) for one in found] == [
        ("iter_time_s rank 1", [0.5]),
        ("iteration_time_ms rank 1", [400.0]),
        ("lm_loss rank 0", [10.5] * 3),
        ("loss rank 0", [10.565] * 3),
        ("loss rank 1", [2.0]),
        ("step_loss rank 1", [3.0]),
    ]


def test_console_copies_say_nothing_twice() -> None:
    store = MemoryStore()
    put(store, "1", [metric(0, 1, loss=1.0)])
    put(
        store,
        "2",
        [replace(metric(0, 1, loss=1.0), stream=stream(0, copy=True, channel="console"))],
    )
    (one,) = Client(store=store, tenant="acme").series("loss", run=RUN)
    assert len(one) == 1


def test_parts_that_come_as_they_are_ready_are_the_whole(client: Client) -> None:
    whole = client.series("*", run=RUN)
    parts = list(client.stream_series("*", run=RUN))
    assert sorted(labels(whole)) == sorted(label for part in parts for label in labels(part))
    assert len(parts[-1]) == 0 and parts[-1].report.bytes_read > 0
    again = [labels(part) for part in client.stream_series("*", run=RUN)]
    assert again == [labels(part) for part in parts] and again[0] != labels(whole)


def test_a_tensor_is_a_series_of_its_statistic() -> None:
    summary = {"count": 4, "min": -1.0, "max": 3.0, "mean": 0.5, "std": 0.1, "norm": 2.0, "nan": 1,
               "inf": 0, "quantiles": {"0.5": 0.25}, "histogram": None}  # fmt: skip
    store = MemoryStore()
    put_points(store, "1", [record(0, 1, {"act": summary, "x": 1.0}, module="mlp")])
    client = Client(store=store, tenant="acme")
    (one,) = client.series("act", run=RUN)
    assert one.values.tolist() == [0.5]
    (one,) = client.series("act", run=RUN, stat="max")
    assert one.values.tolist() == [3.0]
    (row,) = client.series("act", run=RUN).rows()
    assert row["summary"]["quantiles"] == {"0.5": 0.25} and row["summary"]["nan"] == 1
    assert [r["summary"] for r in client.series("x", run=RUN).rows()] == [None]
    assert json.loads(client.series("act", run=RUN).to_arrow()["summary"][0].as_py())["max"] == 3.0


def test_a_row_is_the_point_of_the_interfaces(client: Client) -> None:
    (row,) = client.series("lm_loss rank:1 iteration:0..1", run=RUN).rows()
    assert row == {
        "kind": "point",
        "time": "2026-03-01T00:00:00.000000000Z",
        "ts_ns": T0,
        "run": "llama",
        "run_id": "llama@17",
        "attempt": 0,
        "rank": 1,
        "host": "gpu-1",
        "iteration": 0,
        "series": "loss",
        "dims": {},
        "value": 4.0,
        "summary": None,
        "written": "lm_loss",
    }


def test_frames_of_other_libraries_have_a_column_per_dimension(client: Client) -> None:
    found = client.series("grad_norm", run=RUN, by=["rank", "layer"])
    frame = found.to_pandas()
    assert frame.groupby(["rank", "layer"])["value"].sum().tolist() == [45.0] * 4
    assert found.to_polars().filter(layer="h.1", rank=3)["value"].to_list() == list(range(10))


def test_an_answer_shows_itself_in_a_notebook(client: Client) -> None:
    found = client.series("loss rank:2", run=RUN)
    html = found._repr_html_()
    assert html.count("<tr>") == 1 + len(found) and "data:image/png;base64," in html
    picture = found._repr_png_()
    assert picture is not None and picture.startswith(b"\x89PNG")
    assert client.series("absent", run=RUN)._repr_png_() is None


def test_events_name_their_series_and_iterations() -> None:
    store = MemoryStore()
    noise = np.random.default_rng(3).normal(1, 0.1, 100)
    noise[60] = 9.0
    put_points(
        store,
        "1",
        [record(0, i, {"grad_norm": float(v)}, layer="h.7") for i, v in enumerate(noise)],
    )
    (event,) = (
        Client(store=store, tenant="acme").series("*", run=RUN, detect=True).trailer()["events"]
    )
    assert (event["kind"], event["series"], event["rank"], event["dims"]) == (
        *("spike", "grad_norm", 0), {"layer": "h.7"},
    )  # fmt: skip
    assert (event["first_iteration"], event["last_iteration"], event["value"]) == (60, 60, 9.0)


def test_two_names_of_which_no_point_is_are_explained(client: Client) -> None:
    found = client.series("loss grad_norm", run=RUN)
    assert len(found) == 0 and "loss OR grad_norm" in found.report.warnings[0]
    assert "--list" in client.series("absent", run=RUN).report.warnings[0]


@pytest.mark.parametrize(
    "words",
    [{"aggregate": "mode"}, {"stat": "median"}, {"max_points": 3}, {"detect": "boom"}],
)
def test_options_that_can_not_be_are_refused(client: Client, words: dict[str, object]) -> None:
    with pytest.raises(BadInput) as caught:
        client.series("loss", run=RUN, **words)  # type: ignore[arg-type]
    assert caught.value.hint


def test_text_restricts_no_points(client: Client) -> None:
    with pytest.raises(BadQuery):
        client.series('loss "text"', run=RUN)


def test_a_dimension_that_no_series_has_is_warned_of(client: Client) -> None:
    answer = client.series("grad_norm", run=RUN, by=["rank", "layer", "lyer"])
    assert answer.report.warnings == ["no series has the dimension lyer"]
