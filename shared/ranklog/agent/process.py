"""A process of the spool while the agent reads it: its sources, its streams, and how far they are."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ranklog.agent.admission import Admission
from ranklog.agent.copies import Copies
from ranklog.agent.framer import TELEMETRY_CHANNEL, Framer
from ranklog.agent.labels import FORMS, Labels
from ranklog.agent.mask import Masker
from ranklog.agent.rows import Row, StreamState
from ranklog.agent.sampling import Sampler
from ranklog.agent.sdk_lines import SdkLines
from ranklog.agent.sdk_source import SdkSource
from ranklog.agent.text_source import TextSource
from ranklog.agent.wal import Place
from ranklog.model.levels import ERROR, INFO, WARNING
from ranklog.produce import spool
from ranklog.produce.rings import forget_folder
from ranklog.produce.spool import ProcessFiles

# The channel of what the agent itself says of a process.
AGENT_CHANNEL = "agent"
_SDK_FILES = (spool.JOURNAL, spool.DEFS, spool.RING)


@dataclass(frozen=True, slots=True)
class Policy:
    """What every process's lines go through."""

    masker: Masker
    admission: Admission
    sampler: Callable[[], Sampler | None] = lambda: None


def _main_channel(files: ProcessFiles) -> str:
    """Where what is said of a process belongs: with definitions alone, a launcher's, to its output."""
    texts = [channel for channel in files.files if channel not in _SDK_FILES]
    has_lines = spool.JOURNAL in files.files or spool.RING in files.files
    return spool.JOURNAL if has_lines or not texts else texts[0]


