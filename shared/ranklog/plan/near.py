"""Near sets on their way to a scan: scope keys become small integers, per segment and per stream."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from ranklog.model import query as q
from ranklog.model.index import StreamEntry
from ranklog.plan.overlap import union
from ranklog.plan.tasks import NearRows


def match_intervals(near: q.Near, positions: Iterable[int]) -> list[tuple[int, int]]:
    """Half-open intervals on the axis in which rows lie near these matches."""
    before = 0 if near.side == "after" else near.distance
    after = 0 if near.side == "before" else near.distance
    return union([(at - before, at + after + 1) for at in positions])


def scope_key(scope: str, run_id: str, host: str | None, rank: int | None) -> str:
    """The group of a near set that a row belongs to; a row without a rank has its host's."""
    if scope == "any":
        return json.dumps([run_id])
    if scope == "host":
        return json.dumps([run_id, host])
    if rank is None:
        return json.dumps([run_id, None, host])
    return json.dumps([run_id, rank])


class NearKeys:
    """Numbers for runs and hosts, the same in every segment of a plan."""

    def __init__(self, sets: Sequence[q.NearSet], entries: Iterable[StreamEntry]) -> None:
        self._sets = sets
        self._runs: dict[str, int] = {}
        self._hosts: dict[tuple[str, str | None], int] = {}
        self._streams: dict[str, int] = {}
        self._ranks: dict[tuple[str, str | None], set[int]] = {}
        for entry in entries if sets else ():
            stream = entry.stream
            ranks = {rank for rank, _ in entry.ranks if rank >= 0}
            ranks |= set() if stream.rank is None else {stream.rank}
            self._ranks.setdefault((stream.run_id, stream.host), set()).update(ranks)

    def _run(self, run_id: str) -> int:
        return self._runs.setdefault(run_id, len(self._runs))

    def _host(self, run_id: str, host: str | None) -> int:
        return self._hosts.setdefault((run_id, host), len(self._hosts))

    def _stream(self, stream_id: str) -> int:
        return self._streams.setdefault(stream_id, len(self._streams))

    def of_streams(self, entries: Sequence[StreamEntry]) -> tuple[tuple[int, ...], ...]:
        """Per near set, the key of each stream of a segment."""
        streams = [entry.stream for entry in entries]
        by_run = tuple(self._run(stream.run_id) for stream in streams) if self._sets else ()
        by_stream = {
            "host": lambda: self.hosts(entries),
            "stream": lambda: tuple(self._stream(entry.stream_id) for entry in entries),
        }
        return tuple(by_stream.get(near.scope, lambda: by_run)() for near in self._sets)

    def hosts(self, entries: Sequence[StreamEntry]) -> tuple[int, ...]:
        """Each stream's host."""
        return tuple(self._host(e.stream.run_id, e.stream.host) for e in entries)

    def rows(self) -> tuple[NearRows, ...]:
        """The sets as columns. A host's lines without a rank look at all its ranks' intervals."""
        return tuple(self._rows(near) for near in self._sets)

    def _rows(self, near: q.NearSet) -> NearRows:
        found: dict[tuple[int, int], list[tuple[int, int]]] = {}
        groups = {tuple(json.loads(key)): list(spans) for key, spans in near.groups}
        for key, spans in groups.items():
            if near.scope == "any":
                found.setdefault((self._run(key[0]), 0), []).extend(spans)
            elif near.scope == "host":
                found.setdefault((self._host(key[0], key[1]), 0), []).extend(spans)
            elif near.scope == "stream":
                found.setdefault((self._stream(key[0]), 0), []).extend(spans)
            elif len(key) == 2:
                found.setdefault((self._run(key[0]), key[1]), []).extend(spans)
        if near.scope == "rank":
            self._add_hosts(groups, found)
        flat = [
            (key, rank, low, high)
            for (key, rank), spans in found.items()
            for low, high in union(spans)
        ]
        columns = [tuple(column) for column in zip(*flat, strict=True)] or [()] * 4
        return NearRows(near.axis, near.scope == "rank", *columns)

    def _add_hosts(
        self,
        groups: dict[tuple[object, ...], list[tuple[int, int]]],
        found: dict[tuple[int, int], list[tuple[int, int]]],
    ) -> None:
        """A line of a host belongs to all its ranks, as a match and as a row."""
        for (run_id, host), ranks in self._ranks.items():
            run, number = self._run(run_id), self._host(run_id, host)
            own = groups.get((run_id, None, host), [])
            everyone = list(own)
            for rank in sorted(ranks):
                found.setdefault((run, rank), []).extend(own)
                everyone += groups.get((run_id, rank), [])
            found.setdefault((run, -2 - number), []).extend(everyone)
