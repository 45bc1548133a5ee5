"""Whose lines a merge keeps where segments hold different ones of one number, and that the new index says so.

What is kept is what a reader of the single segments would have shown (`plan.overlap`): readers before and
after the merge see the same line.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from ranklog.compact.streams import Streams
from ranklog.layout.claims import (
    Claim,
    Claims,
    are_rivals,
    claims_by_stream,
    joined,
    layers,
    rival_streams,
    smallest,
)
from ranklog.layout.rows import StreamRows
from ranklog.model.index import Contested, StreamEntry
from ranklog.plan.overlap import Overlaps, overlaps

# What lies in a range of numbers: a row and whose it is, a frame that claims it, a merge's word.
_ROW, _FRAME, _SAID = range(3)


class Contest:
    """What the segments of a merge have in common."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._claims = [Claims(head) for head in streams.heads]
        tables: dict[int, Sequence[StreamEntry]] = {
            number: head.streams for number, head in enumerate(streams.heads)
        }
        self._found: Overlaps = overlaps(tables, lambda i, entry: self._claims[i].of(entry))

    def losers(self, rows: StreamRows) -> npt.NDArray[np.bool_]:
        """bool[n]: rows that another segment answers for."""
        lost = np.zeros(len(rows), np.bool_)
        starts = np.cumsum([0, *self._streams.rows])
        for number, skipped in self._found.skips.items():
            part = slice(int(starts[number]), int(starts[number + 1]))
            stream, seq, entries = (
                rows.stream[part],
                rows.seq[part],
                self._streams.heads[number].streams,
            )
            for position, first, end in skipped:
                place = self._streams.places[entries[position].stream_id]
                lost[part] |= (stream == place) & (first <= seq) & (seq < end)
        return lost

    def contested(self) -> tuple[Contested, ...]:
        """What the index of the merge is to say, as its frames alone would not tell whose a row is."""
        heads = self._streams.heads
        frames = tuple(self._streams.frames)
        ids = rival_streams(frames) | {one.stream_id for head in heads for one in head.contested}
        ids |= {
            heads[number].streams[position].stream_id
            for number, skipped in self._found.skips.items()
            for position, _, _ in skipped
        }
        if not ids:
            return ()
        claimed = claims_by_stream(frames, ids)
        found: list[Contested] = []
        for stream_id in ids:
            found += self._of_stream(stream_id, claimed.get(stream_id, ()))
        return joined(found)

    def _of_stream(self, stream_id: str, claimed: Iterable[Claim]) -> Iterable[Contested]:
        pieces = [(claim.first, claim.end, (_FRAME, claim)) for claim in claimed]
        for head, claims in zip(self._streams.heads, self._claims, strict=True):
            for entry in head.streams:
                if entry.stream_id == stream_id:
                    own = claims.of(entry)
                    pieces += [(claim.first, claim.end, (_ROW, claim)) for claim in own]
            pieces += [
                (one.first, one.end, (_SAID, Claim(one.first, one.end, one.frame, one.frame)))
                for one in head.contested
                if one.stream_id == stream_id
            ]
        for first, end, there in layers(pieces):
            frame = _told(there)
            if frame is not None:
                yield Contested(stream_id, first, end, frame)


def _told(there: Sequence[tuple[int, Claim]]) -> str | None:
    """Whose the row is, where the frames of the merge would say another or cannot agree."""
    rows, frames, said = (
        [claim for kind, claim in there if kind == wanted] for wanted in (_ROW, _FRAME, _SAID)
    )
    if not rows:
        return smallest(said).frame if said else None
    owner = smallest(rows).frame
    derived = smallest(frames).frame if frames else ""
    return owner if said or owner != derived or are_rivals(frames) else None
