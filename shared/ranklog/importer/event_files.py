"""TensorBoard's event files as points: scalars of both formats, histograms of both.

A file is records of TFRecord's framing: length (8 bytes), its checksum (4), data, its checksum (4);
data is an `Event` of TensorBoard's protocol, which is read with TensorBoard's own classes. A record that
has not been written whole ends the text: the next import goes on with it. Checksums are not compared;
a length that can't be one, or data that is no event, is an error behind what came before it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Any

from ranklog.errors import BadInput
from ranklog.importer.point_text import HEAD, point_line
from ranklog.model.point import counted_summary

_VERSION = b"brain.Event:"
_FRAME_BYTES = 16
# A record with pictures may be large; over this it is no length.
_RECORD_BYTES_MAX = 1 << 31
_FLOATS = {1: "<f", 2: "<d"}  # DT_FLOAT, DT_DOUBLE


def is_event_file(first: bytes) -> bool:
    """Whether a file begins with an event of its version."""
    return _VERSION in first[12:64]


def render_events(name: str, blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The text of an event file, in pieces. Raises BadInput."""
    try:
        from tensorboard.compat.proto.event_pb2 import Event
    except ImportError as error:
        raise BadInput(
            f"{name}: an event file, and tensorboard is not installed",
            hint="pip install 'ranklog[tensorboard]'",
        ) from error
    yield HEAD
    pending = b""
    at = 0
    for block in blocks:
        pending += block
        lines, used = [], 0
        try:
            for start, stop in _records(name, pending, at):
                event = _event(Event, name, pending[start:stop], at + start)
                used = stop + 4
                if event.HasField("summary") and (values := _values(event.summary)):
                    lines.append(point_line(round(event.wall_time * 1e9), event.step, values, {}))
        except BadInput:
            yield b"".join(lines)  # what came before the damage
            raise
        pending, at = pending[used:], at + used
        yield b"".join(lines)


def _event(kind: Any, name: str, data: bytes, at: int) -> Any:
    try:
        return kind.FromString(data)
    except Exception as error:  # protobuf's DecodeError
        raise BadInput(f"{name}: no event at byte {at}") from error


def _records(name: str, data: bytes, at: int) -> Iterator[tuple[int, int]]:
    """Where the data of whole records begins and ends."""
    start = 0
    while len(data) - start >= _FRAME_BYTES:
        (size,) = struct.unpack_from("<Q", data, start)
        if size > _RECORD_BYTES_MAX:
            raise BadInput(f"{name}: damaged at byte {at + start}")
        if start + _FRAME_BYTES + size > len(data):
            return
        yield start + 12, start + 12 + size
        start += _FRAME_BYTES + size


def _values(summary: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for value in summary.value:
        kind = value.WhichOneof("value")
        if kind == "simple_value":
            found[value.tag] = value.simple_value
        elif kind == "histo":
            found[value.tag] = _histogram(value.histo)
        elif kind == "tensor":
            number = _of_tensor(value.tensor)
            if number is not None:
                found[value.tag] = number
    return found


def _histogram(histo: Any) -> dict[str, Any]:
    totals = (histo.num, histo.sum, histo.sum_squares)
    return counted_summary(histo.min, histo.max, totals, histo.bucket_limit, histo.bucket)


def _of_tensor(tensor: Any) -> Any:
    """A scalar, or the buckets of a histogram (left end, right end, count); None for anything else."""
    sizes = [dim.size for dim in tensor.tensor_shape.dim]
    numbers = _numbers(tensor)
    if len(numbers) == 1 and sizes in ([], [1]):
        return numbers[0]
    if len(sizes) != 2 or sizes[1] != 3 or len(numbers) != 3 * sizes[0] or not numbers:
        return None
    lefts, rights, counts = numbers[0::3], numbers[1::3], numbers[2::3]
    middles = [(left + right) / 2 for left, right in zip(lefts, rights, strict=True)]
    total = sum(n * x for n, x in zip(counts, middles, strict=True))
    squares = sum(n * x * x for n, x in zip(counts, middles, strict=True))
    return counted_summary(lefts[0], rights[-1], (sum(counts), total, squares), rights, counts)


def _numbers(tensor: Any) -> list[float]:
    code = _FLOATS.get(tensor.dtype)
    if code is None:
        return []
    if tensor.tensor_content:
        size = struct.calcsize(code)
        usable = len(tensor.tensor_content) // size * size
        return [x for (x,) in struct.iter_unpack(code, tensor.tensor_content[:usable])]
    return list(tensor.float_val if tensor.dtype == 1 else tensor.double_val)
