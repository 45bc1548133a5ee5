"""All-reduce over loopback sockets: rank 0 gathers, averages and sends back."""

from __future__ import annotations

import os
import time
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path

CONNECT_S = 20.0
ANSWER_S = 20.0


class CollectiveError(RuntimeError):
    """A peer is gone or does not answer."""


class AllReduce:
    """The group of all ranks; made by each of them at once. Rank 0 writes its port to `meeting`."""

    def __init__(self, rank: int, world_size: int, meeting: Path) -> None:
        self._rank = rank
        self._peers: dict[int, Connection] = {}
        if rank == 0:
            self._gather_peers(world_size, meeting)
        else:
            self._peers[0] = _connect(meeting)
            self._peers[0].send(rank)

    def mean(self, number: int, values: list[float]) -> list[float]:
        """The mean of all ranks' values, on every rank. `number` names the call in errors."""
        if self._rank != 0:
            self._send(number, 0, values)
            return self._receive(number, 0)
        total = list(values)
        for peer in sorted(self._peers):
            theirs = self._receive(number, peer)
            total = [mine + other for mine, other in zip(total, theirs, strict=True)]
        mean = [value / (len(self._peers) + 1) for value in total]
        for peer in self._peers:
            self._send(number, peer, mean)
        return mean

    def close(self) -> None:
        for connection in self._peers.values():
            connection.close()

    def _gather_peers(self, world_size: int, meeting: Path) -> None:
        with Listener(("127.0.0.1", 0), backlog=world_size) as listener:
            partial = meeting.with_suffix(".partial")
            partial.write_text(str(listener.address[1]))
            partial.rename(meeting)
            while len(self._peers) < world_size - 1:
                connection = listener.accept()
                self._peers[connection.recv()] = connection

    def _send(self, number: int, peer: int, values: list[float]) -> None:
        try:
            self._peers[peer].send(values)
        except OSError as error:
            raise CollectiveError(f"all-reduce {number}: rank {peer} is gone: {error}") from error

    def _receive(self, number: int, peer: int) -> list[float]:
        try:
            if not self._peers[peer].poll(ANSWER_S):
                raise CollectiveError(
                    f"all-reduce {number}: no answer of rank {peer}, {ANSWER_S} s"
                )
            values: list[float] = self._peers[peer].recv()
        except (EOFError, OSError) as error:
            raise CollectiveError(
                f"all-reduce {number}: connection closed by rank {peer}"
            ) from error
        return values


def _connect(meeting: Path) -> Connection:
    deadline = time.monotonic() + CONNECT_S
    while time.monotonic() < deadline:
        if meeting.exists():
            return Client(("127.0.0.1", int(meeting.read_text())))
        time.sleep(0.01)
    raise CollectiveError(f"rank 0 (parent {os.getppid()}) did not open {meeting.name}")
