"""GPUs by libraries that answer like the vendors', and like machines without them."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from ranklog.hardware.gpus import Amd, Nvidia, RocmSmi, find_gpus


class NVMLError(Exception):
    pass


class NVMLError_NotSupported(NVMLError):
    pass


class Nvml:
    """pynvml of two GPUs: the second has no ECC, and its power sensor fails now and then."""

    NVML_MEMORY_ERROR_TYPE_CORRECTED, NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 0, 1
    NVML_VOLATILE_ECC = NVML_TEMPERATURE_GPU = NVML_CLOCK_SM = 0
    NVMLError, NVMLError_NotSupported = NVMLError, NVMLError_NotSupported

    def __init__(self) -> None:
        self.power_fails = False
        self.asked_ecc: list[int] = []

    def nvmlInit(self) -> None: ...

    def nvmlDeviceGetCount(self) -> int:
        return 2

    def nvmlDeviceGetHandleByIndex(self, number: int) -> int:
        return number

    def nvmlDeviceGetUtilizationRates(self, device: int) -> Any:
        return SimpleNamespace(gpu=90 + device, memory=40)

    def nvmlDeviceGetMemoryInfo(self, device: int) -> Any:
        return SimpleNamespace(used=20, total=80)

    def nvmlDeviceGetPowerUsage(self, device: int) -> int:
        if device and self.power_fails:
            raise NVMLError("lost")
        return 350_500

    def nvmlDeviceGetTemperature(self, device: int, kind: int) -> int:
        return 61

    def nvmlDeviceGetClockInfo(self, device: int, kind: int) -> int:
        return 1980

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, device: int) -> int:
        return 0

    def nvmlDeviceGetTotalEccErrors(self, device: int, kind: int, counter: int) -> int:
        self.asked_ecc.append(device)
        if device:
            raise NVMLError_NotSupported
        return 3 * kind


def test_every_gpu_is_a_reading_with_its_number() -> None:
    found = list(Nvidia(Nvml()).read(0))

    assert [reading.dims for reading in found] == [{"gpu": 0}, {"gpu": 1}]
    assert found[0].values == {
        "gpu.utilization_percent": 90,
        "gpu.memory_busy_percent": 40,
        "gpu.memory_used_bytes": 20,
        "gpu.memory_percent": 25,
        "gpu.power_w": 350.5,
        "gpu.temperature_c": 61,
        "gpu.clock_mhz": 1980,
        "gpu.throttle_reasons": 0,
        "gpu.ecc_corrected": 0,
        "gpu.ecc_uncorrected": 3,
    }
    assert "gpu.ecc_corrected" not in found[1].values


def test_a_sensor_that_a_gpu_has_not_is_asked_once_and_one_that_fails_is_not_measured() -> None:
    nvml = Nvml()
    gpus = Nvidia(nvml)
    list(gpus.read(0))
    nvml.power_fails, nvml.asked_ecc = True, []

    _, second = gpus.read(1)

    assert second.values["gpu.power_w"] is None
    assert nvml.asked_ecc == [0, 0]


@pytest.mark.parametrize(
    "words",
    [
        {
            "GPU use (%)": "87",
            "VRAM Total Memory (B)": "1000",
            "VRAM Total Used Memory (B)": "250",
            "Average Graphics Package Power (W)": "412.0",
            "Temperature (Sensor edge) (C)": "55.0",
        },
        {
            "Temperature (Sensor junction) (C)": "55.0",
            "Current Socket Graphics Package Power (W)": "412.0",
            "Max Graphics Package Power (W)": "750",
            "GPU use (%)": "87",
            "VRAM Total Memory (B)": "1000",
            "VRAM Total Used Memory (B)": "250",
        },
    ],
)
def test_what_rocm_smi_prints_is_read(words: dict[str, str]) -> None:
    text = json.dumps({"card1": words, "card0": {"GPU use (%)": "N/A"}, "system": {"x": "y"}})

    first, second = RocmSmi(lambda: text).read(0)

    assert first == ({"gpu.utilization_percent": None}, {"gpu": 0})
    assert second == (
        {
            "gpu.utilization_percent": 87,
            "gpu.memory_used_bytes": 250,
            "gpu.memory_percent": 25,
            "gpu.power_w": 412,
            "gpu.temperature_c": 55,
        },
        {"gpu": 1},
    )


class AmdSmiException(Exception):
    pass


def _amdsmi() -> Any:
    def no_sensor(*_: Any) -> Any:
        raise AmdSmiException

    return SimpleNamespace(
        AmdSmiException=AmdSmiException,
        AmdSmiMemoryType=SimpleNamespace(VRAM=0),
        AmdSmiTemperatureType=SimpleNamespace(HOTSPOT=1),
        AmdSmiTemperatureMetric=SimpleNamespace(CURRENT=0),
        amdsmi_init=lambda: None,
        amdsmi_get_processor_handles=lambda: ["a"],
        amdsmi_get_gpu_activity=lambda d: {"gfx_activity": 70, "umc_activity": "N/A"},
        amdsmi_get_gpu_memory_usage=lambda d, kind: 64,
        amdsmi_get_gpu_memory_total=lambda d, kind: 256,
        amdsmi_get_power_info=lambda d: {"current_socket_power": "N/A", "socket_power": 600},
        amdsmi_get_temp_metric=no_sensor,
        amdsmi_get_gpu_total_ecc_count=lambda d: {
            "correctable_count": 2,
            "uncorrectable_count": 0,
        },
    )


def test_amds_library_is_read_and_a_sensor_it_has_not_is_left_out() -> None:
    (found,) = Amd(_amdsmi()).read(0)

    assert found.values == {
        "gpu.utilization_percent": 70,
        "gpu.memory_busy_percent": None,
        "gpu.memory_used_bytes": 64,
        "gpu.memory_percent": 25,
        "gpu.power_w": 600,
        "gpu.ecc_corrected": 2,
        "gpu.ecc_uncorrected": 0,
    }


def test_a_machine_without_gpus_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    import pynvml

    def no_library() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(pynvml, "nvmlInit", no_library)
    monkeypatch.setenv("PATH", "")

    sources, why = find_gpus()

    assert sources == []
    assert "NVML" in why
    assert "rocm-smi" in why
