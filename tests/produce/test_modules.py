"""`ranklog.watch` over real modules of torch."""

from __future__ import annotations

from typing import Any

import pytest

import ranklog
from ranklog.produce import context, telemetry, trouble

torch: Any = pytest.importorskip("torch")


class Recorder:
    def __init__(self) -> None:
        self.points: list[tuple[str, dict[str, Any], dict[str, Any]]] = []

    def telemetry(self, values: dict[str, Any], dims: Any, moment: Any = None) -> None:
        self.points += [(name, dims or {}, summary) for name, summary in values.items()]

    def seen(self, series: str) -> set[str]:
        return {
            ".".join(filter(None, (dims["module"], dims.get("parameter"))))
            for name, dims, _ in self.points
            if name == series
        }


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Any:
    found = Recorder()
    monkeypatch.setattr(telemetry, "_producer", found)
    context.reset()
    trouble.counts.clear()
    yield found
    context.reset()


def _model() -> Any:
    return torch.nn.Sequential(
        torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Sequential(torch.nn.Linear(3, 2))
    )


def _step(model: Any, number: int = 0) -> None:
    with ranklog.iteration(number):
        model(torch.ones(5, 4)).sum().backward()


def test_activations_and_gradients_are_named_by_module(recorder: Recorder) -> None:
    model = _model()
    ranklog.watch(model)

    _step(model)

    assert recorder.seen("activation") == {"0", "1", "2", "2.0", "model"}
    assert recorder.seen("gradient") == {"0.weight", "0.bias", "2.0.weight", "2.0.bias"}
    bias = next(s for n, d, s in recorder.points if n == "gradient" and d["parameter"] == "bias")
    assert (bias["count"], bias["max"]) == (2, 5.0)


def test_only_sampled_iterations_are_taken_and_hooks_go_on_close(recorder: Recorder) -> None:
    model = _model()
    watched = ranklog.watch(model, every=4, kinds=["gradient"])
    for number in range(9):
        _step(model, number)
    taken = len(recorder.points)
    watched.close()
    _step(model, 0)

    assert taken == 3 * 4
    assert len(recorder.points) == taken


def test_modules_are_chosen_by_a_pattern(recorder: Recorder) -> None:
    model = _model()
    with ranklog.watch(model, kinds=["activation", "parameter"], modules="2.*"):
        _step(model)

    assert recorder.seen("activation") == {"2.0"}
    assert recorder.seen("parameter") == {"2.0.weight", "2.0.bias"}


def test_wrappers_leave_no_trace_in_names(recorder: Recorder) -> None:
    model = _model()
    wrapped = torch.nn.Module()
    wrapped.module = torch.compile(model, backend="eager")
    ranklog.watch(wrapped, kinds=["gradient"])
    with ranklog.iteration(0):
        model(torch.ones(5, 4)).sum().backward()

    assert recorder.seen("gradient") == {"0.weight", "0.bias", "2.0.weight", "2.0.bias"}


def test_what_is_computed_again_for_the_way_back_is_told_once(recorder: Recorder) -> None:
    from torch.utils.checkpoint import checkpoint

    layer = torch.nn.Linear(4, 4)
    ranklog.watch(layer, kinds=["activation"])
    with ranklog.iteration(0):
        checkpoint(
            layer, torch.ones(2, 4, requires_grad=True), use_reentrant=False
        ).sum().backward()

    assert len(recorder.points) == 1


def test_the_first_tensor_of_a_structure_is_its_activation(recorder: Recorder) -> None:
    class Nested(torch.nn.Module):  # type: ignore[misc, name-defined, unused-ignore]
        def forward(self, x: Any) -> Any:
            return {"none": None, "pair": (x * 2, x * 3)}

    module = Nested()
    ranklog.watch(module, kinds=["activation"])
    module(torch.ones(2))

    assert [summary["max"] for _, _, summary in recorder.points] == [2.0]


def test_no_module_and_an_unknown_kind_are_told_and_change_nothing(
    recorder: Recorder, capfd: pytest.CaptureFixture[str]
) -> None:
    ranklog.watch(object()).close()
    ranklog.watch(_model(), kinds=["weights"]).close()

    told = capfd.readouterr().err
    assert "not object" in told
    assert "activation, gradient, parameter" in told
