"""`ranklog.telemetry`: values of a moment, one record each call.

Names and dimensions that come together are a series, defined once; its records are numbers alone. A
single float is written here as `Ring.write` writes, without its calls: half of what it costs.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from time import monotonic_ns
from typing import Any

from ranklog.limits import METADATA_STRING_BYTES_MAX
from ranklog.produce import output, records, ring, trouble
from ranklog.produce.clock import OFFSET_NS
from ranklog.produce.compiled import hot
from ranklog.produce.context import EMPTY, INHERITED, current, own_iteration, process
from ranklog.produce.producer import DEFINED_MAX, Producer
from ranklog.produce.values import clean_metadata, cut

_pack_double = struct.Struct("@HxBIllLd").pack_into
_DOUBLE_BYTES = 40
_HEAD = ring.HEAD
_producer: Producer | None = None
# Called before a flush, with its time-out: what brings values that are on their way.
settlers: list[Callable[[float], None]] = []
# The producer's: words of series of one value, where there is a ring.
_doubles: dict[str, int] = {}


def attach(producer: Producer | None) -> None:
    """Where values go from now on."""
    global _doubles, _producer
    _producer = producer
    _doubles = {} if producer is None else producer.doubles
    if hot is not None:
        hot.attach(producer, telemetry_by_python)


def attached() -> Producer | None:
    """Where values go now."""
    return _producer


def settle(timeout_s: float) -> float:
    """Let what is on its way arrive; how much of the time is left."""
    ends = monotonic_ns() + int(timeout_s * 1e9)
    for settler in settlers:
        settler(max(0.0, (ends - monotonic_ns()) / 1e9))
    return max(0.0, (ends - monotonic_ns()) / 1e9)


def telemetry_by_python(values: Mapping[str, Any], /, **dims: Any) -> None:
    """Numbers of this moment by name: `telemetry({"loss": 2.31, "grad_norm": 0.42}, layer="h.3")`.

    They carry rank, iteration and metadata of the context, as lines do; keywords are dimensions.
    Never waits, never raises; a tensor on a device is refused (it would have to be waited for).
    """
    try:
        if not dims and len(values) == 1:
            for name in values:  # noqa: B007
                break
            value = values[name]
            if type(value) is float and name in _doubles:
                producer: Any = _producer
                out = producer.ring
                word = _doubles[name]
                stamp = current()
                context = 0
                if stamp is not EMPTY:
                    context = stamp.number if stamp.owner is producer.owner else -1
                iteration = own_iteration()
                if iteration == INHERITED:
                    iteration = process.iteration
                ts_ns = OFFSET_NS + monotonic_ns()
                # From here on there is no call but the one that writes: see ring.py.
                at = out.head
                if at + _DOUBLE_BYTES <= out.inline_limit and context >= 0:
                    out.head = at + _DOUBLE_BYTES
                    _pack_double(
                        out.memory,
                        at + out.offset,
                        8,
                        out.lap,
                        word,
                        ts_ns,
                        iteration,
                        context,
                        value,
                    )
                    out.words[_HEAD] = out.head
                    out.records += 1
                    return
        if _producer is not None:
            _write(_producer, values, dims)
    except Exception:
        trouble.swallow("taking telemetry")


telemetry: Callable[..., None] = telemetry_by_python if hot is None else hot.telemetry


def _write(producer: Producer, values: Mapping[str, Any], dims: dict[str, Any]) -> None:
    try:
        key: Any = tuple(values)
        if dims:
            kinds = [type(value) for value in dims.values()]
            if not records.DEFERRABLE.issuperset(kinds):  # a tensor must not even be compared
                _write_whole(producer, values, dims)
                return
            key = (key, *dims.items(), *kinds)
        last, word = producer.last_series
        if key != last:
            word = producer.series.get(key, -1)
            if word < 0:
                word = _defined(producer, key, values, dims)
            producer.last_series = (key, word)
        payload = records.encode([*values.values()]) if word else b""
    except (TypeError, OverflowError, ValueError):
        word = 0
    out, stamp, context = producer.ring, current(), 0
    if stamp is not EMPTY:
        context = stamp.number if stamp.owner is producer.owner else producer.tell_stamp(stamp)
    if not word or out is None or context < 0:
        _write_whole(producer, values, dims)
        return
    own = own_iteration()
    iteration = process.iteration if own == INHERITED else own
    answer = out.write(word, OFFSET_NS + monotonic_ns(), iteration, context, payload, False)
    if answer == ring.FULL:
        producer.count_drop(output.TELEMETRY)
    elif answer != ring.TAKEN:
        _write_whole(producer, values, dims)


def _write_whole(producer: Producer, values: Mapping[str, Any], dims: dict[str, Any]) -> None:
    """With all its words: a tensor among them, too many series, no ring."""
    cleaned: dict[str, Any] = clean_metadata(dict(values))
    # None is a value that was not measured; of metadata it would be nothing
    cleaned |= {cut(str(name)): None for name, value in values.items() if value is None}
    if "" in cleaned:
        trouble.once("series without a name", "telemetry: a value without a name is left out")
        del cleaned[""]
        if not cleaned:
            return
    producer.telemetry(cleaned, clean_metadata(dims) if dims else None)


def _defined(producer: Producer, key: Any, values: Mapping[str, Any], dims: dict[str, Any]) -> int:
    """The word of a series; 0 where it has none: too many, or names that are no words, or too long."""
    plain = all(
        type(name) is str and 0 < 4 * len(name) <= METADATA_STRING_BYTES_MAX for name in values
    )
    if not plain or not values or len(producer.series) >= DEFINED_MAX:
        return 0
    number = producer.define_series(list(values), clean_metadata(dims) or None)
    if not number:
        return 0
    if len(values) == 1 and not dims and producer.ring is not None:
        producer.doubles[key[0]] = ring.DOUBLE | number << 8
    producer.series[key] = ring.VALUES | number << 8
    return producer.series[key]
