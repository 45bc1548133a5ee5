"""`ranklog.telemetry`: values of a moment, one record each call.

Names and dimensions that come together are a series, defined once; its records are numbers alone. A
single float is written here as `Ring.write` writes, without its calls: half of what it costs.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from time import monotonic_ns
from typing import Any

from ranklog.produce import records, ring, trouble
from ranklog.produce.clock import OFFSET_NS
from ranklog.produce.context import EMPTY, INHERITED, current, own_iteration, process
from ranklog.produce.producer import DEFINED_MAX, Producer
from ranklog.produce.values import clean_metadata

_pack_double = struct.Struct("@LllLd").pack_into
_DOUBLE_BYTES = 40
_HEAD = ring.HEAD
_producer: Producer | None = None


def attach(producer: Producer | None) -> None:
    """Where values go from now on."""
    global _producer
    _producer = producer


def telemetry(values: Mapping[str, Any], /, **dims: Any) -> None:
    """Numbers of this moment by name: `telemetry({"loss": 2.31, "grad_norm": 0.42}, layer="h.3")`.

    They carry rank, iteration and metadata of the context, as lines do; keywords are dimensions.
    Never waits, never raises; a tensor on a device is refused (it would have to be waited for).
    """
    producer = _producer
    if producer is None:
        return
    try:
        out = producer.ring
        if not dims and out is not None and len(values) == 1:
            for name in values:  # noqa: B007
                break
            value = values[name]
            if type(value) is float and name in producer.doubles:
                context = 0
                stamp = current()
                if stamp is not EMPTY:
                    context = stamp.number if stamp.owner is producer.owner else -1
                iteration = own_iteration()
                if iteration == INHERITED:
                    iteration = process.iteration
                word = producer.doubles[name]
                ts_ns = OFFSET_NS + monotonic_ns()
                # From here on there is no call but the one that writes: see ring.py.
                at = out.head
                if at + _DOUBLE_BYTES <= out.inline_limit and context >= 0:
                    out.head = at + _DOUBLE_BYTES
                    _pack_double(
                        out.memory,
                        at + out.offset,
                        word | out.lap_word,
                        ts_ns,
                        iteration,
                        context,
                        value,
                    )
                    out.words[_HEAD] = out.head
                    out.records += 1
                    return
        _write(producer, values, dims)
    except Exception:
        trouble.swallow("taking telemetry")


def _write(producer: Producer, values: Mapping[str, Any], dims: dict[str, Any]) -> None:
    names = tuple(values)
    kinds = [type(value) for value in dims.values()]
    try:
        key = (names, *dims.items(), *kinds) if dims else names
        series = producer.series.get(key)
        if series is None:
            series = _defined(producer, key, names, dims)
        payload = records.encode([*values.values()])
    except (TypeError, OverflowError, ValueError):
        series, payload = 0, b""
    if not series or not producer.values(series, payload):
        producer.telemetry(clean_metadata(dict(values)), clean_metadata(dims) if dims else None)


def _defined(producer: Producer, key: Any, names: tuple[str, ...], dims: dict[str, Any]) -> int:
    """The number of a series; 0 where it has none: too many, or words that are not plain."""
    plain = all(type(name) is str for name in names) and records.DEFERRABLE.issuperset(
        map(type, dims.values())
    )
    if not plain or not names:
        return 0
    number = producer.define_series(list(names), clean_metadata(dims) or None)
    if number and len(producer.series) < DEFINED_MAX:
        producer.series[key] = number
        if len(names) == 1 and not dims:
            producer.doubles[names[0]] = (ring.DOUBLE | number << 8) << 32 | 8
    return number
