"""Log files of a job that we did not start, each a stream of the rank that writes it.

torchrun's --log-dir, files of ranks, any files: they grow, are rotated and truncated, and new ones
come. Who a file's rank is, the process that writes it tells by its variables; else what the path says
of its rank, and what the same launcher's other files tell of theirs. A file ends when it is rotated
away, or when the process that wrote it has ended and nobody else may write to it.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ranklog import limits
from ranklog.agent.exits import ExitWatch, has_writers
from ranklog.agent.framer import Framer
from ranklog.agent.mask import Masker
from ranklog.agent.rows import StreamState
from ranklog.agent.text_source import TextSource
from ranklog.agent.writers import Writer, writers_of
from ranklog.importer.paths import PathFacts, match_rank, read_path
from ranklog.model.stream import Stream
from ranklog.produce import spool
from ranklog.produce.identity import Identity

# Between two looks for new, rotated and ended files.
LOOK_NS = limits.SECOND_NS
# When all files have ended, files of another attempt may come in this time.
RESTART_NS = 10 * limits.SECOND_NS
# Of more files that fit, those changed last are followed.
FILES_MAX = 4096
_PACKED = (".gz", ".zst", ".bz2", ".xz", ".json", ".pt", ".bin")


@dataclass(frozen=True, slots=True)
class Tail:
    """What to follow: a folder or a glob. `who` has what was given; None is found out."""

    pattern: str
    tenant: str = "default"
    run: str | None = None
    launch: str | None = None
    host: str = ""
    rank_from: re.Pattern[str] | None = None

    def paths(self) -> Iterator[str]:
        """Regular files that may be logs."""
        root = Path(self.pattern)
        found = (
            (os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names)
            if root.is_dir()
            else glob.iglob(self.pattern, recursive=True)
        )
        for path in found:
            hidden = os.path.basename(path).startswith(".")
            if not hidden and not path.endswith(_PACKED) and os.path.isfile(path):
                yield os.path.abspath(path)

    def facts(self, path: str) -> PathFacts:
        """What the path says."""
        root = Path(self.pattern).absolute()
        relative = os.path.relpath(path, root) if root.is_dir() else os.path.basename(path)
        facts = read_path(relative, path)
        if self.rank_from is not None:
            facts = replace(facts, rank=match_rank(self.rank_from, path))
        return facts


@dataclass(slots=True)
class _File:
    """One file as long as its inode and content are the same ones."""

    path: str
    device: int
    inode: int
    source: TextSource
    writer: Writer | None = None
    ended: bool = False

    @property
    def state(self) -> StreamState:
        return self.source.state


class TailStreams:
    """`read` in every look of the agent, `saved` into its log."""

    def __init__(self, tails: Sequence[Tail], masker: Masker) -> None:
        self._tails = tails
        self._masker = masker
        self._files: list[_File] = []
        self._known: dict[tuple[str, int, int], dict[str, Any]] = {}
        self._turn = 0
        self._looked_ns = 0
        self._grew_ns = 0
        self._watch = ExitWatch()
        self._committed: Any = None

    @property
    def streams(self) -> list[StreamState]:
        return [file.state for file in self._files]

    @property
    def is_open(self) -> bool:
        """Whether a file may grow, none was there yet, or a restart may bring new ones."""
        ended = bool(self._files) and all(file.ended for file in self._files)
        return not ended or self._looked_ns - self._grew_ns < RESTART_NS

    @property
    def lines(self) -> dict[str, int]:
        """How many of each file."""
        return {file.path: file.source.records for file in self._files}

    def read(self, framer: Framer, now_ns: int, *, final: bool) -> bool:
        """Move some of what is there; whether there was any. `final`: no more is waited for."""
        if final or now_ns - self._looked_ns >= LOOK_NS:
            self._looked_ns = now_ns
            self._look(framer, now_ns)
        more = False
        for _ in range(len(self._files)):
            self._turn = (self._turn + 1) % len(self._files)
            file = self._files[self._turn]
            if file.ended:
                continue
            moved = self._read_file(framer, now_ns, file)
            if final and not moved:
                self._end(framer, now_ns, file)
            more = moved or more
            if framer.is_full:
                break  # the next file has its turn when frames are out
        return more

    def changed(self) -> list[Any] | None:
        """Where all stand, for the agent's log, unless it has just that."""
        saved = [
            [
                [file.path, file.device, file.inode],
                {
                    "stream": _stream_fields(file.state.stream),
                    "source": file.source.saved(),
                    "state": file.state.saved(),
                },
            ]
            for file in self._files
        ]
        return None if saved == self._committed else saved

    def committed(self, saved: list[Any]) -> None:
        """The log has it. The files are not ours: nothing of them is given back."""
        self._committed = saved

    def restore(self, saved: Sequence[Any]) -> None:
        """Go on in the files that are still the same."""
        for key, one in saved:
            self._known[key[0], key[1], key[2]] = one

    def close(self) -> None:
        """Let go of the files."""
        for file in self._files:
            file.source.close()
        self._watch.close()

    # --- files ----------------------------------------------------------------------------------

    def _look(self, framer: Framer, now_ns: int) -> None:
        found = self._matching()
        for file in self._files:
            if not file.ended and self._is_over(file, found):
                while self._read_file(framer, now_ns, file):
                    pass
                self._end(framer, now_ns, file)
        known = {(file.path, file.device, file.inode) for file in self._files}
        new = {key: tail for key, tail in found.items() if key not in known}
        if new:
            writers = writers_of({key[1:] for key in new}, self._tails[0].host)
            for key, who in self._identities(new, writers).items():
                with contextlib.suppress(OSError):  # gone again, or not for us to read
                    self._open(key, who, writers.get(key[1:]))

    def _matching(self) -> dict[tuple[str, int, int], Tail]:
        """Path, device and inode of the files changed last."""
        seen = []
        for tail in self._tails:
            for path in tail.paths():
                with contextlib.suppress(OSError):
                    status = os.stat(path)
                    key = (path, status.st_dev, status.st_ino)
                    seen.append((status.st_mtime_ns, key, tail))
        seen.sort(key=lambda one: one[0], reverse=True)
        return {key: tail for _, key, tail in seen[:FILES_MAX]}

    def _is_over(self, file: _File, found: dict[tuple[str, int, int], Tail]) -> bool:
        if (file.path, file.device, file.inode) not in found:
            return True  # rotated or removed
        if file.writer is None or spool.is_alive(file.writer.pid, file.writer.start):
            return False
        return not has_writers(Path(file.path))

    def _identities(
        self, new: dict[tuple[str, int, int], Tail], writers: dict[tuple[int, int], Writer]
    ) -> dict[tuple[str, int, int], tuple[Identity, str]]:
        """Who writes each file, and its channel."""
        told: dict[str, Identity] = {}  # by launcher's folder and attempt
        facts = {key: tail.facts(key[0]) for key, tail in new.items()}
        for key, tail in new.items():
            writer, tree = writers.get(key[1:]), facts[key].tree
            if writer is not None and writer.is_rank and tree is not None:
                told[tree] = writer.identity(tail.host)
        made = {}
        for key, tail in new.items():
            writer, fact = writers.get(key[1:]), facts[key]
            if writer is not None and (writer.is_rank or fact.rank is None):
                who = writer.identity(tail.host)
            else:
                who = _by_path(tail, fact, told.get(fact.tree or ""))
            if tail.rank_from is not None:
                who = replace(who, rank=fact.rank)
            made[key] = (_given(tail, who), fact.channel)
        return made

    def _open(
        self, key: tuple[str, int, int], named: tuple[Identity, str], writer: Writer | None
    ) -> None:
        path, device, inode = key
        saved = self._known.pop(key, None)
        stream = Stream(**saved["stream"]) if saved else _stream(*named, path)
        source = TextSource(Path(path), StreamState(stream), self._masker, is_ours=False)
        if saved is not None and saved["source"][0] <= os.path.getsize(path):
            source.restore(saved["source"])
            source.state.restore(saved["state"])
        self._files.append(_File(path, device, inode, source, writer))
        if writer is not None:
            self._watch.watch(writer.pid)

    # --- lines ----------------------------------------------------------------------------------

    def _read_file(self, framer: Framer, now_ns: int, file: _File) -> bool:
        size, changed_ns = file.source.size()
        if size < file.source.offset:  # truncated: what comes now is another file's
            self._end(framer, now_ns, file)
            self._begin_again(file)
        # The last change is nearer to when its lines were written than our reading is.
        moved = file.source.read(framer, min(now_ns, changed_ns), final=False)
        if moved:
            self._grew_ns = now_ns
        return moved

    def _end(self, framer: Framer, now_ns: int, file: _File) -> None:
        file.source.read(framer, now_ns, final=True)
        code = None
        if file.writer is not None and not spool.is_alive(file.writer.pid, file.writer.start):
            self._watch.settle(file.writer.pid, 0.5)
            code = self._watch.code(file.writer.pid)
        framer.end(file.state, code)
        file.ended = True

    def _begin_again(self, file: _File) -> None:
        stream = replace(file.state.stream, incarnation=spool.new_incarnation())
        file.source.close()
        file.source = TextSource(Path(file.path), StreamState(stream), self._masker, is_ours=False)
        file.ended = False


def _by_path(tail: Tail, fact: PathFacts, told: Identity | None) -> Identity:
    """A path's own rank; else a local rank, beside one of the same launcher whose rank is known."""
    local = fact.local_rank
    if told is not None and told.rank is not None and None not in (told.local_rank, local):
        rank = told.rank - (told.local_rank or 0) + (local or 0)
        return replace(told, rank=rank, local_rank=local)
    folder = fact.tree or os.path.dirname(os.path.abspath(tail.pattern))
    name = os.path.basename(folder.partition("#")[0])
    launch = hashlib.blake2b(folder.partition("#")[0].encode(), digest_size=6).hexdigest()
    host = fact.host or tail.host
    return Identity(tail.tenant, name or "run", launch, fact.attempt, host, fact.rank, local, None)


def _given(tail: Tail, who: Identity) -> Identity:
    return replace(
        who, tenant=tail.tenant, run=tail.run or who.run, launch=tail.launch or who.launch
    )


def _stream(who: Identity, channel: str, path: str) -> Stream:
    stream = spool.stream_of(who, channel, spool.new_incarnation())
    return replace(stream, certified="agent", source=path)


def _stream_fields(stream: Stream) -> dict[str, Any]:
    return {name: getattr(stream, name) for name in stream.__slots__}
