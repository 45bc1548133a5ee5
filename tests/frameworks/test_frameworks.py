"""What frameworks call, with the real ones where they are installed."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ranklog
from ranklog.agent.collector import Collector
from ranklog.frameworks.huggingface import RanklogCallback
from ranklog.frameworks.titan import register_handler
from ranklog.stream.disk import DiskStream
from tests.agent.reading import Seen, lines_in

PACKAGE = str(Path(ranklog.__file__).parents[1])
ROOT = Path(__file__).parents[2]


def lines_of(tmp_path: Path, program: str) -> list[Seen]:
    """What a program logs, in a process of its own."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("RANK", "SLURM"))}
    paths = os.pathsep.join(filter(None, [PACKAGE, str(ROOT), os.environ.get("PYTHONPATH")]))
    environ = kept | {
        "PYTHONPATH": paths,
        "RANKLOG_SPOOL": str(tmp_path / "spool"),
        "RANKLOG_LAUNCHED": "1",
        "RANK": "3",
        "WORLD_SIZE": "8",
    }
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environ,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    Collector(tmp_path / "spool", DiskStream(tmp_path / "stream", sync=False)).finish(10.0)
    return [line for line in lines_in(tmp_path / "stream") if line.channel != "agent"]


def told(lines: list[Seen]) -> list[tuple[str, int | None]]:
    return [(line.text, line.iteration) for line in lines]


TITAN = """
import logging
from tests.frameworks.test_frameworks import titan_log
titan_log()
"""


def titan_log() -> None:
    """As torchtitan's structured logger does: extra fields by its names."""
    logger = logging.getLogger("torchtitan.structured_logger")
    logger.propagate = False
    logger.setLevel(logging.INFO)
    register_handler(structured_logger=logger, rank=0, source="training", output_dir="/out", new=1)

    def say(text: str, kind: str, step: int | None, **more: Any) -> None:
        fields = {"log_type": "event", "log_type_name": kind, "step": step}
        logger.info(text, extra=fields | {"event_name": None, "value": None} | more)

    say("[step 5] fwd_bwd_start", "fwd_bwd_start", 5)
    say("[step 5] loss=2.5", "metric_value", 5, event_name="train.loss", value=2.5)
    say("[step 5] fwd_bwd_end took 12.50 ms", "fwd_bwd_end", 5, value=12.5)
    say("training_end", "training_end", None)


def test_torchtitans_records_are_lines_and_telemetry_with_their_step(tmp_path: Path) -> None:
    lines = lines_of(tmp_path, TITAN)
    logged = [line for line in lines if line.channel == "logging"]
    telemetry = [line for line in lines if line.channel == "telemetry"]

    assert told(logged) == [
        ("[step 5] fwd_bwd_start", 5),
        ("[step 5] fwd_bwd_end took 12.50 ms", 5),
        ("training_end", 5),
    ]
    assert dict(logged[1].metadata)["log_type_name"] == "fwd_bwd_end"
    assert dict(logged[1].metadata)["value"] == 12.5
    [(values, step)] = [(dict(line.metadata), line.iteration) for line in telemetry]
    assert (values, step) == ({"train.loss": 2.5, "source": "training"}, 5)
    assert {line.rank for line in lines} == {3}


HUGGING_FACE = """
from types import SimpleNamespace
from ranklog.frameworks.huggingface import RanklogCallback
import logging
callback = RanklogCallback()
args, state = SimpleNamespace(output_dir="/out"), SimpleNamespace(global_step=0, is_world_process_zero=True)
callback.on_init_end(args, state, None)
callback.on_train_begin(args, state, None, model=None)
for step in range(2):
    state.global_step = step
    callback.on_step_begin(args, state, None, model=None)
    logging.getLogger("mine").info("in step")
    state.global_step = step + 1
    callback.on_step_end(args, state, None)
    callback.on_log(args, state, None, logs={"loss": 2.5 - step, "note": "text", "flag": True})
callback.on_save(args, state, None)
"""


