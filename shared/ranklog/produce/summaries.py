"""What a tensor is summed up in, computed where the tensor lives: torch's devices, or numpy.

A summary is one short vector of float64 (float32 on devices that have no float64), so that one small
transfer brings it to the host. Nothing here waits for a device: no branch looks at a value, except
of tensors in the host's memory, which are there anyway.

Mean and standard deviation come from sums about a shift (the mean of a sample), as in Chan, Golub and
LeVeque, "Algorithms for computing the sample variance" (1983): one pass, and no cancellation where
the mean is far from zero. Quantiles are those of a sample of `SAMPLE_MAX` elements at even distances.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

# Elements that quantiles are taken from.
SAMPLE_MAX = 4096
QUANTILES = (0.01, 0.25, 0.5, 0.75, 0.99)
BINS_MAX = 512
# Elements that are worked on at a time: what is in between takes some times the memory of as many.
_CHUNK_DEVICE = 1 << 23
_CHUNK_HOST = 1 << 20
# count, nan, inf, min, max, shift, sum and sum of squares about the shift; then quantiles, then bins.
_HEAD = 8


def vector_of(torch: Any, tensor: Any, quantiles: Sequence[float], bins: int) -> Any:
    """Of torch's tensor, in numpy if it lies in the host's memory and numpy is installed."""
    tensor = tensor.detach()
    if tensor.device.type == "cpu":
        numpy = sys.modules.get("numpy")  # torch has imported it where it is installed
        if numpy is None:
            return torch_vector(torch, tensor, quantiles, bins)
        flat = _flat(torch, tensor)
        if flat.dtype == torch.bfloat16 or (flat.dtype.itemsize == 1 and flat.is_floating_point()):
            flat = flat.to(torch.float32)  # numpy has no such numbers
        return numpy_vector(numpy, flat.numpy(), quantiles, bins)
    return torch_vector(torch, tensor, quantiles, bins)


def torch_vector(torch: Any, tensor: Any, quantiles: Sequence[float], bins: int) -> Any:
    """F64[8 + quantiles + bins] on the tensor's device, of a tensor of any shape and real type.

    Complex values count by their absolute value.
    """
    flat = _flat(torch, tensor.detach())
    wide = torch.float32 if flat.device.type == "mps" else torch.float64
    every = -(-flat.numel() // SAMPLE_MAX) or 1
    sample = _real(torch, flat[::every])
    finite = torch.isfinite(sample)
    shift = torch.where(finite, sample, 0).sum(dtype=wide) / finite.sum().clamp(min=1)
    head = None
    for start in range(0, flat.numel(), _CHUNK_DEVICE):
        part = _torch_part(torch, _real(torch, flat[start : start + _CHUNK_DEVICE]), shift, wide)
        head = part if head is None else _joined(torch, head, part)
    if head is None:
        head = torch.tensor([0, 0, 0, math.inf, -math.inf, 0, 0], dtype=wide, device=flat.device)
    whole = [head[:5], shift.reshape(1), head[5:]]
    if quantiles:
        whole.append(_torch_quantiles(torch, sample, finite, quantiles, wide))
    if bins:
        whole.append(_torch_bins(torch, flat, head, bins, wide))
    return torch.cat(whole)


def _flat(torch: Any, tensor: Any) -> Any:
    """All elements in one dimension, without a copy where memory allows one: their order is nobody's."""
    if not tensor.is_contiguous():
        strides = tensor.stride()
        tensor = tensor.permute(sorted(range(tensor.dim()), key=lambda at: -strides[at]))
    return tensor.reshape(-1)


def _real(torch: Any, part: Any) -> Any:
    if part.is_complex():
        part = part.abs()
    return part if part.dtype in (torch.float32, torch.float64) else part.to(torch.float32)


def _torch_part(torch: Any, part: Any, shift: Any, wide: Any) -> Any:
    """count, nan, inf, min, max and the two sums of one chunk."""
    finite = torch.isfinite(part)
    count, nan = finite.sum(), torch.isnan(part).sum()
    apart = torch.where(finite, part.to(wide) - shift, 0)
    return torch.stack(
        [
            count.to(wide),
            nan.to(wide),
            (part.numel() - count - nan).to(wide),
            torch.where(finite, part, math.inf).amin().to(wide),
            torch.where(finite, part, -math.inf).amax().to(wide),
            apart.sum(),
            (apart * apart).sum(),
        ]
    )


def _joined(torch: Any, one: Any, other: Any) -> Any:
    both = one + other
    both[3] = torch.minimum(one[3], other[3])
    both[4] = torch.maximum(one[4], other[4])
    return both


def _torch_quantiles(
    torch: Any, sample: Any, finite: Any, quantiles: Sequence[float], wide: Any
) -> Any:
    """Of the sample's finite elements; the nearest element, not one in between."""
    ordered = torch.where(finite, sample, math.inf).sort().values
    last = (finite.sum() - 1).clamp(min=0)
    if not ordered.numel():
        return torch.zeros(len(quantiles), dtype=wide, device=sample.device)
    wanted = torch.tensor(list(quantiles), dtype=torch.float32, device=sample.device)
    return ordered[(wanted * last).round().long()].to(wide)


