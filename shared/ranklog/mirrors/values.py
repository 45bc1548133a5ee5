"""What trackers are given, as points: numbers by name, scalars of devices, histograms, texts."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ranklog.model.levels import INFO
from ranklog.model.point import counted_summary
from ranklog.produce import summaries, tensors
from ranklog.produce.producer import Moment, Producer
from ranklog.produce.telemetry import attached
from ranklog.produce.values import clean_metadata, clean_value

# What TensorBoard shows of a distribution.
HISTOGRAM_BINS = 64
_TEXT_SHOWN = 200


def write(
    values: Mapping[Any, Any],
    step: Any = None,
    time_s: float | None = None,
    dims: Mapping[str, Any] | None = None,
) -> None:
    """The numbers of a mapping, however deep (`{"a": {"b": 1}}` is the series `a/b`); the rest is left out.

    `step` is the iteration, None what this thread's is; `time_s` seconds since the epoch, None now.
    A number that lies on a device is written once it has come, and nobody waits.
    """
    producer = attached()
    if producer is None:
        return
    moment = _moment(producer, step, time_s)
    plain = clean_metadata(dict(dims)) if dims else None
    numbers: dict[str, float | None] = {}
    for name, value in _flat(values):
        if not is_on_device(value):
            numbers[name] = value if type(value) is float else _number(value)
        elif value.numel() == 1:
            _write_later(producer, moment, name, value, plain)
    if numbers:
        producer.telemetry(numbers, plain, moment)


def write_histogram(tag: str, values: Any, step: Any, time_s: float | None) -> None:
    """The summary of a tensor, array or list of numbers, with a histogram."""
    producer = attached()
    if producer is None:
        return
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(values, torch.Tensor):
        import numpy  # who writes histograms has it: TensorBoard's writers need it

        values = numpy.asarray(values)
    wanted = (summaries.QUANTILES, HISTOGRAM_BINS)
    tensors.write_summary(producer, tag, values, wanted, None, _moment(producer, step, time_s))


def write_counted(
    tag: str,
    low: float,
    high: float,
    totals: tuple[float, float, float],
    limits: Sequence[float],
    counts: Sequence[float],
    step: Any,
    time_s: float | None,
) -> None:
    """A histogram that was counted elsewhere; words as in `counted_summary`."""
    producer = attached()
    if producer is None:
        return
    summary = counted_summary(low, high, totals, limits, counts)
    producer.telemetry({tag: summary}, None, _moment(producer, step, time_s))


def write_line(text: str, **metadata: Any) -> None:
    """A line that says something of a tracker's run."""
    producer = attached()
    if producer is not None:
        call = producer.call_at(sys._getframe(1), None, INFO)
        producer.emit(INFO, call.site, text, clean_metadata(metadata))


def shown(text: Any) -> str:
    """The beginning of a text, on one line."""
    return " ".join(str(text).split())[:_TEXT_SHOWN]


def is_on_device(value: Any) -> bool:
    """Whether it is a torch tensor that the host can't read without waiting."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor) and value.device.type != "cpu"


def _moment(producer: Producer, step: Any, time_s: float | None) -> Moment:
    moment = producer.moment()
    number = None if step is None else clean_value(step)
    if isinstance(number, (int, float)) and math.isfinite(number):
        moment = moment._replace(iteration=int(number))
    return moment if time_s is None else moment._replace(ts_ns=int(time_s * 1e9))


def _flat(values: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(name, what may be a number)"""
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from _flat(value, f"{name}/")
        elif (
            value is None
            or isinstance(value, (int, float))
            or (hasattr(value, "dtype") and getattr(value, "shape", None) in ((), (1,)))
        ):
            yield name, value


def _number(value: Any) -> float | None:
    """None where it is no number: not measured."""
    if getattr(value, "shape", None) == (1,):
        value = value[0]
    plain = clean_value(value)
    return plain if isinstance(plain, (int, float)) else None


def _write_later(producer: Producer, moment: Moment, name: str, value: Any, dims: Any) -> None:
    torch = sys.modules["torch"]
    vector = value.detach().to(torch.float32).reshape(1)  # a copy: the job may change its own
    vector = vector.clone() if vector.data_ptr() == value.data_ptr() else vector

    def words(numbers: Sequence[float]) -> dict[str, float]:
        return {name: numbers[0]}

    tensors.owed.add(tensors.Owed(producer, moment, words, dims, vector), torch)
