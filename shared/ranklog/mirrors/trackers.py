"""The trackers that `ranklog.mirror` knows: which of their methods tell, and what they need to work."""

from __future__ import annotations

import netrc
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from ranklog.mirrors import writer
from ranklog.mirrors.patching import also, when_imported
from ranklog.mirrors.values import write, write_line

_told_runs: set[str] = set()


# --- Weights & Biases --------------------------------------------------------------------------------


def mirror_wandb() -> None:
    """`wandb.log` and `run.log`: their numbers, at the step given, else at this thread's iteration."""
    when_imported("wandb.sdk.wandb_run", _patch_wandb)


def _patch_wandb(module: ModuleType) -> None:
    def log(run: Any, data: Any, step: Any = None, *words: Any, **named: Any) -> None:
        _tell_wandb(run)
        if isinstance(data, Mapping):
            write(data, step)

    also(module.Run, "log", log)
    # A run that had begun handed out its old method.
    wandb = sys.modules.get("wandb")
    run = getattr(wandb, "run", None)
    if wandb is not None and run is not None:
        wandb.log = run.log  # type: ignore[attr-defined]
        _tell_wandb(run)


def _tell_wandb(run: Any) -> None:
    """Which run over there is this one; once."""
    key = f"wandb {run.id}"
    if key in _told_runs:
        return
    _told_runs.add(key)
    project = getattr(run, "project", None)
    _tell_run("wandb", run.name or run.id, project, getattr(run, "url", None) or "")


def wandb_needs(environ: Mapping[str, str], home: Path) -> str:
    """What W&B will miss, or nothing."""
    offline = environ.get("WANDB_MODE", "") in ("offline", "disabled", "dryrun")
    if offline or environ.get("WANDB_DISABLED") or environ.get("WANDB_API_KEY"):
        return ""
    host = environ.get("WANDB_BASE_URL", "https://api.wandb.ai").partition("://")[2].strip("/")
    try:
        if netrc.netrc(str(environ.get("NETRC", home / ".netrc"))).authenticators(host):
            return ""
    except (OSError, netrc.NetrcParseError):
        pass
    return f"no credentials for W&B: set WANDB_API_KEY (or log in to {host}), or WANDB_MODE=offline"


# --- MLflow ------------------------------------------------------------------------------------------


def mirror_mlflow() -> None:
    """`mlflow.log_metric(s)`, the client's and `log_batch`: all end in the same two methods."""
    when_imported("mlflow.tracking._tracking_service.client", _patch_mlflow)


def _patch_mlflow(module: ModuleType) -> None:
    def log_metric(
        client: Any,
        run_id: str,
        key: str,
        value: Any,
        timestamp: Any = None,
        step: Any = None,
        *_: Any,
        **__: Any,
    ) -> None:
        _tell_mlflow(run_id)
        write({key: value}, step, None if timestamp is None else timestamp / 1000)

    def log_batch(client: Any, run_id: str, metrics: Any = (), *_: Any, **__: Any) -> None:
        _tell_mlflow(run_id)
        together: dict[tuple[Any, Any], dict[str, Any]] = {}
        for metric in metrics:
            together.setdefault((metric.step, metric.timestamp), {})[metric.key] = metric.value
        for (step, timestamp), values in together.items():
            write(values, step, None if timestamp is None else timestamp / 1000)

    also(module.TrackingServiceClient, "log_metric", log_metric)
    also(module.TrackingServiceClient, "log_batch", log_batch)


def _tell_mlflow(run_id: str) -> None:
    """Which run over there is this one; once. Asks nobody who is far away."""
    key = f"mlflow {run_id}"
    if key in _told_runs:
        return
    _told_runs.add(key)
    mlflow: Any = sys.modules.get("mlflow")
    active = mlflow.active_run() if hasattr(mlflow, "active_run") else None
    if active is None or active.info.run_id != run_id:
        _tell_run("mlflow", run_id, None, "")
        return
    info, uri = active.info, str(mlflow.get_tracking_uri())
    link = f"{uri}/#/experiments/{info.experiment_id}/runs/{run_id}" if "://" in uri else uri
    _tell_run("mlflow", info.run_name or run_id, f"experiment {info.experiment_id}", link)


def mlflow_needs(environ: Mapping[str, str], home: Path) -> str:
    """What MLflow will miss, or nothing."""
    if not environ.get("MLFLOW_TRACKING_URI", "").startswith("databricks"):
        return ""
    missing = [n for n in ("DATABRICKS_HOST", "DATABRICKS_TOKEN") if not environ.get(n)]
    if not missing or (home / ".databrickscfg").is_file():
        return ""
    return f"no credentials for MLflow on Databricks: set {' and '.join(missing)}"


# --- TensorBoard -------------------------------------------------------------------------------------


def mirror_tensorboard() -> None:
    """The SummaryWriter of torch and of tensorboardX: scalars, histograms, texts, hyperparameters."""
    for module in ("torch.utils.tensorboard.writer", "tensorboardX.writer"):
        when_imported(module, _patch_tensorboard)


def _patch_tensorboard(module: ModuleType) -> None:
    def method(tell: Any) -> Any:
        def told(self: Any, *words: Any, **named: Any) -> None:
            key = f"tensorboard {id(self)}"
            if key not in _told_runs:
                _told_runs.add(key)
                folder = str(self.get_logdir() if hasattr(self, "get_logdir") else self.logdir)
                _tell_run("tensorboard", folder, None, folder)
            tell(*words, **named)

        return told

    for name, tell in writer.KEPT.items():
        also(module.SummaryWriter, name, method(tell))


def tensorboard_needs(environ: Mapping[str, str], home: Path) -> str:
    """Files need no credentials."""
    return ""


def _tell_run(tracker: str, name: str, project: str | None, link: str) -> None:
    words = " ".join(
        filter(None, [f"mirrors the {tracker} run", name, f"of {project}" if project else "", link])
    )
    write_line(
        words, tracker=tracker, tracker_run=name, tracker_project=project, tracker_url=link or None
    )


TRACKERS = {
    "wandb": (mirror_wandb, wandb_needs),
    "mlflow": (mirror_mlflow, mlflow_needs),
    "tensorboard": (mirror_tensorboard, tensorboard_needs),
}