def _torch_bins(torch: Any, flat: Any, head: Any, bins: int, wide: Any) -> Any:
    """How many finite elements are in each of `bins` equal parts of min to max."""
    low = head[3]
    span = (head[4] - low).clamp(min=1e-300 if wide == torch.float64 else 1e-30)
    counts = torch.zeros(bins + 1, dtype=wide, device=flat.device)
    for start in range(0, flat.numel(), _CHUNK_DEVICE):
        part = _real(torch, flat[start : start + _CHUNK_DEVICE])
        finite = torch.isfinite(part)
        at = ((torch.where(finite, part, 0).to(wide) - low) / span * bins).long().clamp(0, bins - 1)
        counts.scatter_add_(0, torch.where(finite, at, bins), torch.ones_like(part, dtype=wide))
    return counts[:bins]


def numpy_vector(numpy: Any, array: Any, quantiles: Sequence[float], bins: int) -> Any:
    """The same of a numpy array: what torch has in the host's memory as well, since this is faster."""
    with numpy.errstate(all="ignore"):  # what overflows is infinite, and no warning in the job
        return _numpy_vector(numpy, array.ravel(order="K"), quantiles, bins)


def _numpy_vector(numpy: Any, flat: Any, quantiles: Sequence[float], bins: int) -> Any:
    sample = _numpy_real(numpy, flat[:: -(-flat.size // SAMPLE_MAX) or 1])
    sample = sample[numpy.isfinite(sample)]
    shift = sample.dtype.type(sample.mean(dtype=numpy.float64)) if sample.size else 0.0
    if not math.isfinite(shift):  # a sum beyond the largest number
        shift = sample[0]
    head = [0, 0, 0, math.inf, -math.inf, float(shift), 0.0, 0.0]
    for start in range(0, flat.size, _CHUNK_HOST):
        _add_numpy_part(numpy, _numpy_real(numpy, flat[start : start + _CHUNK_HOST]), shift, head)
    whole = [numpy.array(head)]
    if quantiles:
        at = numpy.rint(numpy.array(quantiles) * max(sample.size - 1, 0)).astype(numpy.int64)
        whole.append(numpy.sort(sample)[at] if sample.size else numpy.zeros(len(quantiles)))
    if bins:
        whole.append(_numpy_bins(numpy, flat, head, bins))
    return numpy.concatenate(whole)


def _numpy_real(numpy: Any, part: Any) -> Any:
    if part.dtype.kind == "c":
        part = numpy.abs(part)
    if part.dtype in (numpy.float32, numpy.float64):
        return part
    return part.astype(numpy.float32 if part.dtype == numpy.float16 else numpy.float64)


def _add_numpy_part(numpy: Any, part: Any, shift: Any, head: list[Any]) -> None:
    low, high = float(part.min()), float(part.max())
    if not (math.isfinite(low) and math.isfinite(high)):  # else so is all in between
        finite, nan = numpy.isfinite(part), int(numpy.isnan(part).sum())
        head[1] += nan
        head[2] += part.size - nan
        part = part[finite]
        head[2] -= part.size
        if not part.size:
            return
        low, high = float(part.min()), float(part.max())
    reach = max(high - float(shift), float(shift) - low)
    if part.dtype == numpy.float32 and not 1e-12 < reach < 1e12:  # squares need more exponent
        part, shift = part.astype(numpy.float64), float(shift)
    apart = part - shift
    head[0] += part.size
    head[3] = min(head[3], low)
    head[4] = max(head[4], high)
    head[6] += float(apart.sum())
    head[7] += float(numpy.dot(apart, apart))


def _numpy_bins(numpy: Any, flat: Any, head: list[Any], bins: int) -> Any:
    counts = numpy.zeros(bins)
    span = max(head[4] - head[3], 1e-300)
    for start in range(0, flat.size if head[0] else 0, _CHUNK_HOST):
        part = _numpy_real(numpy, flat[start : start + _CHUNK_HOST])
        part = part[numpy.isfinite(part)].astype(numpy.float64, copy=False)
        at = ((part - head[3]) / span * bins).astype(numpy.int64).clip(0, bins - 1)
        counts += numpy.bincount(at, minlength=bins)
    return counts


def summary_of(vector: Sequence[float], quantiles: Sequence[float], bins: int) -> dict[str, Any]:
    """The words of a vector: `count` finite elements have these statistics; `std` is the population's.

    What nothing could be measured of (no finite element) is None.
    """
    count, nan, inf, low, high, shift, total, squares = vector[:_HEAD]
    measured = count > 0
    away = total / count if measured else 0.0
    variance = max(squares / count - away * away, 0.0) if measured else 0.0
    whole = squares + 2 * shift * total + count * shift * shift
    at = _HEAD + len(quantiles)
    edges = [low + (high - low) * part / bins for part in range(bins + 1)] if bins else []
    return {
        "count": int(count),
        "min": low if measured else None,
        "max": high if measured else None,
        "mean": shift + away if measured else None,
        "std": math.sqrt(variance) if measured else None,
        "norm": math.sqrt(max(whole, 0.0)) if measured else None,
        "nan": int(nan),
        "inf": int(inf),
        "quantiles": (
            {f"{q:g}": value for q, value in zip(quantiles, vector[_HEAD:at], strict=True)}
            if quantiles and measured
            else None
        ),
        "histogram": (
            {"edges": edges, "counts": list(vector[at : at + bins])} if bins and measured else None
        ),
    }
