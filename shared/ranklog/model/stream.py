"""A stream is one incarnation of one log file; its id is a hash, so that nobody hands ids out."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

DENSE = "dense"  # sequence numbers have no holes: gaps are exact
ARRIVAL = "arrival"  # a foreign agent's: no gap claims


@dataclass(frozen=True, slots=True)
class Stream:
    """One source of lines. `rank` is the process's; a line's rank is its context's.

    `host`, `rank` and `local_rank` are None where the source does not say. (run, attempt, rank,
    channel) is the stream's name; several streams can bear one name (forked workers, a second
    `init`, a requeue), and `incarnation` tells them apart.
    """

    tenant: str
    run: str
    launch: str
    attempt: int
    host: str | None
    rank: int | None
    local_rank: int | None
    channel: str
    incarnation: str
    kind: str = DENSE
    certified: str = "producer"  # producer | agent | import | none
    copy: bool = False  # a console copy of per-rank files: kept, left out of analyses
    world_size: int | None = None
    source: str | None = None  # path of an imported file, as the user would open it

    @property
    def stream_id(self) -> str:
        """32 hex digits: blake2b-128 over the length-prefixed identity, (tenant … incarnation).

        `local_rank` and what follows `incarnation` describe the stream and are no part of it.
        """
        digest = hashlib.blake2b(digest_size=16, person=b"ranklog.stream")
        for part in (
            self.tenant,
            self.run,
            self.launch,
            str(self.attempt),
            self.host,
            None if self.rank is None else str(self.rank),
            self.channel,
            self.incarnation,
        ):
            encoded = b"" if part is None else part.encode("utf-8", "surrogatepass")
            digest.update((b"-" if part is None else b"%d:" % len(encoded)) + encoded)
        return digest.hexdigest()

    @property
    def run_id(self) -> str:
        """`name@launch`."""
        return f"{self.run}@{self.launch}"
