"""The host's own logs as streams of the run whose ranks are on the host.

Kernel and scheduler don't know of runs: their lines go to the run that announced itself last, from
its first process on; before there is one nothing is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ranklog.agent.framer import Framer
from ranklog.agent.host_logs import HostLog, HostSource, Missing, open_host_logs
from ranklog.agent.mask import Masker
from ranklog.agent.rows import StreamState
from ranklog.model.stream import Stream
from ranklog.produce.spool import ProcessFiles, new_incarnation

Opener = Callable[..., tuple[list[HostSource], list[Missing]]]


class HostStreams:
    """`follow` whoever came last, `read` in every look, `saved` into the agent's log."""

    def __init__(
        self,
        logs: Sequence[HostLog],
        masker: Masker,
        environ: Mapping[str, str],
        opener: Opener = open_host_logs,
    ) -> None:
        self.missing: list[Missing] = []
        self.sources: dict[str, HostSource] = {}
        self._logs = logs
        self._masker = masker
        self._environ = environ
        self._opener = opener
        self._owner: list[Any] | None = None
        self._committed: dict[str, Any] | None = None

    @property
    def streams(self) -> list[StreamState]:
        return [source.state for source in self.sources.values()]

    def follow(self, files: ProcessFiles, framer: Framer, now_ns: int) -> None:
        """A process came: from now on lines are of its launch, in streams of their own."""
        who = files.identity
        owner = [who.tenant, who.run, who.launch, who.attempt, who.host]
        if self._owner is not None and owner == self._owner[:5]:
            return
        self._owner = [*owner, new_incarnation()]
        if not self.sources:
            self._open(now_ns)
        else:
            for channel, source in self.sources.items():
                framer.end(source.state, None)
                source.state = self._state(channel)

    def read(self, framer: Framer, now_ns: int, *, final: bool) -> bool:
        """Move some of what is there; whether there was any."""
        more = False
        for source in self.sources.values():
            more = source.read(framer, now_ns, final=final) or more
        return more

    def end(self, framer: Framer) -> None:
        """Nobody is there any more whose lines they could be."""
        for source in self.sources.values():
            framer.end(source.state, None)
            source.close()
        self.sources, self._owner = {}, None

    def changed(self) -> dict[str, Any] | None:
        """Where all stand, for the agent's log, unless it has just that."""
        saved = {
            "owner": self._owner,
            "sources": {channel: one.saved() for channel, one in self.sources.items()},
            "streams": {channel: one.state.saved() for channel, one in self.sources.items()},
        }
        return None if saved == self._committed else saved

    def committed(self, saved: dict[str, Any]) -> None:
        """The log has it."""
        self._committed = saved
        for channel, source in self.sources.items():
            if channel in saved["sources"]:
                source.free(saved["sources"][channel])

    def restore(self, saved: Mapping[str, Any], now_ns: int) -> None:
        """Go on where an agent before stood."""
        self._owner = saved["owner"]
        if self._owner is None:
            return
        self._open(now_ns)
        for channel, source in self.sources.items():
            if channel in saved["sources"]:
                source.restore(saved["sources"][channel])
                source.state.restore(saved["streams"][channel])

    def close(self) -> None:
        """Let go of what is read."""
        for source in self.sources.values():
            source.close()

    def _open(self, now_ns: int) -> None:
        found, self.missing = self._opener(
            self._logs, self._state, self._masker, self._environ, now_ns
        )
        self.sources = {source.state.stream.channel: source for source in found}

    def _state(self, channel: str) -> StreamState:
        assert self._owner is not None
        tenant, run, launch, attempt, host, own = self._owner
        stream = Stream(tenant, run, launch, attempt, host, None, None, channel, own)
        return StreamState(replace(stream, certified="agent"))
