"""docs/parameters.md: every row says what stands for a parameter, and what comes from lines does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ranklog
from ranklog.cli.commands import COMMANDS
from ranklog.rules.ruleset import RuleSet
from ranklog.telemetry.names import BY_NAME, known
from tests.rules.applying import extracted

PAGE = Path(__file__).parents[2] / "docs" / "parameters.md"
_ROW = re.compile(r"\| `([\w.]+)` \| (.+?) \| (.*)\|$")
_SERIES = re.compile(r"series `([\w.]+)` (from lines|by mirror|by monitor)")
# What a framework prints when the parameter is on -> the series of docs/parameters.md.
MEGATRON = (
    " [2025-01-01 00:00:00.000000] iteration       10/     100 | consumed samples:          640 | "
    "elapsed time per iteration (ms): 512.3 | throughput per GPU (TFLOP/s/GPU): 412.5 | "
    "learning rate: 1.000000E-04 | global batch size:    64 | lm loss: 2.312345E+00 | "
    "loss scale: 1.0 | grad norm: 0.412 | num zeros: 12345.0 | params norm: 812.500 | "
    "number of skipped iterations:   0 | number of nan iterations:   0 |"
)
PRIMUS = (
    " iteration       10/     100 | consumed samples:          640 | elapsed time per iteration "
    "(ms): 512.3/520.1 | hip mem usage/free/total/usage_ratio: 120.10GiB/71.80GiB/191.98GiB/62.6% | "
    "throughput per GPU (TFLOP/s/GPU): 412.5/410.0 | tokens per GPU (tokens/s/GPU): 8123.4/8100.2 | "
    "learning rate: 1.000000E-04 | global batch size:    64 | lm loss: 2.312345E+00 | loss scale: "
    "1.0 | grad norm: 0.412 | number of skipped iterations:   0 | number of nan iterations:   0 |"
)
LINES = (
    MEGATRON,
    PRIMUS,
    "    forward-compute ................................: (1198.41, 1214.73)",
    " validation loss at iteration 100 | lm loss value: 2.412 | lm loss PPL: 11.16 | ",
    "(after 10 iterations) memory (MB) | allocated: 1024.0 | max allocated: 2048.0 | "
    "reserved: 4096.0 | max reserved: 4096.0",
    "MnRtt/Rnk: 101.23ms/3 | MxRtt/Rnk: 151.23ms/7",
)


def rows() -> list[tuple[str, str, str]]:
    found = [m.groups() for line in PAGE.read_text().splitlines() if (m := _ROW.match(line))]
    return [(name, here, note) for name, here, note in found]


def test_the_page_has_its_rows_and_each_once_per_section() -> None:
    names = [name for name, *_ in rows()]

    assert len(names) > 100
    assert len(set(names)) == len(names)
    assert len(names) == sum(line.startswith("| `") for line in PAGE.read_text().splitlines())


def test_every_row_is_a_series_a_setting_or_a_reason() -> None:
    odd = [
        (name, here)
        for name, here, _ in rows()
        if not (_SERIES.fullmatch(here) or here.startswith(("setting: `", "not ours, because ")))
    ]
    assert odd == []


def test_what_comes_from_lines_is_read_from_such_lines() -> None:
    found = extracted(RuleSet.load(), list(LINES))
    read = {
        known(key).series
        for keys in found
        for key, value in keys.items()
        if isinstance(value, (int, float))
    }
    named = {
        m[1] for _, here, _ in rows() if (m := _SERIES.fullmatch(here)) and m[2] == "from lines"
    }

    assert len(named) > 12
    assert named - read == set()


def test_series_by_mirror_are_stable_names_or_the_writers_own() -> None:
    own = {"max_attention_logit"}
    named = {
        m[1] for _, here, _ in rows() if (m := _SERIES.fullmatch(here)) and m[2] == "by mirror"
    }

    assert named - own - set(BY_NAME) == set()


def test_series_by_monitor_are_what_the_monitor_writes() -> None:
    source = "".join(
        path.read_text() for path in (Path(ranklog.__file__).parent / "hardware").glob("*.py")
    )
    named = {
        m[1] for _, here, _ in rows() if (m := _SERIES.fullmatch(here)) and m[2] == "by monitor"
    }
    written = set(re.findall(r'"((?:gpu|host|process)\.\w+)"', source))

    assert named - written - {known(name).series for name in written} == set()


@pytest.mark.parametrize("here", sorted({here for _, here, _ in rows() if "ranklog" in here}))
def test_calls_and_commands_of_the_page_exist(here: str) -> None:
    commands = {command.name for command in COMMANDS}
    for name in re.findall(r"`ranklog\.(\w+)", here):
        assert name in ranklog.__all__, name
    for name in re.findall(r"`ranklog (\w+)", here):
        assert name in commands, name
