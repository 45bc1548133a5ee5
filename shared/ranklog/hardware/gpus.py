"""GPUs: NVIDIA's by NVML, AMD's by amdsmi or by what rocm-smi prints."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ranklog.hardware.readings import Reading, Source

ROCM_SMI_WAIT_S = 20.0
_ROCM_SMI = [
    "rocm-smi",
    "--showuse",
    "--showmeminfo",
    "vram",
    "--showpower",
    "--showtemp",
    "--json",
]


class Nvidia:
    """All GPUs that NVML sees on this host."""

    def __init__(self, nvml: Any) -> None:
        """`nvml` is pynvml. Raises its NVMLError where there is no driver."""
        nvml.nvmlInit()
        self._nvml = nvml
        self._devices = [
            nvml.nvmlDeviceGetHandleByIndex(n) for n in range(nvml.nvmlDeviceGetCount())
        ]
        # What a kind of device never answers is not asked again.
        self._unsupported: set[tuple[int, str]] = set()

    def __len__(self) -> int:
        return len(self._devices)

    def read(self, now_ns: int) -> Iterator[Reading]:
        """One reading per GPU; None where a sensor did not answer this time."""
        for number, device in enumerate(self._devices):
            values: dict[str, float | None] = {}
            for ask in self._questions(device):
                values.update(self._answer(number, ask))
            yield Reading(values, {"gpu": number})

    def _questions(self, device: Any) -> list[tuple[tuple[str, ...], Callable[[], Any]]]:
        """(series, how to ask): a question may answer several."""
        nvml = self._nvml
        corrected, uncorrected = (
            nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED,
            nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
        )

        def errors(kind: int) -> Callable[[], tuple[float]]:
            counter = nvml.NVML_VOLATILE_ECC
            return lambda: (nvml.nvmlDeviceGetTotalEccErrors(device, kind, counter),)

        def use() -> tuple[float, float]:
            rates = nvml.nvmlDeviceGetUtilizationRates(device)
            return rates.gpu, rates.memory

        def memory() -> tuple[float, float]:
            found = nvml.nvmlDeviceGetMemoryInfo(device)
            return found.used, 100 * found.used / found.total

        return [
            (("gpu.utilization_percent", "gpu.memory_busy_percent"), use),
            (("gpu.memory_used_bytes", "gpu.memory_percent"), memory),
            (("gpu.power_w",), lambda: (nvml.nvmlDeviceGetPowerUsage(device) / 1000,)),
            (
                ("gpu.temperature_c",),
                lambda: (nvml.nvmlDeviceGetTemperature(device, nvml.NVML_TEMPERATURE_GPU),),
            ),
            (
                ("gpu.clock_mhz",),
                lambda: (nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_SM),),
            ),
            (
                ("gpu.throttle_reasons",),
                lambda: (nvml.nvmlDeviceGetCurrentClocksThrottleReasons(device),),
            ),
            (("gpu.ecc_corrected",), errors(corrected)),
            (("gpu.ecc_uncorrected",), errors(uncorrected)),
        ]

    def _answer(
        self, number: int, ask: tuple[tuple[str, ...], Callable[[], Any]]
    ) -> Mapping[str, float | None]:
        names, question = ask
        if (number, names[0]) in self._unsupported:
            return {}
        try:
            return dict(zip(names, question(), strict=True))
        except self._nvml.NVMLError_NotSupported:
            self._unsupported.add((number, names[0]))
            return {}
        except self._nvml.NVMLError:
            return dict.fromkeys(names)


class RocmSmi:
    """AMD's GPUs by the text of rocm-smi, whose words differ a little from version to version."""

    # series -> words that all stand in the name rocm-smi gives it, lower case
    _WORDS: Mapping[str, tuple[str, ...]] = {
        "gpu.utilization_percent": ("gpu use", "%"),
        "gpu.memory_used_bytes": ("vram", "used", "(b)"),
        "_total": ("vram", "total memory", "(b)"),
        "gpu.power_w": ("power", "(w)"),
        "gpu.temperature_c": ("temperature", "(c)"),
    }

    def __init__(self, ask: Callable[[], str]) -> None:
        """`ask` returns what `rocm-smi … --json` prints."""
        self._ask = ask

    def read(self, now_ns: int) -> Iterator[Reading]:
        """One reading per card. Raises ValueError where the text is no JSON."""
        for card, words in sorted(json.loads(self._ask()).items()):
            number = card.removeprefix("card")
            if number.isdigit() and isinstance(words, dict):
                yield Reading(self._values(words), {"gpu": int(number)})

    def _values(self, words: Mapping[str, Any]) -> dict[str, float | None]:
        values: dict[str, float | None] = {}
        for series, wanted in self._WORDS.items():
            for name, text in words.items():
                plain = name.lower()
                fits = all(word in plain for word in wanted) and "max" not in plain
                if fits and series not in values:
                    values[series] = _number(text)
        total, used = values.pop("_total", None), values.get("gpu.memory_used_bytes")
        if total and used is not None:
            values["gpu.memory_percent"] = 100 * used / total
        return values


