"""`ranklog.init` and what goes with it: the one producer of this process, and its attachments."""

from __future__ import annotations

import atexit
import logging
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranklog.model.levels import INFO, parse_level
from ranklog.produce import spool, telemetry, trouble
from ranklog.produce.capture import (
    Captured,
    capture_descriptors,
    finish_capture,
    forget_faults,
    inherited_capture,
    release_descriptors,
)
from ranklog.produce.console import ConsoleCopy
from ranklog.produce.fast_log import FastLog
from ranklog.produce.handler import RanklogHandler
from ranklog.produce.hooks import Hooks
from ranklog.produce.identity import identify, tenant_at
from ranklog.produce.key_tenant import contradiction
from ranklog.produce.producer import Producer
from ranklog.produce.starting import KINDS_NAMED, is_known_kind, resolved, take_spool
from ranklog.produce.surroundings import forget_other_host, here, tell_if_alone
from ranklog.produce.values import clean_metadata, text_of

if TYPE_CHECKING:
    from ranklog.produce.describing import Description

EXIT_WAIT_S = 5.0


class Session:
    """A producer with its handler, hooks, captured descriptors and collector."""

    def __init__(self, producer: Producer, destination: str | None) -> None:
        self.producer = producer
        self.handler = RanklogHandler(producer)
        self._captured: Captured | None = None
        self._copy: ConsoleCopy | None = None
        self._destination = destination
        self._hooks: Hooks | None = None
        self._fast: FastLog | None = None
        self._root_level: int | None = None
        self._pid = os.getpid()
        self.description: Description | None = None

    def attach(self, level: int, capture: bool, launched: bool) -> None:
        """Take part in logging, hooks and, if asked, fd 1 and 2."""
        self._captured = inherited_capture()
        if capture and self._captured is None:
            self._captured = capture_descriptors(
                self.producer.folder,
                self.producer.process,
                lambda text: self.producer.emit(logging.WARNING, 0, text),
            )
        if self._captured is not None:
            self._copy = ConsoleCopy(self._captured)
            self.handler = RanklogHandler(self.producer, self._copy)
            self._copy.move_handlers(logging.getLogger())
        self.producer.has_destination = self._destination is not None or launched
        self._tell_of_no_destination()
        if self._destination:
            self.producer.ensure_collector = self._ensure_collector
            self._ensure_collector()
        root = logging.getLogger()
        if root.level == logging.WARNING and not root.handlers:
            # Nobody configured logging: its default would keep INFO lines from us. The console
            # stays as quiet as it was (logging's last resort shows warnings).
            self._root_level = root.level
            root.setLevel(level)
        self.handler.setLevel(level)
        root.addHandler(self.handler)
        self._hooks = Hooks(self.producer, self._copy)
        self._hooks.install()
        self._fast = FastLog(self.handler)
        self._fast.install()
        telemetry.attach(self.producer)

    def end(self, timeout_s: float) -> int:
        """The process does: wait; how many records are not delivered.

        Nothing is detached: destructors, threads that go on, and what was registered with atexit
        before us log still.
        """
        timeout_s = telemetry.settle(timeout_s)
        if self._captured is not None and os.getpid() == self._pid:
            finish_capture(self._captured)
        began = time.monotonic()
        if self.description is not None:
            self.description.finish(EXIT_WAIT_S)
        self.producer.say_goodbye()
        return self.producer.flush(max(0.0, timeout_s - (time.monotonic() - began)))

    def close(self, timeout_s: float) -> int:
        """Detach, end the stream, wait; how many records are not delivered."""
        timeout_s = telemetry.settle(timeout_s)
        telemetry.attach(None)
        if self._fast is not None:
            self._fast.remove()
        logging.getLogger().removeHandler(self.handler)
        if self._root_level is not None:
            logging.getLogger().setLevel(self._root_level)
        if self._hooks is not None:
            self._hooks.remove()
        if self._copy is not None:
            self._copy.close()
        if self._captured is not None and os.getpid() == self._pid:
            release_descriptors(self._captured)
        began = time.monotonic()
        if self.description is not None:
            self.description.finish(timeout_s)
        self.producer.close()
        return self.producer.flush(max(0.0, timeout_s - (time.monotonic() - began)))

    def _tell_of_no_destination(self) -> None:
        local_rank = self.producer.process.identity.local_rank
        if not self.producer.has_destination and local_rank in (None, 0):
            trouble.once(
                "destination",
                f"no destination, lines stay in {self.producer.folder}; set RANKLOG_DESTINATION",
            )

    def _ensure_collector(self) -> None:
        """Start a collector for the folder unless one is there; it lives in its own session."""
        folder = self.producer.folder
        if self._destination is None:
            return
        if spool.has_collector(folder):
            other = spool.agents_destination(folder)
            if other not in ("", self._destination):
                trouble.once(
                    "elsewhere",
                    f"the agent of {folder} sends to {other}, not to {self._destination}; "
                    "give each its own RANKLOG_SPOOL",
                )
            return
        command = [
            sys.executable,
            "-m",
            "ranklog.agent",
            str(folder),
            self._destination,
        ]
        import subprocess  # only the process that starts an agent needs it

        # No child of ours: a job that waits for any child must not meet it, nor have a zombie.
        subprocess.run(
            ["/bin/sh", "-c", '"$@" &', "sh", *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=_collector_environment(),
            check=False,
        )


_session: Session | None = None


def init(
    run: str | None = None,
    *,
    destination: str | None = None,
    capture: str | None = None,
    level: str | int = INFO,
    metadata: dict[str, Any] | None = None,
    tenant: str | None = None,
    launch: str | None = None,
    attempt: int | None = None,
    rank: int | None = None,
    local_rank: int | None = None,
    world_size: int | None = None,
    spool_dir: str | os.PathLike[str] | None = None,
    config: Any = None,
    files: Sequence[str | os.PathLike[str]] = (),
    datasets: Any = None,
    groups: Mapping[str, Any] | None = None,
    owner: str | None = None,
    tags: Any = None,
) -> None:
    """Log this process: logging's records, warnings, uncaught exceptions; never blocks or raises.

    Identity is read from torchrun, Slurm, MPI, Kubernetes where it is not given. `destination` (or
    `$RANKLOG_DESTINATION`) is a directory, `kinesis://STREAM` or an API's address; without one
    lines stay in the spool. `capture="fd"` also takes fd 1 and 2: print, C++, crash reports.
    `metadata` is on every line. A second call, and `RANKLOG_DISABLED=1`, do nothing.

    Of the run itself: `config` (resolved: a dict, dataclass, namespace, OmegaConf, pydantic), `files`
    that were submitted, `datasets` (name -> version), `groups` (dimension -> this rank's place, or
    (place, size): `{"tp": (1, 8), "dp": (0, 4)}`), `owner`, `tags`: what `ranklog runs` shows and
    finds runs by.
    """
    global _session
    if _session is not None or os.environ.get("RANKLOG_DISABLED") == "1":
        return
    try:
        from ranklog.produce.describing import Description, Given

        forget_other_host(os.environ)
        around = here()
        if launch is None:
            tell_if_alone(os.environ, around)
        identity = identify(
            os.environ,
            around,
            tenant=tenant or (tenant_at(destination, os.environ) if destination else None),
            run=run,
            launch=launch,
            attempt=attempt,
            rank=rank,
            local_rank=local_rank,
            world_size=world_size,
        )
        _tell_contradiction(identity.tenant, destination)
        _tell_shortened(run or os.environ.get("RANKLOG_RUN"), identity.run)
        # Children that are no forks (a data loader's, spawned) can't see what the launch came from.
        os.environ.setdefault("RANKLOG_LAUNCH", identity.launch)
        launched = os.environ.get("RANKLOG_LAUNCHED") == "1"
        wanted = None if launched else _destination(destination)
        folder = Path(spool_dir) if spool_dir is not None else take_spool(wanted, os.environ)
        said = clean_metadata(metadata or {})
        try:
            producer = Producer(folder.absolute(), identity, launched=launched, metadata=said)
        except OSError as error:
            trouble.once("spool", f"this process is not logged, no spool: {error}")
            return
        session = Session(producer, wanted)
        _session = session
        number = parse_level(level) if isinstance(level, str) else level
        session.attach(INFO if number is None else number, capture == "fd", launched)
        session.description = Description(producer)
        session.description.begin(
            Given(config, tuple(map(str, files)), datasets, groups, owner, tags)
        )
    except Exception:
        trouble.swallow("starting; this process may not be logged")


def _tell_contradiction(tenant: str, given: str | None) -> None:
    """What will be refused where lines go, now and not when the job ends."""
    destination = given or os.environ.get("RANKLOG_DESTINATION")
    if wrong := contradiction(tenant, destination, os.environ):
        trouble.once("tenant", wrong)


def _tell_shortened(given: str | None, run: str) -> None:
    """By which name to ask for a run whose own is too long."""
    if given and run != given:
        trouble.once("name", f"no key takes the run's name, so it is called {run}")


def _destination(given: str | None) -> str | None:
    """As an agent takes it; what it would not know is told now, not when the job ends."""
    destination = given or os.environ.get("RANKLOG_DESTINATION")
    if not destination:
        return None
    if not is_known_kind(destination):
        trouble.once(
            "destination",
            f"destination {destination!r} is of no known kind, nothing is sent; {KINDS_NAMED}",
        )
    return resolved(destination)


def log(text: str, level: str | int = INFO, **metadata: Any) -> None:
    """One line, without a logger; keywords are its metadata."""
    if _session is None:
        return
    try:
        number = parse_level(level) if isinstance(level, str) else level
        producer = _session.producer
        call = producer.call_at(sys._getframe(1), None, INFO if number is None else number)
        values = clean_metadata(metadata) if metadata else None
        if values:
            producer.emit(call.level, call.site, text_of(text), values)
        else:
            producer.line(call, text)
    except Exception:
        trouble.swallow("taking a line")


def attach(path: str | os.PathLike[str], kind: str | None = None) -> None:
    """Keep a reference to a file: a profiler trace, a memory snapshot, an image; never blocks.

    It is a line now, and in `ranklog runs --manifest` with size and hash; the file stays where it
    is. `kind` is guessed from the name where it is not given.
    """
    if _session is None or _session.description is None:
        return
    try:
        _session.description.attach(path, kind)
    except Exception:
        trouble.swallow("attaching a file")


def active() -> Producer | None:
    """This process's producer; None before `init` and after `close`."""
    return None if _session is None else _session.producer


def flush(timeout_s: float = 5.0) -> int:
    """Wait until what was logged before is delivered; how many records are not."""
    if _session is None:
        return 0
    try:
        return _session.producer.flush(telemetry.settle(timeout_s))
    except Exception:
        trouble.swallow("flushing")
        return 0


def close(timeout_s: float = EXIT_WAIT_S) -> int:
    """End this process's stream, and undo what `init` attached; as `flush`."""
    global _session
    session, _session = _session, None
    if session is None:
        return 0
    try:
        return session.close(timeout_s)
    except Exception:
        trouble.swallow("closing")
        return 0


def _end_at_exit() -> None:
    """A launcher delivers what is in the spool; without one, a container may end with us."""
    if _session is None:
        return
    try:
        _session.end(0.0 if _session.producer.process.launched else EXIT_WAIT_S)
    except Exception:
        trouble.swallow("ending")


def handler() -> logging.Handler:
    """Our handler, for loggers that don't propagate; one that drops everything before `init`."""
    return logging.NullHandler() if _session is None else _session.handler


def _after_fork_in_child() -> None:
    if _session is not None:
        _session.producer.forked()
        forget_faults()


def _collector_environment() -> dict[str, str]:
    """The collector imports this very ranklog, and does not log itself."""
    package = str(Path(__file__).parents[2])
    paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "RANKLOG_DISABLED": "1"}


atexit.register(_end_at_exit)
os.register_at_fork(after_in_child=_after_fork_in_child)
