"""Values of metadata, as a line may carry them: int, float or str. Never synchronises a device."""

from __future__ import annotations

from typing import Any

from ranklog import limits
from ranklog.produce import trouble

_INT64 = range(-(2**63), 2**63)


def clean_metadata(values: dict[str, Any]) -> dict[str, int | float | str]:
    """bool → int, int beyond 64 bit → str, scalars of arrays → number, None absent, the rest str()."""
    cleaned: dict[str, int | float | str] = {}
    for key, value in values.items():
        plain = clean_value(value)
        if plain is not None:
            cleaned[cut(str(key))] = plain
    return cleaned


def clean_value(value: Any) -> int | float | str | None:
    """One value; None where it is absent or refused."""
    if value is None:
        return None
    if isinstance(value, str):
        return cut(str(value))
    if isinstance(value, int):  # bool as well
        number = int(value)
        return number if number in _INT64 else str(number)
    if isinstance(value, float):  # numpy.float64 as well
        return float(value)
    if hasattr(value, "dtype"):
        return _clean_array(value)
    return cut(text_of(value))


def _clean_array(value: Any) -> int | float | str | None:
    """A numpy scalar, or a tensor: only one that lies in the host's memory is looked at."""
    if hasattr(value, "device") and not _is_on_host(value.device):
        trouble.once(
            "tensor",
            "a tensor on a device was given as metadata and left out: "
            "reading it would wait for the device; pass tensor.item() if you mean it",
        )
        return None
    if getattr(value, "shape", None) == ():
        item = value.item()
        if isinstance(item, (int, float, str)):
            return clean_value(item)
        return cut(text_of(item))
    return cut(text_of(value))


def _is_on_host(device: Any) -> bool:
    """torch's device has a type, numpy's is a string, JAX's has a platform; what is strange isn't."""
    name = device if isinstance(device, str) else getattr(device, "type", None)
    name = name if name is not None else getattr(device, "platform", None)
    return name == "cpu"


def text_of(value: Any) -> str:
    """`str()` of a stranger's value, or its type where that raises."""
    try:
        return str(value)
    except Exception:  # a stranger's __str__
        return f"<{type(value).__name__}>"


def cut(text: str, bytes_max: int = limits.METADATA_STRING_BYTES_MAX) -> str:
    """The text, or as much of it as fits, whole characters."""
    if len(text) * 4 <= bytes_max:
        return text
    data = text.encode("utf-8", "surrogatepass")
    return text if len(data) <= bytes_max else data[:bytes_max].decode("utf-8", "ignore")
