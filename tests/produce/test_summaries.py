"""Summaries of tensors: torch's way, numpy's way and plain arithmetic agree, whatever the values."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranklog.produce import summaries
from ranklog.produce.summaries import QUANTILES, numpy_vector, summary_of

FLOATS = st.one_of(  # of usual size, of any size, and none
    st.floats(-1e6, 1e6, width=32),
    st.floats(width=32),
    st.sampled_from([math.nan, math.inf, -math.inf, 0.0, -0.0]),
)


def _plain(values: list[float], bins: int) -> dict[str, Any]:
    real = [value for value in values if math.isfinite(value)]
    if not real:
        return {"count": 0, "min": None, "max": None, "mean": None, "std": None, "norm": None}
    mean = math.fsum(real) / len(real)
    return {
        "count": len(real),
        "min": min(real),
        "max": max(real),
        "mean": mean,
        "std": math.sqrt(math.fsum((value - mean) ** 2 for value in real) / len(real)),
        "norm": math.sqrt(math.fsum(value * value for value in real)),
    }


def _agrees(summary: dict[str, Any], values: list[float], bins: int) -> None:
    wanted = _plain(values, bins)
    size = max([abs(value) for value in values if math.isfinite(value)] or [0.0])
    for name, value in wanted.items():
        if value is None:
            assert summary[name] is None
        else:
            assert summary[name] == pytest.approx(value, rel=1e-4, abs=1e-4 * size), name
    assert summary["nan"] == sum(map(math.isnan, values))
    assert summary["inf"] == sum(map(math.isinf, values))
    if not wanted["count"]:
        assert summary["quantiles"] is None
        assert summary["histogram"] is None
        return
    ordered = sorted(value for value in values if math.isfinite(value))
    assert all(value in ordered for value in summary["quantiles"].values())
    assert list(summary["quantiles"].values()) == sorted(summary["quantiles"].values())
    assert sum(summary["histogram"]["counts"]) == wanted["count"]
    assert len(summary["histogram"]["edges"]) == bins + 1


@given(values=st.lists(FLOATS, max_size=50))
def test_numpy_agrees_with_plain_arithmetic(values: list[float]) -> None:
    vector = numpy_vector(numpy, numpy.array(values, numpy.float32), QUANTILES, 5)

    _agrees(summary_of(vector.tolist(), QUANTILES, 5), values, 5)


@settings(deadline=None)
@given(values=st.lists(FLOATS, max_size=50))
def test_torch_agrees_with_plain_arithmetic(values: list[float]) -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.tensor(values, dtype=torch.float32)

    for vector in (
        summaries.torch_vector(torch, tensor, QUANTILES, 5),
        summaries.vector_of(torch, tensor, QUANTILES, 5),
    ):
        _agrees(summary_of(vector.tolist(), QUANTILES, 5), values, 5)


def test_a_tensor_of_several_chunks_is_summed_up_as_one_of_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    torch = pytest.importorskip("torch")
    values = numpy.random.default_rng(1).normal(1e3, 1e-2, 1000)
    values[[7, 300, 999]] = [math.nan, math.inf, -math.inf]
    whole = summary_of(numpy_vector(numpy, values, QUANTILES, 8).tolist(), QUANTILES, 8)
    monkeypatch.setattr(summaries, "_CHUNK_HOST", 64)
    monkeypatch.setattr(summaries, "_CHUNK_DEVICE", 64)

    parts = summary_of(numpy_vector(numpy, values, QUANTILES, 8).tolist(), QUANTILES, 8)
    on_device = summaries.torch_vector(torch, torch.tensor(values), QUANTILES, 8)

    for found in (parts, summary_of(on_device.tolist(), QUANTILES, 8)):
        assert (found["count"], found["nan"], found["inf"]) == (997, 1, 2)
        assert found["std"] == pytest.approx(whole["std"], rel=1e-6)
        assert found["norm"] == pytest.approx(whole["norm"], rel=1e-12)
        assert found["histogram"]["counts"] == whole["histogram"]["counts"]


@pytest.mark.parametrize(
    "make",
    [
        lambda torch: torch.arange(12).reshape(3, 4).t(),
        lambda torch: torch.arange(12.0).reshape(3, 4)[:, ::2],
        lambda torch: torch.arange(12, dtype=torch.bfloat16),
        lambda torch: torch.tensor([True, False, True]),
        lambda torch: torch.tensor(3.5, requires_grad=True),
        lambda torch: torch.tensor([3 + 4j, 0j]),
        lambda torch: torch.arange(6.0).reshape(2, 3).expand(4, 2, 3),
        lambda torch: torch.arange(4.0).to(torch.float8_e4m3fn),
    ],
    ids=["transposed", "strided", "bfloat16", "bool", "scalar", "complex", "expanded", "float8"],
)
def test_every_kind_of_tensor_has_a_summary(make: Any) -> None:
    torch = pytest.importorskip("torch")
    tensor = make(torch)
    plain = tensor.detach()
    flat = (plain.abs() if plain.is_complex() else plain.to(torch.float64)).reshape(-1).tolist()

    found = summary_of(summaries.vector_of(torch, tensor, QUANTILES, 3).tolist(), QUANTILES, 3)
    general = summaries.torch_vector(torch, tensor, QUANTILES, 3)

    _agrees(found, flat, 3)
    _agrees(summary_of(general.tolist(), QUANTILES, 3), flat, 3)


def test_what_overflows_warns_nobody_and_its_mean_stays_a_number() -> None:
    values = numpy.array([1.6e308, 1.6e308])

    summary = summary_of(numpy_vector(numpy, values, (), 4).tolist(), (), 4)  # warnings are errors
    assert (summary["count"], summary["mean"], summary["max"]) == (2, 1.6e308, 1.6e308)