class SpooledProcess:
    """Reads what a process wrote and gives it to a framer."""

    def __init__(self, folder: Path, files: ProcessFiles, policy: Policy, suffix: str = "") -> None:
        """`suffix` names streams anew where seqs can't be continued. Raises OSError."""
        self.files = files
        self.suffix = suffix
        self.done = False  # all that it wrote is framed, and its streams are ended
        self.end: Place | None = None  # in the log, behind its last lines
        self.is_over = False  # the process has ended
        self.failures, self.failure = 0, ""  # of reading it
        # Of heartbeats: when the last was, when it last said something, and how much it had said.
        self.beat_ns = self.spoke_ns = self.beat_lines = 0
        # Lines that the destination refused: since it began, and not told of yet.
        self.refused = spool.read_refused(folder, files.incarnation)
        self.refused_untold, self.refused_told_ns = 0, 0
        self._folder = folder
        self._streams: dict[str, StreamState] = {}
        self._committed: dict[str, Any] | None = None
        self.sdk: SdkSource | None = None
        self.texts: dict[str, TextSource] = {}
        if any(name in files.files for name in _SDK_FILES):
            lines = SdkLines(
                self.state(_main_channel(files)),
                self.state(TELEMETRY_CHANNEL),
                files.line_metadata,
                policy.masker,
                policy.sampler(),
                policy.admission,
            )
            self.sdk = SdkSource(folder, files, lines)
        for channel, name in files.files.items():
            if channel not in _SDK_FILES:
                copies = Copies.of(folder / files.incarnation, channel)
                self.texts[channel] = TextSource(
                    folder / name,
                    self.state(channel),
                    policy.masker,
                    copies,
                    policy.admission,
                    labels=Labels(files.labels) if files.labels in FORMS else None,
                )

    @property
    def incarnation(self) -> str:
        return self.files.incarnation

    @property
    def streams(self) -> list[StreamState]:
        return list(self._streams.values())

    def state(self, channel: str) -> StreamState:
        """The stream of a channel; its first mention opens it at seq 0."""
        if channel not in self._streams:
            stream = self.files.stream(channel)
            if self.suffix:
                stream = replace(stream, incarnation=f"{stream.incarnation}.{self.suffix}")
            points = channel == TELEMETRY_CHANNEL
            self._streams[channel] = StreamState(stream, points=points)
        return self._streams[channel]

    # --- reading --------------------------------------------------------------------------------

    def read(self, framer: Framer, now_ns: int, is_final: Callable[[str], bool]) -> bool:
        """Move some of what is there; whether there was any. `is_final` by channel: no more comes."""
        more = False
        if self.sdk is not None:
            more = self.sdk.read(framer, now_ns, final=is_final(spool.JOURNAL))
        for channel, source in self.texts.items():
            if not source.state.ended:
                more = source.read(framer, now_ns, final=is_final(channel)) or more
        return more

    def end_streams(
        self, framer: Framer, is_final: Callable[[str], bool], code: int | None
    ) -> bool:
        """End what is final and read to its end; whether all of it is now."""
        for channel, state in self._streams.items():
            if channel in (TELEMETRY_CHANNEL, AGENT_CHANNEL) and state.next_seq == 0:
                state.ended = True
            elif is_final(channel):
                framer.end(state, code)
        return all(state.ended for state in self._streams.values())

    def tell_end(self, framer: Framer, now_ns: int, code: int | None) -> None:
        """One line, in a stream of the agent's, on how the process ended."""
        who = self.files.identity.rank
        parts = [f"{'process' if who is None else 'rank'} {self.files.pid if who is None else who}"]
        level, how = _described(code, self.sdk is not None and self.sdk.closed)
        parts[0] += f" ended: {how}"
        if self.sdk is not None and self.sdk.lines.last_iteration is not None:
            parts.append(f"last iteration {self.sdk.lines.last_iteration}")
        main = self._streams.get(spool.JOURNAL)
        last = (main.next_seq if main else sum(s.next_seq for s in self._streams.values())) - 1
        parts.append("nothing was logged" if last < 0 else f"last seq {last}")
        row = Row(now_ns, [", ".join(parts).encode()], level)
        if self.sdk is not None:
            row.iteration = self.sdk.lines.last_iteration
        framer.add(self.state(AGENT_CHANNEL), row)

    def tell_refused(self, framer: Framer, now_ns: int, reason: str) -> None:
        """One line, in the same stream, on lines that the destination did not take."""
        lines = f"{self.refused_untold} line{'s were' if self.refused_untold > 1 else ' was'}"
        text = f"{lines} refused and not delivered: {reason}"
        framer.add(self.state(AGENT_CHANNEL), Row(now_ns, [text.encode()], WARNING))
        self.refused_untold, self.refused_told_ns = 0, now_ns

    # --- where it stands ------------------------------------------------------------------------

    def saved(self) -> dict[str, Any]:
        """For the agent's log."""
        return {
            "suffix": self.suffix,
            "done": self.done,
            "sdk": self.sdk.saved() if self.sdk else None,
            "texts": {channel: source.saved() for channel, source in self.texts.items()},
            "streams": {channel: state.saved() for channel, state in self._streams.items()},
        }

    def changed(self) -> dict[str, Any] | None:
        """`saved`, unless the log has just that."""
        saved = self.saved()
        return None if saved == self._committed else saved

    def restore(self, saved: dict[str, Any], *, streams: bool) -> None:
        """Go on from there; `streams`: with the same streams, not with new ones."""
        self.done = saved["done"]
        if self.sdk is not None and saved["sdk"] is not None:
            self.sdk.restore(saved["sdk"])
        for channel, source in self.texts.items():
            if channel in saved["texts"]:
                source.restore(saved["texts"][channel], same_stream=streams)
        if streams:
            for channel, state in saved["streams"].items():
                self.state(channel).restore(state)
            self._committed = saved

    def committed(self, saved: dict[str, Any], place: Place) -> None:
        """The log holds this: what it was read from may go."""
        self._committed = saved
        if saved["done"]:
            self.end = place
        if self.sdk is not None:
            self.sdk.free(saved["sdk"])
        for channel, source in self.texts.items():
            source.free(saved["texts"][channel])

    def unlink(self) -> None:
        """Remove the files; the one that announces the process goes first."""
        self.close()
        names = ("process", "acked", "refused", "copies", "exit", "flush")
        paths = [self._folder / f"{self.incarnation}.{name}" for name in names]
        paths += [self._folder / name for name in self.files.files.values()]
        for path in paths:
            path.unlink(missing_ok=True)
        if ring := self.files.files.get(spool.RING):
            forget_folder(Path(ring).parent)

    def close(self) -> None:
        """Let go of the files."""
        if self.sdk is not None:
            self.sdk.close()
        for source in self.texts.values():
            source.close()
        self.sdk, self.texts = None, {}


def _described(code: int | None, closed: bool) -> tuple[int, str]:
    """Level and words for an end."""
    if code is None:
        return (INFO, "closed") if closed else (WARNING, "exit code unknown")
    if code < 0:
        known = {number.value: number.name for number in signal.Signals}
        return ERROR, f"signal {known.get(-code, -code)}"
    return (ERROR if code else INFO), f"exit code {code}"
