"""The trackers themselves, as a job uses them: what arrives here, and that they have it too."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ranklog
from ranklog.mirrors.trackers import mlflow_needs, wandb_needs
from tests.mirrors.recording import Recorder

REPOSITORY = Path(__file__).parents[2]
PREAMBLE = """
import json, sys
import ranklog
from ranklog.produce import telemetry
from tests.mirrors.recording import Recorder
recorder = telemetry._producer = Recorder()
"""
EPILOGUE = """
print("\\nSEEN" + json.dumps([recorder.points, recorder.lines]))
"""


def _job(script: str, folder: Path, **environ: str) -> tuple[list[Any], list[Any]]:
    """Points and lines that a process of its own made: patches stay there."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PREAMBLE + script + EPILOGUE],
        cwd=folder,
        env={
            "PATH": "",
            "HOME": str(folder),
            "PYTHONPATH": f"{REPOSITORY / 'shared'}:{REPOSITORY}",
            **environ,
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    points, lines = json.loads(done.stdout.rpartition("SEEN")[2])
    return points, lines


@pytest.mark.parametrize("order", ["mirror first", "mirror after import", "mirror after init"])
def test_wandb_log_arrives_here_with_its_run(tmp_path: Path, order: str) -> None:
    steps = {
        "mirror first": "ranklog.mirror('wandb')\nimport wandb\nBEGIN",
        "mirror after import": "import wandb\nranklog.mirror('wandb')\nBEGIN",
        "mirror after init": "import wandb\nBEGIN\nranklog.mirror('wandb')",
    }
    begin = "run = wandb.init(project='p', name='n', mode='offline', dir='.')"
    points, lines = _job(
        steps[order].replace("BEGIN", begin)
        + """
data = {"loss": 2.5, "eval": {"acc": 0.5}, "note": "text", "bad": float("nan")}
wandb.log(data, step=3)
assert set(data) == {"loss", "eval", "note", "bad"}
ranklog.iteration(7)
run.log({"loss": 2.25})
assert run.step in (3, 4), run.step
run.finish()
""",
        tmp_path,
    )

    first, second = points
    assert first[0].pop("bad") != 0
    assert (first[0], first[2]) == ({"loss": 2.5, "eval/acc": 0.5}, 3)
    assert (second[0], second[2]) == ({"loss": 2.25}, 7)
    ((text, metadata),) = lines
    assert "wandb run n of p" in text
    assert metadata["tracker_run"] == "n"
    assert metadata["tracker_project"] == "p"
    assert list(tmp_path.glob("wandb/offline-run-*/*.wandb"))


def test_mlflow_metrics_arrive_here_once_by_every_way_and_are_in_its_store(tmp_path: Path) -> None:
    points, lines = _job(
        """
ranklog.mirror("mlflow")
import mlflow
mlflow.set_tracking_uri("file:./mlruns")
mlflow.set_experiment("e")
with mlflow.start_run(run_name="n") as run:
    mlflow.log_metric("loss", 2.5, step=3)
    mlflow.log_metrics({"loss": 2.25, "acc": 0.5}, step=4)
    mlflow.log_params({"lr": 0.1})
    mlflow.MlflowClient().log_metric(run.info.run_id, "late", 1.0, timestamp=5000, step=9)
history = mlflow.MlflowClient().get_metric_history(run.info.run_id, "loss")
assert [m.value for m in history] == [2.5, 2.25], history
""",
        tmp_path,
        MLFLOW_ALLOW_FILE_STORE="true",
    )

    assert [(values, iteration) for values, _, iteration, _ in points] == [
        ({"loss": 2.5}, 3),
        ({"loss": 2.25, "acc": 0.5}, 4),
        ({"late": 1.0}, 9),
    ]
    assert points[2][3] == 5_000_000_000
    ((_, metadata),) = lines
    assert metadata["tracker"] == "mlflow"
    assert metadata["tracker_run"] == "n"


@pytest.mark.parametrize("module", ["torch.utils.tensorboard", "tensorboardX"])
def test_a_summary_writers_calls_arrive_here_and_in_its_file(tmp_path: Path, module: str) -> None:
    pytest.importorskip(module)
    points, lines = _job(
        f"""
ranklog.mirror("tensorboard")
import numpy
from {module} import SummaryWriter
writer = SummaryWriter("tb")
writer.add_scalar("loss", numpy.float32(2.5), 3)
writer.add_scalar("loss", 2.25, global_step=4, walltime=5.0)
writer.add_scalars("group", {{"a": 1.0, "b": 2.0}}, 4)
writer.add_histogram("weights", numpy.arange(4.0), 5)
writer.add_text("note", "hello", 5)
writer.close()
""",
        tmp_path,
    )

    assert [(values, iteration) for values, _, iteration, _ in points[:3]] == [
        ({"loss": 2.5}, 3),
        ({"loss": 2.25}, 4),
        ({"group/a": 1.0, "group/b": 2.0}, 4),
    ]
    assert points[1][3] == 5_000_000_000
    summary = points[3][0]["weights"]
    assert (summary["count"], summary["max"]) == (4, 3.0)
    assert sum(summary["histogram"]["counts"]) == 4
    assert len(points) == 4
    assert [text.partition(":")[0] for text, _ in lines] == [
        "mirrors the tensorboard run tb tb",
        "note",
    ]
    assert list(tmp_path.glob("tb/events.out.tfevents.*"))


def test_our_writer_takes_what_theirs_take(recorder: Recorder, monkeypatch: Any) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr("ranklog.produce.session.init", lambda: None)
    writer = ranklog.SummaryWriter("runs/x", comment="c", flush_secs=3)

    writer.add_scalar("loss", torch.tensor(2.5), 3)
    writer.add_scalar("lr", None, 3)
    writer.add_scalars("acc", {"train": 0.5}, global_step=4)
    writer.add_histogram("w", [1.0, 2.0], 4)
    writer.add_tensor("t", torch.eye(2), 4)
    writer.add_histogram_raw("raw", 0, 3, 4, 6.0, 14.0, [1, 2, 3], [2, 1, 1], 5)
    writer.add_hparams({"lr": 0.1, "odd": [1]}, {"hp": 1.0}, global_step=6)
    writer.add_text("note", "two\nlines")

    assert writer.get_logdir() == writer.logdir == "runs/x"
    assert recorder.values()[:3] == [({"loss": 2.5}, 3), ({"lr": None}, 3), ({"acc/train": 0.5}, 4)]
    raw = recorder.points[5][0]["raw"]
    assert (raw["mean"], raw["norm"]) == (1.5, math.sqrt(14))
    assert raw["std"] == pytest.approx(math.sqrt(14 / 4 - 1.5**2))
    assert raw["histogram"] == {"edges": [0, 1, 2, 3], "counts": [2, 1, 1]}
    assert recorder.values()[6] == ({"hp": 1.0}, 6)
    assert [text for text, _ in recorder.lines] == [
        'hyperparameters {"lr": 0.1, "odd": "[1]"}',
        "note: two\nlines",
    ]


@pytest.mark.parametrize("module", ["torch.utils.tensorboard", "tensorboardX"])
def test_our_writer_has_every_method_of_theirs(module: str, monkeypatch: Any) -> None:
    theirs = pytest.importorskip(module).SummaryWriter
    monkeypatch.setattr("ranklog.produce.session.init", lambda: None)
    ours = ranklog.SummaryWriter()
    methods = [name for name in dir(theirs) if name.startswith(("add_", "get_", "flush", "close"))]

    assert len(methods) > 20
    assert [name for name in methods if not callable(getattr(ours, name, None))] == []


def test_what_our_writer_does_not_keep_is_told_once(
    recorder: Recorder, monkeypatch: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("ranklog.produce.session.init", lambda: None)
    writer = ranklog.SummaryWriter()
    writer.add_image("x", object(), 1)
    writer.add_image("x", object(), 2)
    writer.add_scalar("no value")  # a wrong call of the job's is no reason to end it

    assert capfd.readouterr().err.count("add_image") == 1
    with pytest.raises(AttributeError):
        writer.add_smell  # noqa: B018
    assert recorder.points == []


@pytest.mark.parametrize(
    ("environ", "netrc", "told"),
    [
        ({}, "", True),
        ({"WANDB_API_KEY": "k"}, "", False),
        ({"WANDB_MODE": "offline"}, "", False),
        ({}, "machine api.wandb.ai login user password k\n", False),
        (
            {"WANDB_BASE_URL": "https://w.example/"},
            "machine api.wandb.ai login u password k\n",
            True,
        ),
        ({}, "not a netrc file {", True),
    ],
)
def test_credentials_that_wandb_will_miss_are_known(
    tmp_path: Path, environ: dict[str, str], netrc: str, told: bool
) -> None:
    (tmp_path / ".netrc").write_text(netrc)

    assert bool(wandb_needs(environ, tmp_path)) is told


def test_credentials_that_mlflow_will_miss_are_known(tmp_path: Path) -> None:
    there = {"MLFLOW_TRACKING_URI": "databricks"}

    assert mlflow_needs({}, tmp_path) == ""
    assert "DATABRICKS_TOKEN" in mlflow_needs({**there, "DATABRICKS_HOST": "h"}, tmp_path)
    assert mlflow_needs({**there, "DATABRICKS_HOST": "h", "DATABRICKS_TOKEN": "t"}, tmp_path) == ""


def test_an_unknown_tracker_is_told_with_those_that_are_known(
    capfd: pytest.CaptureFixture[str], recorder: Recorder
) -> None:
    ranklog.mirror("comet")

    assert "wandb, mlflow, tensorboard" in capfd.readouterr().err
