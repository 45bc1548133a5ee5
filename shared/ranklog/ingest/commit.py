"""Put a part into the store: segment, hour markers, pointer, then the index, whose PUT is the commit.

What has no index does not exist. The segment's name ends in the hash of its bytes, so a stalled
first attempt can't put other bytes under a committed index; an index that is there already was
committed by an earlier attempt at the same records.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from dataclasses import dataclass

from ranklog.errors import AlreadyExists
from ranklog.layout import keys
from ranklog.layout.segment import SegmentBytes
from ranklog.limits import COMMIT_AGE_S_MAX
from ranklog.model.frame import Frame
from ranklog.model.index import SegmentRef
from ranklog.model.manifest import unpack_piece
from ranklog.model.stream import Stream
from ranklog.store.protocol import Store


@dataclass(frozen=True, slots=True)
class Place:
    """Where a part goes. `hour` None: late, by the day of arrival; `arrival_hour`: when it came."""

    tenant: str
    hour: int | None
    late_day: str
    source: str
    first: str
    last: str
    arrival_hour: int

    def segment_key(self, digest: str) -> str:
        names = (self.source, self.first, self.last, digest)
        return keys.segment_key(self.tenant, self.hour, *names, late_day=self.late_day)

    def index_key(self, kind: str, bounds: tuple[int, int]) -> str:
        name = keys.IndexName(kind, *bounds, self.source, self.first, self.last)
        return keys.index_key(self.tenant, self.hour, name, late_day=self.late_day)

    def marker_key(self, run: str, launch: str) -> str:
        return keys.hour_marker_key(self.tenant, run, launch, self.hour, late_day=self.late_day)


def put_segment(
    store: Store, place: Place, segment: SegmentBytes, *, again: bool = False
) -> SegmentRef:
    """The segment is in the store when this returns; `again`: its age is to be new.

    One that is there already is an earlier attempt's, of any age: it could be deleted as an orphan
    before the index is there, and is put again.
    """
    key = place.segment_key(segment.hash)
    try:
        etag = store.put(key, segment.data, if_absent=not again)
    except AlreadyExists:
        etag = store.put(key, segment.data)
    return SegmentRef(key, len(segment.data), segment.hash, etag)


def put_markers(store: Store, place: Place, launches: Iterable[tuple[str, str]]) -> None:
    """Say that these (run, launch) have lines in this hour, before a reader can miss them."""
    for run, launch in sorted(set(launches)):
        with contextlib.suppress(AlreadyExists):
            store.put(place.marker_key(run, launch), b"", if_absent=True)


def put_manifests(store: Store, frames: Iterable[Frame]) -> None:
    """What processes say of their runs, before the index that names their streams is there."""
    for frame in frames:
        for entry in frame.streams:
            for data in entry.manifests:
                _put_manifest(store, entry.stream, unpack_piece(data))


def _put_manifest(store: Store, stream: Stream, text: bytes) -> None:
    digest = keys.hash_segment(text)
    name = keys.ManifestName(stream.attempt, stream.rank, stream.host or "", digest)
    with contextlib.suppress(AlreadyExists):
        key = keys.manifest_key(stream.tenant, stream.run, stream.launch, name)
        store.put(key, text, if_absent=True)


def put_pointer(store: Store, place: Place, index: str) -> None:
    """Lead who follows the hours of arrival to an index that lies elsewhere, before it is there."""
    if place.hour != place.arrival_hour:
        with contextlib.suppress(AlreadyExists):
            key = keys.arrival_key(place.tenant, place.arrival_hour, index)
            store.put(key, b"", if_absent=True)


def put_index(store: Store, key: str, data: bytes) -> bool:
    """Commit; whether this call did it."""
    try:
        store.put(key, data, if_absent=True)
    except AlreadyExists:
        return False
    return True


def is_stale(started_s: float) -> bool:
    """Whether what was put at `time.monotonic()` = started_s could soon be taken for an orphan."""
    return time.monotonic() - started_s > COMMIT_AGE_S_MAX
