"""Launches that a question names and of which nothing was read: whether they said something, nobody told.

Of a range of hours the rest of the launch tells: a stream that has ended, or is fenced or spoke later, said
nothing there. A launch of which no index is known at all has its first lines on their way, or lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ranklog.answer.completeness import Window, judge_streams, with_skipped
from ranklog.answer.deleted import Gone
from ranklog.client.catalog import Kinds, Launch
from ranklog.model.answer import Completeness
from ranklog.model.index import StreamEntry
from ranklog.model.tombstone import Tombstones

if TYPE_CHECKING:
    from ranklog.client.reader import Reader


@dataclass(frozen=True, slots=True)
class Unheard:
    """Members of completeness that such launches add."""

    behind: list[dict[str, Any]] = field(default_factory=list)
    gaps: list[dict[str, Any]] = field(default_factory=list)
    absent: list[int] = field(default_factory=list)

    def joined(self, judged: Completeness) -> Completeness:
        """What was judged of streams, with them; the same object where there are none."""
        if not (self.behind or self.gaps or self.absent):
            return judged
        more = replace(
            judged,
            behind=[*judged.behind, *self.behind],
            gaps=[*judged.gaps, *self.gaps],
            absent=sorted({*judged.absent, *self.absent}),
        )
        return with_skipped(more, judged.skipped_tasks)


def find_unheard(
    reader: Reader,
    launches: Sequence[Launch],
    read: Iterable[str],
    window: Window,
    tombstones: Tombstones,
    kinds: Kinds,
) -> Unheard:
    """What is missing, absent or behind of the launches that are not among the run_ids `read`. Raises
    what the store raises."""
    found, known = Unheard(), set(read)
    for launch in launches:
        if launch.run_id in known or tombstones.hides_launch(launch.run, launch.launch):
            continue
        gone = Gone(tombstones, frozenset([launch.run_id]))
        entries, failed = _rest(reader, launch, window, kinds)
        rest = judge_streams(entries, window, gone=gone)
        found.behind.extend(rest.behind)
        if failed or not (entries or gone.expired(Window())):
            found.behind.append(_nothing_of(launch))
        found.gaps.extend(rest.gaps)
        found.absent.extend(rest.absent)
    return found


def _rest(
    reader: Reader, launch: Launch, window: Window, kinds: Kinds
) -> tuple[list[StreamEntry], bool]:
    """What other hours say of the launch's streams; whether some of it could not be read."""
    if window.whole:
        return [], False
    loaded = reader.indexes.load(reader.catalog.list_launches([launch], kinds=kinds).keys)
    entries = [
        entry
        for index in loaded.indexes
        for entry in index.head.streams
        if entry.stream.run_id == launch.run_id
    ]
    return entries, bool(loaded.failed)


def _nothing_of(launch: Launch) -> dict[str, Any]:
    """As a stream that is behind, and has no name yet."""
    return {"stream": "", "rank": None, "run_id": launch.run_id, "seq": 0, "ts_ns": None}
