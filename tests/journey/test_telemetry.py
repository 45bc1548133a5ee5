"""From a call in a job to a series: SDK, agent, store, client; lines and points joined at the end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ranklog.client import Client

JOB = """
import logging, math, os
import ranklog

ranklog.init(run="journey")
logging.basicConfig(level="INFO")
log = logging.getLogger("train")
for i in range(60):
    ranklog.iteration(i)
    grad = 50.0 if i == 40 else 1.0 + i % 3 / 100
    ranklog.telemetry({"lm loss": 3.0 - i / 50, "grad norm": grad}, layer="h.7")
    ranklog.telemetry({"mfu": "N/A" if i % 2 else 41.5, "odd": math.nan if i == 5 else math.inf})
    if i in (10, 39):
        log.error("Xid 79 at %d", i)
"""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Client:
    folder = tmp_path_factory.mktemp("journey")
    (folder / "job.py").write_text(JOB)
    ranklog = str(Path(sys.executable).with_name("ranklog"))
    command = [ranklog, "run", "--run", "journey", "--nproc", "2", "--store", "store"]
    command += ["--", sys.executable, "job.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return Client(store=str(folder / "store"))


def test_values_of_calls_are_series_of_each_rank(client: Client) -> None:
    found = client.series("loss", run="journey", max_points=0)
    assert [(one.rank, one.dims, one.written) for one in found] == [
        (rank, {"layer": "h.7"}, ("lm loss",)) for rank in (0, 1)
    ]
    for one in found:
        assert one.values.tolist() == [3.0 - i / 50 for i in range(60)]
        assert one.iterations is not None and one.iterations.tolist() == list(range(60))
    assert found.completeness.state == "complete"


def test_no_number_is_of_the_kind_that_the_job_said(client: Client) -> None:
    found = client.series("(mfu_percent OR odd) rank:1 iteration:4..6", run="journey")
    shown = {(row["series"], row["iteration"]): row["value"] for row in found.rows()}
    assert shown == {
        ("mfu_percent", 4): 41.5,
        ("mfu_percent", 5): None,
        ("odd", 4): "Infinity",
        ("odd", 5): "NaN",
    }


def test_an_error_before_a_spike_is_found_and_no_other(client: Client) -> None:
    query = "level>=ERROR near(spike(grad_norm layer:h.7, ratio:10), iteration, before 2, any)"
    found = client.search(query, run="journey")
    lines = [(line.rank, line.text) for line in found.matches if line.channel == "logging"]
    assert sorted(lines) == [(0, "Xid 79 at 39"), (1, "Xid 79 at 39")]  # type: ignore[type-var]
    (event, _) = client.series("grad_norm", run="journey", detect=True).trailer()["events"]
    assert (event["kind"], event["first_iteration"]) == ("spike", 40)