def test_hugging_faces_steps_logs_and_checkpoints(tmp_path: Path) -> None:
    lines = lines_of(tmp_path, HUGGING_FACE)

    # Nothing is where this job says that it saves: a warning tells so, when it is found out.
    assert told([x for x in lines if x.channel == "logging" and x.level == logging.INFO]) == [
        ("in step", 1),
        ("in step", 2),
        ("attaching /out/checkpoint-2 (checkpoint)", 2),
    ]
    values = [(dict(x.metadata), x.iteration) for x in lines if x.channel == "telemetry"]
    assert values == [({"loss": 2.5}, 1), ({"loss": 1.5}, 2)]


def test_an_event_that_is_none_of_ours_does_nothing() -> None:
    callback = RanklogCallback()

    assert callback.on_something_new(None, None, None, model=1) is None
    with pytest.raises(AttributeError):
        callback.other  # noqa: B018


REAL_TRAINER = """
import logging, torch
from transformers import Trainer, TrainingArguments
from ranklog.frameworks.huggingface import RanklogCallback
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__(); self.linear = torch.nn.Linear(2, 1)
    def forward(self, x, labels=None):
        return {"loss": ((self.linear(x)[:, 0] - labels) ** 2).mean()}
data = [{"x": torch.ones(2), "labels": torch.tensor(1.0)} for _ in range(6)]
args = TrainingArguments("out", max_steps=3, logging_steps=1, report_to=[], use_cpu=True, save_strategy="no", disable_tqdm=True, per_device_train_batch_size=2)
Trainer(Model(), args, train_dataset=data, callbacks=[RanklogCallback()]).train()
"""


def test_the_real_trainer_takes_the_callback(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    lines = lines_of(tmp_path, REAL_TRAINER.replace("import logging, torch", "import os; [os.environ.pop(k) for k in ('RANK', 'WORLD_SIZE')]; os.environ['RANKLOG_RANK'] = '3'; import torch"))  # fmt: skip
    losses = [x for x in lines if x.channel == "telemetry" and "loss" in dict(x.metadata)]

    assert [line.iteration for line in losses] == [1, 2, 3]
    assert {line.rank for line in losses} == {3}


LIGHTNING = """
from types import SimpleNamespace
from ranklog.frameworks.lightning import RanklogLogger
logger = RanklogLogger(run="mine")
logger.log_hyperparams({"lr": 0.1})
logger.log_metrics({"loss": 2.5}, step=7)
logger.after_save_checkpoint(SimpleNamespace(last_model_path="/out/last.ckpt"))
logger.finalize("success")
assert logger.name == "ranklog" and logger.version
"""


def test_lightnings_metrics_hyperparameters_and_end(tmp_path: Path) -> None:
    lines = lines_of(tmp_path, LIGHTNING)

    assert told([x for x in lines if x.channel == "logging" and x.level == logging.INFO]) == [
        ("hyperparameters {'lr': 0.1}", None),
        ("attaching /out/last.ckpt (checkpoint)", 7),
        ("training ended: success", 7),
    ]
    values = [(dict(x.metadata), x.iteration) for x in lines if x.channel == "telemetry"]
    assert values == [({"loss": 2.5}, 7)]


REAL_LIGHTNING = """
import os
[os.environ.pop(k) for k in ("RANK", "WORLD_SIZE")]
os.environ["RANKLOG_RANK"] = "3"
import torch, lightning
from ranklog.frameworks.lightning import RanklogLogger
class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__(); self.linear = torch.nn.Linear(2, 1); self.save_hyperparameters({"width": 2})
    def training_step(self, batch, at):
        loss = self.linear(batch).mean(); self.log("loss", loss); return loss
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)
data = torch.utils.data.DataLoader(torch.ones(6, 2), batch_size=2)
trainer = lightning.Trainer(max_epochs=1, logger=RanklogLogger(), accelerator="cpu", log_every_n_steps=1, enable_checkpointing=False, enable_progress_bar=False)
trainer.fit(Module(), data)
"""


def test_the_real_lightning_takes_the_logger(tmp_path: Path) -> None:
    pytest.importorskip("lightning")
    lines = lines_of(tmp_path, REAL_LIGHTNING)
    losses = [x for x in lines if x.channel == "telemetry" and "loss" in dict(x.metadata)]

    assert [line.iteration for line in losses] == [0, 1, 2]
    assert [x.text for x in lines if x.text.startswith("hyperparameters")] == [
        "hyperparameters {'width': 2}"
    ]
