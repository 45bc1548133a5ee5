"""The folder where a host's processes leave what they log: one `.process` file each, and its files.

    <incarnation>.process   JSON: identity, pid and its start, which files belong to it
    <incarnation>.defs      call sites, contexts, manifest, drops, good-bye: read anew from 0 by
                            every agent, kept until the process is delivered
    <incarnation>.lines     the journal: what the ring can't take, all lines where there is none
    <incarnation>.stdout    what was written to fd 1, as it was
    <incarnation>.flush     somebody waits for its delivery
    <incarnation>.acked     how far the collector delivered: offset and records, two uint64
    <incarnation>.refused   of these, lines that the destination refused: uint64
    collector.lock          held by the one collector of the folder; its pid, for people
    destination             where its lines go: said by who takes the folder, and by its agent
    taking.lock             held while somebody looks whose the folder is
    agent.status            JSON: what the collector does, where it sends
    agent.error             why the last one that was started could not work
    agent.denied            why the destination refuses whatever is sent; told anew while it does

All of it is the user's alone (0600 in a 0700 folder): logs hold secrets.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import struct
from collections.abc import Container, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ranklog.model.stream import Stream
from ranklog.produce.identity import Identity

ACK, REFUSED = struct.Struct("<QQ"), struct.Struct("<Q")
JOURNAL = "logging"  # the channel of the SDK's lines, and the journal's name among the files
# Among the files of a process too; no streams of their own: what they hold is of JOURNAL's stream.
# The ring's name is a whole path, on tmpfs if there is room; a process may have none.
DEFS, RING = "defs", "ring"
AGENT_STATUS, AGENT_ERROR, AGENT_DENIED = "agent.status", "agent.error", "agent.denied"
DESTINATION = "destination"


@dataclass(frozen=True, slots=True)
class ProcessFiles:
    """A process as its spool describes it. `files`: channel -> file name; `start` tells pids apart."""

    identity: Identity
    incarnation: str
    pid: int
    start: str
    files: dict[str, str]
    launched: bool = False  # a launcher of ours will tell the exit code
    metadata: dict[str, int | float | str] = field(default_factory=dict)  # on every line
    labels: str = ""  # the form of labels that its output has, which say whose a line is

    @property
    def line_metadata(self) -> dict[str, int | float | str]:
        """What every line of it carries: its own metadata, and that it is a rank's worker."""
        role = self.identity.role
        return self.metadata if role is None else {**self.metadata, "role": role}

    def stream(self, channel: str) -> Stream:
        """The stream of one of its files."""
        return stream_of(self.identity, channel, self.incarnation)


def stream_of(who: Identity, channel: str, incarnation: str) -> Stream:
    """A stream of whom an identity names."""
    return Stream(
        tenant=who.tenant,
        run=who.run,
        launch=who.launch,
        attempt=who.attempt,
        host=who.host,
        rank=who.rank,
        local_rank=who.local_rank,
        channel=channel,
        incarnation=incarnation,
        world_size=who.world_size,
    )


def default_spool(environ: Mapping[str, str]) -> Path:
    """`$RANKLOG_SPOOL`, else a folder of this user on the host's local disk."""
    if named := environ.get("RANKLOG_SPOOL"):
        return Path(named)
    import tempfile  # twenty modules, which a job that names its spool need not wait for

    return Path(tempfile.gettempdir()) / f"ranklog-{os.getuid()}"


def beside(folder: Path, destination: str) -> Path:
    """A spool of its own for what goes to another destination."""
    import hashlib  # only who has two destinations needs it

    name = hashlib.blake2b(destination.encode("utf-8", "surrogateescape"), digest_size=6)
    return folder.with_name(f"{folder.name}-{name.hexdigest()}")


def make_spool(path: Path) -> None:
    """Create the folder, or check that it is ours: in /tmp another user may have made it."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = path.stat()
    if status.st_uid != os.getuid():
        raise PermissionError(errno.EPERM, "spool belongs to another user", str(path))
    if status.st_mode & 0o077:
        path.chmod(0o700)


def new_incarnation() -> str:
    """16 hex digits that no other process has."""
    return os.urandom(8).hex()


def open_append(path: Path) -> int:
    """A descriptor for appending, not inherited by programs that are started."""
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)


@contextlib.contextmanager
def beyond_standard() -> Iterator[None]:
    """What is opened meanwhile is none of 0, 1 and 2, though the process was started without them.

    What it prints, or what C code does, would be in our files else.
    """
    held: list[int] = []
    try:
        with contextlib.suppress(OSError):  # none left: whoever opens next is told
            while (fd := os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)) <= 2:
                held.append(fd)
            os.close(fd)
        yield
    finally:
        for fd in held:
            os.close(fd)


def announce(spool: Path, process: ProcessFiles) -> None:
    """Tell the collector of a process; its files are there already."""
    target = spool / f"{process.incarnation}.process"
    partial = spool / f".{process.incarnation}.{os.getpid()}.partial"
    with os.fdopen(open_append(partial), "w") as file:
        said = asdict(process)
        if not process.labels:
            del said["labels"]  # an agent that was there before knows no such member
        json.dump(said, file)
    partial.rename(target)


def announced(spool: Path, known: Container[str] = ()) -> Iterator[ProcessFiles]:
    """The processes of the spool but the known, by incarnation; what can't be read is passed over."""
    for path in sorted(spool.glob("*.process")):
        if path.stem in known:
            continue
        try:
            fields = json.loads(path.read_text())
            fields["identity"] = Identity(**fields["identity"])
            yield ProcessFiles(**fields)
        except (OSError, ValueError, TypeError, KeyError):
            continue


