"""Torchvision's metric logger and maskrcnn_benchmark: `name: median (mean)`."""

from __future__ import annotations

from ranklog.rules.presets.number import ints
from ranklog.rules.rule import Pairs, Rule

_SPACES = Pairs(
    "spaces",
    names={"eta": "eta_s", "data": "data_s"},
    types={"eta_s": "duration", "data_s": "float"},
)

RULES = (
    Rule("maskrcnn", ("eta: ", "  iter: "), r"(?P<pairs>eta: .*  iter: .*)", pairs=_SPACES),
    Rule(
        "torchvision_epoch",
        ("Epoch: [", "]  eta: "),
        r"Epoch: \[(?P<epoch>\d+)\] +\[ *(?P<batch>\d+)/(?P<total>\d+)\] +(?P<pairs>eta: .*)",
        ints("epoch", "batch", "total"),
        _SPACES,
    ),
    Rule(
        "torchvision_test",
        ("Test:  [", "]  eta: "),
        r"Test: +\[ *(?P<batch>\d+)/(?P<total>\d+)\] +(?P<pairs>eta: .*)",
        ints("batch", "total"),
        _SPACES,
    ),
)
