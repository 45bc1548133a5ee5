"""An unchanged TensorBoard shows what `ranklog tensorboard` provides: asked over HTTP as its page asks."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ranklog.store.disk import DiskStore
from tests.point_frames import T0
from tests.tensorboard.processes import WAIT_S, provided
from tests.tensorboard.training import SECOND, stored

pytestmark = pytest.mark.sockets
RANK_3, AGAIN, RANK_5 = "llama@17/0/rank 3", "llama@17/1/rank 3", "llama@17/0/rank 5"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("board")
    stored(DiskStore(folder / "store"))
    with provided(folder / "store", "llama") as url:
        yield url


def _get(page: str, path: str, **words: str) -> Any:
    query = f"?{urllib.parse.urlencode(words)}" if words else ""
    with urllib.request.urlopen(f"{page}/data/{path}{query}", timeout=WAIT_S) as answer:
        return json.load(answer)


def test_its_runs_are_ranks_of_attempts(page: str) -> None:
    assert set(_get(page, "runs")) == {RANK_3, AGAIN, RANK_5, "llama@17/0/host gpu-1"}


def test_its_tags_are_series_with_their_dimensions(page: str) -> None:
    tags = _get(page, "plugin/scalars/tags")

    assert set(tags[RANK_3]) == {"loss", "learning_rate", "grad_norm/layer=h.3"}
    assert set(_get(page, "plugin/histograms/tags")[RANK_5]) == {"activation/module=mlp"}
    assert _get(page, "plugins_listing")["distributions"]["enabled"]


def test_its_scalars_are_the_points(page: str) -> None:
    points = _get(page, "plugin/scalars/scalars", run=AGAIN, tag="loss")

    assert [step for _, step, _ in points] == list(range(15, 25))
    assert points[0][0] == pytest.approx((T0 + 45 * SECOND) / 1e9)
    assert points[0][2] == pytest.approx(3.5)


def test_its_histograms_and_distributions_are_the_summaries(page: str) -> None:
    words = {"run": RANK_5, "tag": "activation/module=mlp"}
    first, second = _get(page, "plugin/histograms/histograms", **words)
    distribution = _get(page, "plugin/distributions/distributions", **words)

    assert (first[1], second[1]) == (0, 10)
    assert sum(count for _, _, count in first[2]) == pytest.approx(8)
    assert len(distribution) == 2


def test_a_run_that_is_not_there_is_a_clear_error(tmp_path: Path) -> None:
    stored(DiskStore(tmp_path))
    words = ["tensorboard", "--store", str(tmp_path), "--tenant", "acme", "--run", "nobody"]

    done = subprocess.run(
        [sys.executable, "-m", "ranklog.cli.main", *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 2
    assert "nobody" in done.stderr
