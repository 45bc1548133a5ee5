"""docs/objectives.md names every metric and every objective, with its default, as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranklog.limits import CANARY_RUN
from ranklog.objectives.names import BY_NAME, METRICS
from ranklog.objectives.targets import OBJECTIVES, Objective

PAGE = (Path(__file__).parents[2] / "docs" / "objectives.md").read_text()


def rows(section: str) -> list[str]:
    """Rows of the tables below a heading, without their heads."""
    text = PAGE.partition(f"## {section}\n")[2].partition("\n## ")[0]
    return [line for line in text.splitlines() if line.startswith("| `")]


def test_every_metric_is_a_row_of_the_table_as_it_is() -> None:
    told = [f"| `{one.name}` | {one.unit} | {one.meaning} |" for one in METRICS]
    assert rows("On AWS") == told
    assert len(BY_NAME) == len(METRICS)


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda one: one.name)
def test_every_objective_is_told_with_its_default(objective: Objective) -> None:
    [row] = [line for line in rows("Objectives") if f"`{objective.name}`" in line.split("|")[1]]
    told = [part.strip() for part in row.split("|")[2].replace(", ", ";").split(";")]
    default = "none" if objective.default is None else f"{objective.default:,}"
    assert default in told


def test_the_run_of_canaries_is_told() -> None:
    assert f"the run is `{CANARY_RUN}`" in PAGE
