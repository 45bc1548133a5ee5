"""`torchrun --logs-specs ranklog …`: every rank's fd 1 and 2 in the spool, and who each rank is.

What torchrun was asked for stays: files under --log-dir where --redirects or --tee name them (the
spool has links to those), the console with --tee's prefixes or without. A thread of the launcher
copies to the console what torchrun does not, and tells the agent how each rank ended.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Any

from torch.distributed.elastic.multiprocessing.api import DefaultLogsSpecs, LogsDest

from ranklog.launch.console import OWN, console_of
from ranklog.launch.job import identity_of
from ranklog.launch.watch import Rank, Watch, context_of_caller
from ranklog.produce import spool, trouble
from ranklog.produce.capture import VARIABLE as CAPTURED
from ranklog.produce.identity import Surroundings, identify
from ranklog.produce.starting import take_spool
from ranklog.produce.surroundings import forget_other_host


class RanklogLogsSpecs(DefaultLogsSpecs):  # type: ignore[misc]
    """The default's files and prefixes, and all of it captured. Never fails a launch."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._watch: Watch | None = None
        self._launch: dict[str, str] = {}
        self._folder: Path | None = None

    def reify(self, envs: dict[int, dict[str, str]]) -> LogsDest:
        """Where each local rank's output goes; called once for every attempt."""
        dest = super().reify(envs)
        if os.environ.get("RANKLOG_DISABLED") == "1":
            return dest
        try:
            return self._captured(dest, envs)
        except Exception:
            trouble.swallow("capturing ranks; this launch is not captured")
            return dest

    def _captured(self, dest: LogsDest, envs: dict[int, dict[str, str]]) -> LogsDest:
        forget_other_host(os.environ)
        destination = os.environ.get("RANKLOG_DESTINATION")
        if self._folder is None:
            self._folder = take_spool(destination, os.environ).absolute()
        folder = self._folder
        spool.make_spool(folder)
        if self._watch is None:
            any_rank = next(iter(envs.values()), {})
            self._launch = _launch_variables(folder, {**os.environ, **any_rank})
            by_parent = os.environ.get("RANKLOG_LAUNCHED") == "1"
            words = [] if by_parent else ["torchrun", *sys.argv[1:]]
            self._watch = Watch(folder, destination, words)
        console = console_of(os.environ)
        ranks = [
            _rank(folder, local_rank, dest, {**os.environ, **env, **self._launch}, console)
            for local_rank, env in sorted(envs.items())
        ]
        # Nothing has failed: only now change what torchrun does.
        for rank in ranks:
            env = envs[rank.local_rank]
            env.update(self._launch)
            env[CAPTURED] = str(folder / rank.incarnation)
            env.setdefault("PYTHONUNBUFFERED", os.environ.get("PYTHONUNBUFFERED") or "1")
            _redirect(dest, rank)
        self._watch.add(ranks, context_of_caller())
        return dest


def _launch_variables(folder: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """What ranks of all attempts are told, so that their own `init` says the same."""
    who = identity_of(["torchrun", *sys.argv[1:]], environ)
    return {
        "RANKLOG_SPOOL": str(folder),
        "RANKLOG_LAUNCHED": "1",
        "RANKLOG_LAUNCHED_ON": socket.gethostname(),
        "RANKLOG_TENANT": who.tenant,
        "RANKLOG_RUN": who.run,
        "RANKLOG_LAUNCH": who.launch,
        "RANKLOG_HOST": who.host,
    }


def _rank(
    folder: Path,
    local_rank: int,
    dest: LogsDest,
    environ: Mapping[str, str],
    console: tuple[int, int],
) -> Rank:
    """A rank with its files made. A file that the user asked for is linked, and stays the user's."""
    around = Surroundings(host="", script="", launcher="")
    rank = Rank(local_rank, spool.new_incarnation(), identify(environ, around))
    rank.error_file = dest.error_files.get(local_rank, "")
    teed = (dest.tee_stdouts, dest.tee_stderrs)
    for number, paths in enumerate((dest.stdouts, dest.stderrs)):
        channel = rank.channels[number]
        place = folder / f"{rank.incarnation}.{channel}"
        wanted = paths[local_rank]
        if wanted in ("", os.devnull):
            os.close(spool.open_append(place))
            if not wanted:
                rank.copies[channel] = (console[number], b"")
        else:
            Path(wanted).touch()
            place.symlink_to(wanted)
            if local_rank in teed[number] and console != OWN:
                # torchrun would copy it to its stdout, which is captured here.
                rank.copies[channel] = (console[number], _prefix(environ, local_rank))
        rank.paths[channel] = str(place) if wanted in ("", os.devnull) else wanted
    return rank


def _redirect(dest: LogsDest, rank: Rank) -> None:
    for channel, paths, tees in (
        ("stdout", dest.stdouts, dest.tee_stdouts),
        ("stderr", dest.stderrs, dest.tee_stderrs),
    ):
        paths[rank.local_rank] = rank.paths[channel]
        if channel in rank.copies:
            tees.pop(rank.local_rank, None)


def _prefix(environ: Mapping[str, str], local_rank: int) -> bytes:
    """What --tee puts before a line."""
    role = environ.get("ROLE_NAME", "default")
    template = environ.get("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE")
    if not template:
        return f"[{role}{local_rank}]:".encode()
    values = {"role_name": role, "rank": environ.get("RANK", ""), "local_rank": local_rank}
    return Template(template).safe_substitute(values).encode()