class Amd:
    """AMD's GPUs by the library amdsmi."""

    def __init__(self, amdsmi: Any) -> None:
        """Raises the library's exception where there is no driver."""
        amdsmi.amdsmi_init()
        self._amdsmi = amdsmi
        self._devices = list(amdsmi.amdsmi_get_processor_handles())

    def read(self, now_ns: int) -> Iterator[Reading]:
        """One reading per GPU."""
        sensors = (self._activity, self._memory, self._power, self._temperature, self._errors)
        for number, device in enumerate(self._devices):
            values: dict[str, float | None] = {}
            for ask in sensors:
                try:
                    values.update({name: _number(value) for name, value in ask(device).items()})
                except self._amdsmi.AmdSmiException:  # this kind of device has no such sensor
                    continue
            yield Reading(values, {"gpu": number})

    def _activity(self, device: Any) -> dict[str, Any]:
        found = self._amdsmi.amdsmi_get_gpu_activity(device)
        return {
            "gpu.utilization_percent": found["gfx_activity"],
            "gpu.memory_busy_percent": found["umc_activity"],
        }

    def _memory(self, device: Any) -> dict[str, Any]:
        smi = self._amdsmi
        used = smi.amdsmi_get_gpu_memory_usage(device, smi.AmdSmiMemoryType.VRAM)
        total = smi.amdsmi_get_gpu_memory_total(device, smi.AmdSmiMemoryType.VRAM)
        return {"gpu.memory_used_bytes": used, "gpu.memory_percent": 100 * used / total}

    def _power(self, device: Any) -> dict[str, Any]:
        found = self._amdsmi.amdsmi_get_power_info(device)
        named = ("current_socket_power", "average_socket_power", "socket_power")
        known = [found[name] for name in named if _number(found.get(name)) is not None]
        return {"gpu.power_w": known[0] if known else None}

    def _temperature(self, device: Any) -> dict[str, Any]:
        smi = self._amdsmi
        kind, now = smi.AmdSmiTemperatureType.HOTSPOT, smi.AmdSmiTemperatureMetric.CURRENT
        return {"gpu.temperature_c": smi.amdsmi_get_temp_metric(device, kind, now)}

    def _errors(self, device: Any) -> dict[str, Any]:
        found = self._amdsmi.amdsmi_get_gpu_total_ecc_count(device)
        return {
            "gpu.ecc_corrected": found["correctable_count"],
            "gpu.ecc_uncorrected": found["uncorrectable_count"],
        }


def _number(value: Any) -> float | None:
    """None for "N/A" and what else is no number: not measured."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def find_gpus() -> tuple[list[Source], str]:
    """What can be read here, and, where that is nothing, why."""
    sources: list[Source] = []
    reasons = []
    try:
        import pynvml

        found = Nvidia(pynvml)
        if len(found):
            sources.append(found)
        else:
            reasons.append("NVML sees no GPU")
    except ImportError:
        reasons.append("nvidia-ml-py is not installed")
    except Exception as error:  # NVMLError: no driver, no library, another version
        reasons.append(f"NVML: {error}")
    try:
        import amdsmi

        sources.append(Amd(amdsmi))
    except ImportError:
        if shutil.which(_ROCM_SMI[0]):
            sources.append(RocmSmi(_ask_rocm_smi))
        else:
            reasons.append("no amdsmi, no rocm-smi")
    except Exception as error:  # no driver
        reasons.append(f"amdsmi: {error}")
    return sources, "" if sources else "; ".join(reasons)


def _ask_rocm_smi() -> str:
    done = subprocess.run(
        _ROCM_SMI, capture_output=True, text=True, timeout=ROCM_SMI_WAIT_S, check=True
    )
    return done.stdout
