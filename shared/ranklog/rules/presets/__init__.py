"""Rules for the formats that training logs are known to use, by family, as data.

A preset switches itself on where its literals meet a template. Order matters: where two rules give
a line the same key, the earlier one stands, so `generic` is last.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ranklog.rules.presets import (
    generic,
    hardware,
    launchers,
    loops,
    megatron,
    mlperf,
    nccl,
    torch,
    trainers,
    vision,
)
from ranklog.rules.rule import Rule

PRESETS: Mapping[str, tuple[Rule, ...]] = MappingProxyType(
    {
        "torch": torch.RULES,
        "nccl": nccl.RULES,
        "launchers": launchers.RULES,
        "mlperf": mlperf.RULES,
        "megatron": megatron.RULES,
        "trainers": trainers.RULES,
        "loops": loops.RULES,
        "vision": vision.RULES,
        "hardware": hardware.RULES,
        "generic": generic.RULES,
    }
)
