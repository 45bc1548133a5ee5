"""Schedules in which a frame must prove its tenant: keys change while frames wait, and a forger is at work.

The first key is rotated, and revoked while a host has frames that it tried to send with it. Among the
frames of the job come some that are none: they are set aside with their reason, and hold up nobody.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

from ranklog.access.key_text import KeyText, parse_ingest_key
from ranklog.access.manage import create_ingest_key, revoke_key
from ranklog.access.policy import Policy, Quotas, write_policy
from ranklog.agent.framer import Framer
from ranklog.agent.rows import Row, StreamState
from ranklog.errors import RanklogError
from ranklog.ingest.quarantine import list_entries
from ranklog.model.record import Record
from ranklog.model.stream import Stream
from ranklog.stream.frames import MAGIC, VERSION, frame_is_sealed_by, seal_frame
from tests.matrix import faults as f
from tests.matrix.faults import Injection, faults_of
from tests.matrix.machine import TENANT
from tests.matrix.truth import BUCKETS, Truth

if TYPE_CHECKING:
    from tests.matrix.actors import Site

_STEP = "quarantine.put"
_FORGER = f"{0xE:016x}"
_SECRET = b"the forger's own secret, 32 bytes"


def is_sealed(seed: int) -> bool:
    """Whether the schedule is one of them: seven of sixteen."""
    return seed % 16 > 8


def injection_of(seed: int) -> Injection:
    """What happens to ingest where it sets a frame aside."""
    every = faults_of(f.INGEST, _STEP)
    return Injection(f.INGEST, _STEP, every[seed // 16 % len(every)], seed % 3)


@dataclass(slots=True)
class Keys:
    """Of the tenant, in the store and in the file that agents read. `good`: those that vouch for a frame."""

    site: Site
    good: list[KeyText] = field(default_factory=list)
    refused: set[tuple[str, str]] = field(default_factory=set)  # source and sequence of bad frames
    sent: Counter[str] = field(default_factory=Counter)  # frames that are none, by reason

    def begin(self, quotas: Quotas) -> None:
        """Frames need a MAC from now on, and have a quota."""
        policy = Policy(signed_required=True, quotas=quotas)
        write_policy(self.site.sure_store(), TENANT, policy)
        self.rotate()

    def rotate(self) -> None:
        """A new key; those before it vouch for frames still."""
        now_ns = self.site.machine.clock()
        text, _ = create_ingest_key(self.site.sure_store(), TENANT, now_ns=now_ns)
        self.good.append(parse_ingest_key(text))
        self.site.key_file.write_text(text)

    def revoke(self) -> None:
        """The oldest vouches for nothing any more."""
        now_ns, oldest = self.site.machine.clock(), self.good.pop(0)
        revoke_key(self.site.sure_store(), TENANT, oldest.key_id, now_ns=now_ns)

    def is_proven(self, record: Record) -> bool:
        """Whether it is a frame of the tenant's."""
        try:
            return any(frame_is_sealed_by(record.data, key.secret) for key in self.good)
        except RanklogError:
            return False

    def poison(self, victim: Stream, rng: Random) -> None:
        """Somebody puts into the Kinesis stream what is no frame of the tenant's, lines of a rank of its job among
        it."""
        framer, now = Framer(_FORGER), self.site.machine.clock()
        state = StreamState(victim)
        for number in range(4 * BUCKETS):
            framer.add(state, Row(now, (b"matrix forged in b%02dx" % (number % BUCKETS),)))
        [frame], _ = framer.cut()
        newer = bytearray(frame.data)
        newer[len(MAGIC)] = VERSION + 1
        for reason, data in {
            "malformed": rng.randbytes(200),
            "unknown_version": bytes(newer),
            "unsigned": frame.data,
            "forged": seal_frame(frame.data, _SECRET),
        }.items():
            self.site.machine.sure_kinesis.put_record(
                StreamName=self.site.stream_name, PartitionKey=f"{rng.random()}", Data=data
            )
            self.sent[reason] += 1

    def check(self, truth: Truth) -> None:
        """Each bad frame is kept with its reason, once; of keys that were revoked since, old batches, too."""
        store = self.site.sure_store()
        kept = [e for tenant in (TENANT, None) for e in list_entries(store, tenant)]
        found = Counter(entry.code for entry in kept)
        truth.note("broken", int(not self.refused), "no bad frame came")
        missing = self.refused - {(entry.source, entry.sequence) for entry in kept}
        truth.note("lost", len(missing), f"set aside and not kept: {sorted(missing)[:3]}")
        told = f"{dict(found)} in quarantine, sent {dict(self.sent)}"
        more = {code: found[code] for code in found if code != "forged"}
        less = {code: count for code, count in self.sent.items() if code != "forged"}
        wrong = more != less or found["forged"] < self.sent["forged"]
        truth.note("broken", int(wrong), told)
