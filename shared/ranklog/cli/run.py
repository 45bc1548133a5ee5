"""`ranklog run -- CMD…`: a training command, captured; its output, signals and exit code are its own."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path

from ranklog.cli.config import read_config
from ranklog.cli.console import Console
from ranklog.cli.source import local_store, refuse_empty, refuse_names
from ranklog.errors import BadInput
from ranklog.produce.starting import KINDS_NAMED, is_known_kind, resolved, take_spool

# A destination that is far away is waited for as long as `ranklog.init` waits at the end of a process.
FAR_S = 5.0


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Run the command to its end, deliver, and end as it did."""
    from ranklog.agent.refused import FOLDER, kept_count
    from ranklog.launch.job import DELIVER_S, Job, identity_of, run_job, spool_for, wait_delivered
    from ranklog.launch.parent import end_as
    from ranklog.produce.identity import tenant_at
    from ranklog.produce.key_tenant import contradiction
    from ranklog.produce.spool import agent_error

    words = list(arguments.cmd_words)
    if not words:
        raise BadInput("no command to run", hint="ranklog run -- torchrun train.py")
    if os.environ.get("RANKLOG_DISABLED") == "1":
        os.execvp(words[0], words)
    if arguments.nproc == 0:
        raise BadInput("--nproc 0 starts nothing", hint="1 or more, or leave it out")
    if arguments.monitor and find_spec("psutil") is None:
        raise BadInput("--monitor needs psutil", hint="pip install 'ranklog[monitor]'")
    refuse_empty(arguments, "run", "launch", "tenant")
    refuse_names(arguments)
    destination, near = _destination(arguments)
    tenant = arguments.tenant or tenant_at(destination, os.environ)
    if wrong := contradiction(tenant, destination, os.environ):
        raise BadInput(wrong)
    spool = (
        Path(arguments.spool)
        if arguments.spool
        else spool_for(destination, os.environ, choose=take_spool)
    )
    job = Job(
        words=words,
        folder=spool.absolute(),
        destination=destination,
        identity=identity_of(
            words,
            os.environ,
            run=arguments.run,
            launch=arguments.launch,
            tenant=tenant,
        ),
        processes=arguments.nproc,
        config=Path(arguments.config) if arguments.config else None,
        monitor=arguments.monitor,
    )
    if job.config is not None and not job.config.is_file():
        raise BadInput(f"no file {job.config}", hint="--config names the job's configuration")
    if job.config is not None and (told := _lacking(job.config)):
        print(f"ranklog: {told}", file=sys.stderr)
    kept_before = kept_count(job.folder / FOLDER)
    code = run_job(job)
    if destination is not None:
        delivered = wait_delivered(job, DELIVER_S if near else FAR_S)
        why = "" if delivered else agent_error(job.folder)
        _finish(delivered, why, f"{job.identity.run}@{job.identity.launch}", near)
        _tell_refused(job.folder / FOLDER, kept_before)
    console.close()
    return end_as(code)


def _lacking(config: Path) -> str:
    """What a configuration will not be asked for by, and what would help; "" where nothing is amiss."""
    from ranklog.produce.describe import YAML

    if config.suffix not in YAML or find_spec("yaml") is not None:
        return ""
    return f"{config} is kept as text; to find runs by its keys: pip install pyyaml"


def _destination(arguments: argparse.Namespace) -> tuple[str | None, str | None]:
    """Where lines go, and the store, where it is one: then the command ends with all searchable."""
    from ranklog.store.open import local_folder, scheme_of

    refuse_empty(arguments, "store", "destination")
    if arguments.destination and arguments.store:
        raise BadInput("--destination and --store name two places", hint="say which")
    if arguments.destination:
        if not is_known_kind(arguments.destination):
            raise BadInput(
                f"destination {arguments.destination!r} is of no known kind", hint=KINDS_NAMED
            )
        return resolved(arguments.destination), None
    store = arguments.store
    if not store and (given := os.environ.get("RANKLOG_DESTINATION")):
        return resolved(given), None
    store = store or os.environ.get("RANKLOG_STORE")
    if not store and (config := read_config()) is not None and config.destination:
        config.use()
        return config.destination, None
    if not store and find_spec("pyarrow") is None:
        return None, None  # a training environment that can't ingest: the spool keeps the lines
    store = store or str(local_store())
    scheme = scheme_of(store)
    if scheme == "s3":
        return store, store
    store = str(Path(local_folder(store) if scheme else store).absolute())
    return f"store:{store}", store


def _finish(delivered: bool, why: str, run_id: str, near: str | None) -> None:
    if why:
        print(f"ranklog: nothing is sent, lines stay in the spool: {why}", file=sys.stderr)
    elif not delivered:
        print("ranklog: not everything is delivered yet; the agent goes on", file=sys.stderr)
    elif near and sys.stderr.isatty():
        words = ["ranklog", "search", "--run", run_id, "--store", near]
        print(f"ranklog: {shlex.join(words)}", file=sys.stderr)


def _tell_refused(kept: Path, before: int) -> None:
    """Frames that the destination did not take while the command ran."""
    from ranklog.agent.refused import kept_count

    if (count := kept_count(kept) - before) > 0:
        frames = "1 frame was" if count == 1 else f"{count:,} frames were"
        print(
            f"ranklog: {frames} refused and not delivered; ranklog replay {kept} sends what is kept",
            file=sys.stderr,
        )
