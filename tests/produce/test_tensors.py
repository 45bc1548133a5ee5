"""`ranklog.tensor`: which calls make a point, of when it is, and that no device is waited for."""

from __future__ import annotations

import threading
from typing import Any

import numpy
import pytest

import ranklog
from ranklog.produce import context, telemetry, tensors, trouble
from ranklog.produce.producer import Moment
from ranklog.produce.tensors import OWED_MAX, Deliveries, Owed


class Recorder:
    """A producer that keeps what it is given."""

    def __init__(self) -> None:
        self.points: list[tuple[dict[str, Any], dict[str, Any] | None, Moment | None]] = []
        self.drops = 0

    def telemetry(
        self, values: dict[str, Any], dims: dict[str, Any] | None, moment: Moment | None = None
    ) -> None:
        self.points.append((values, dims, moment))

    def moment(self) -> Moment:
        return Moment(7, 0, None, context.current_iteration())

    def count_drop(self, drops: int) -> None:
        self.drops += 1


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Any:
    found = Recorder()
    monkeypatch.setattr(telemetry, "_producer", found)
    context.reset()
    trouble.counts.clear()
    yield found
    context.reset()


def test_an_array_is_a_point_with_its_dimensions(recorder: Recorder) -> None:
    ranklog.tensor("activations", numpy.arange(4.0), module="mlp")

    ((values, dims, moment),) = recorder.points
    assert dims == {"module": "mlp"}
    assert moment is None
    summary = values["activations"]
    assert (summary["count"], summary["min"], summary["max"], summary["mean"]) == (4, 0, 3, 1.5)
    assert list(summary["quantiles"]) == ["0.01", "0.25", "0.5", "0.75", "0.99"]
    assert summary["histogram"] is None


def test_one_iteration_of_ten_is_taken_unless_another_number_is_said(recorder: Recorder) -> None:
    for step in range(21):
        with ranklog.iteration(step):
            ranklog.tensor("usual", numpy.zeros(1))
            ranklog.tensor("often", numpy.zeros(1), every=7)

    names = [name for values, _, _ in recorder.points for name in values]
    assert names.count("usual") == 3
    assert names.count("often") == 3


def test_a_histogram_has_as_many_bins_as_were_asked_for(recorder: Recorder) -> None:
    ranklog.tensor("a", numpy.array([0.0, 1.0, 1.0, 4.0]), histogram=4, quantiles=())

    summary = recorder.points[0][0]["a"]
    assert summary["histogram"] == {"edges": [0, 1, 2, 3, 4], "counts": [1, 2, 0, 1]}
    assert summary["quantiles"] is None


@pytest.mark.parametrize(
    ("value", "told"),
    [([1.0], "builtins.list"), (numpy.array(["a"]), "an array of <U1"), (None, "NoneType")],
)
def test_what_has_no_summary_is_left_out_and_told_once(
    recorder: Recorder, capfd: pytest.CaptureFixture[str], value: Any, told: str
) -> None:
    ranklog.tensor("x", value)
    ranklog.tensor("x", value)

    assert recorder.points == []
    assert capfd.readouterr().err.count(told) == 1


def test_tensors_that_can_not_be_read_are_left_out(
    recorder: Recorder, capfd: pytest.CaptureFixture[str]
) -> None:
    torch = pytest.importorskip("torch")

    ranklog.tensor("sparse", torch.eye(3).to_sparse())
    ranklog.tensor("meta", torch.empty(3, device="meta"))
    ranklog.tensor("whole", torch.eye(3, requires_grad=True))

    assert [list(values) for values, _, _ in recorder.points] == [["whole"]]
    told = capfd.readouterr().err
    assert "torch.sparse_coo" in told
    assert "(meta)" in told


def test_compiled_code_calls_it_as_it_is(recorder: Recorder) -> None:
    torch = pytest.importorskip("torch")

    @torch.compile(backend="eager")  # type: ignore[untyped-decorator, unused-ignore]
    def step(x: Any) -> Any:
        y = x * 2
        ranklog.tensor("y", y)
        return y + 1

    assert step(torch.ones(2)).tolist() == [3, 3]
    assert recorder.points[0][0]["y"]["max"] == 2


def _owed(recorder: Any, name: str, iteration: int) -> Owed:
    words = tensors.summary_words(name, ((), 0))
    return Owed(recorder, Moment(iteration, 0, None, iteration), words, None, None)


def test_what_a_device_owes_is_written_in_order_with_the_moment_of_the_call() -> None:
    recorder, deliveries, done = Recorder(), Deliveries(), threading.Event()
    vector = [1, 0, 0, 2.0, 2.0, 2.0, 0.0, 0.0]

    deliveries.put(_owed(recorder, "late", 1), done.is_set, lambda: vector)
    deliveries.put(_owed(recorder, "early", 2), lambda: True, lambda: vector)
    deliveries.settle(0.05)
    assert recorder.points == []
    done.set()
    deliveries.settle(10)

    assert [(list(values), moment) for values, _, moment in recorder.points] == [
        (["late"], Moment(1, 0, None, 1)),
        (["early"], Moment(2, 0, None, 2)),
    ]


def test_one_that_fails_does_not_stop_those_behind_it(capfd: pytest.CaptureFixture[str]) -> None:
    recorder, deliveries = Recorder(), Deliveries()

    def lost() -> list[float]:
        raise RuntimeError("device lost")

    deliveries.put(_owed(recorder, "lost", 1), lambda: True, lost)
    deliveries.put(_owed(recorder, "next", 2), lambda: True, lambda: [0.0] * 8)
    deliveries.settle(10)

    assert [list(values) for values, _, _ in recorder.points] == [["next"]]


def test_a_device_that_never_answers_costs_a_bounded_number_of_summaries() -> None:
    recorder, deliveries, done = Recorder(), Deliveries(), threading.Event()
    for number in range(OWED_MAX + 3):
        deliveries.put(_owed(recorder, "x", number), done.is_set, lambda: [0.0] * 8)

    assert recorder.drops == 3
    done.set()
    deliveries.settle(10)
    assert len(recorder.points) == OWED_MAX


def test_without_a_session_nothing_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "_producer", None)
    monkeypatch.setattr(tensors, "write_summary", None)  # calling it would be told

    ranklog.tensor("x", numpy.zeros(3))