def whose(folder: Path) -> str:
    """The destination whose spool it is, or was the last; "" where nobody has said."""
    try:
        return (folder / DESTINATION).read_text()
    except (OSError, ValueError):
        return ""


def said_whose_s(folder: Path) -> float:
    """When that was said, in seconds of the wall clock; 0.0 where nobody has."""
    try:
        return (folder / DESTINATION).stat().st_mtime
    except OSError:
        return 0.0


def say_whose(folder: Path, destination: str) -> None:
    """From now on it is this destination's. Raises OSError."""
    partial = folder / f".{DESTINATION}.{os.getpid()}.partial"
    with os.fdopen(open_append(partial), "w") as file:
        file.write(destination)
    partial.rename(folder / DESTINATION)


def has_left(folder: Path) -> bool:
    """Whether it holds a process's files, of one that runs or whose lines are not delivered, or frames that
    its agent left in the log."""
    if next(folder.glob("*.process"), None) is not None:
        return True
    try:
        frames = json.loads((folder / AGENT_STATUS).read_text())["log"]["frames"]
    except (OSError, ValueError, TypeError, KeyError):
        return False
    return bool(frames)


def is_anyone_alive(folder: Path) -> bool:
    """Whether a process that announced itself there runs still."""
    return any(is_alive(one.pid, one.start) for one in announced(folder))


def agents_destination(folder: Path) -> str:
    """Where the agent sends that works on the folder; "" where none does, or it has not said yet."""
    return whose(folder) if has_collector(folder) else ""


def tell_agent_error(folder: Path, error: object | None) -> None:
    """Why no agent can work here, for those who wait for one; None: it can."""
    _tell(folder / AGENT_ERROR, error)


def tell_denied(folder: Path, why: str) -> None:
    """Why the destination takes nothing until somebody sets something right; "": it does not refuse."""
    _tell(folder / AGENT_DENIED, why or None)


def _tell(path: Path, error: object | None) -> None:
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
        if error is not None:
            with os.fdopen(open_append(path), "w") as file:
                file.write(str(error))


def agent_error(folder: Path, since_s: float = 0.0) -> str:
    """What an agent told when it could not work, if after a wall-clock time; else ""."""
    return _told(folder / AGENT_ERROR, since_s)


def denied(folder: Path, since_s: float) -> str:
    """Why the destination refuses what the agent sends, if it did after a wall-clock time; else ""."""
    return _told(folder / AGENT_DENIED, since_s)


def _told(path: Path, since_s: float) -> str:
    try:
        return path.read_text() if path.stat().st_mtime >= since_s else ""
    except (OSError, ValueError):
        return ""


def process_start(pid: int) -> str:
    """When a process started, in the kernel's ticks; "" where that can't be known or it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[19]


def announced_start(pid: int) -> str:
    """As `process_start`, with the namespace in which the pid means something: containers may share a
    spool and number their processes each for itself."""
    start, namespace = process_start(pid), _pid_namespace()
    return f"{start}@{namespace}" if start and namespace else start


def is_foreign(start: str) -> bool:
    """Whether a process that announced itself is one whose pid means nothing here."""
    namespace = start.partition("@")[2]
    return bool(namespace) and namespace != _pid_namespace()


def _pid_namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid").strip("pid:[]")
    except OSError:
        return ""


def is_alive(pid: int, start: str) -> bool:
    """Whether this very process runs still: not a zombie, and not a later one with its pid.

    One of another pid namespace is taken to run: taken for dead, its later lines would be lost.
    """
    if is_foreign(start):
        return True
    start = start.partition("@")[0]
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    if not start:
        return True
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    fields = stat.rpartition(")")[2].split()
    return fields[0] not in "ZX" and fields[19] == start


def ask_to_flush(folder: Path, incarnation: str) -> None:
    """Somebody waits until all of a process is delivered: the agent cuts its frames now."""
    with contextlib.suppress(OSError):
        os.close(open_append(folder / f"{incarnation}.flush"))


def was_asked_to_flush(folder: Path, incarnation: str) -> bool:
    """Whether somebody asked since the last time."""
    try:
        os.unlink(folder / f"{incarnation}.flush")
    except OSError:
        return False
    return True


def write_ack(path: Path, offset: int, records: int) -> None:
    """How much of a journal was delivered."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.pwrite(fd, ACK.pack(offset, records), 0)
    finally:
        os.close(fd)


def read_ack(path: Path) -> tuple[int, int]:
    """(offset, records) delivered; zeros before the first."""
    try:
        data = path.read_bytes()
    except OSError:
        return 0, 0
    return ACK.unpack(data) if len(data) == ACK.size else (0, 0)


def write_refused(folder: Path, incarnation: str, lines: int) -> None:
    """How many lines of a process were refused, and are kept or lost, since it began."""
    fd = os.open(folder / f"{incarnation}.refused", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.pwrite(fd, REFUSED.pack(lines), 0)
    finally:
        os.close(fd)


def read_refused(folder: Path, incarnation: str) -> int:
    """Lines of a process that were refused; 0 before the first."""
    try:
        data = (folder / f"{incarnation}.refused").read_bytes()
    except OSError:
        return 0
    return int(REFUSED.unpack(data)[0]) if len(data) == REFUSED.size else 0


@contextlib.contextmanager
def collector_lock(spool: Path) -> Iterator[bool]:
    """Whether we are the folder's collector, for as long as the `with` lasts."""
    fd = os.open(spool / "collector.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield True
    finally:
        os.close(fd)


def has_collector(spool: Path) -> bool:
    """Whether a collector works on the folder now."""
    with collector_lock(spool) as ours:
        return not ours
