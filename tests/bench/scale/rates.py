"""What one run measures of ranklog itself: CPU and bytes by size, requests by kind. No time of a network
is in it; those are AWS's (aws.py) or of the local stack (local.py)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tests.bench.scale.times import Curve, Linear


@dataclass(frozen=True, slots=True)
class QueryRate:
    """One kind of question, warm. Seconds are CPU of one core.

    `scan_s`: a scanned segment by its bytes of text; `hits`: matches a line, `once`: there is one
    in all; `gets` and `read_bytes`: of a scanned segment, the latter by its bytes of text; `root_s`: what
    the root does beside planning, whatever the scope (parse, merge, render).
    """

    name: str
    query: str
    root_s: float
    plan_s: Linear
    hits: float
    once: bool
    scan_s: Linear
    gets: float
    read_bytes: Linear

    def scanned(self, segments: float, lines: float) -> float:
        """Of so many segments with so many lines each, those that hold a match, by chance."""
        if self.once:
            return min(1.0, segments)
        return segments * -math.expm1(-self.hits * lines)


@dataclass(frozen=True, slots=True)
class Rates:
    """Sizes are in lines, unless they say bytes; CPU seconds are of one core of `machine`.

    `wire`: bytes a line in a frame by the frame's lines; `ingest_s`: a batch by its lines, one tenant and
    hour; `part_s`: what another tenant in the batch adds; `segment` and `index`: stored bytes a line by the
    lines of a segment, `merged_*` the same after compaction of `merged_lines`; `merge_s`: a merge by its
    lines; `puts`: PUTs of a part; `open_s`: reading an index by its bytes; `lists`: LISTs of a question
    over one hour.
    """

    machine: str
    line_bytes: float
    wire: Curve
    ingest_s: Linear
    part_s: float
    segment: Curve
    index: Curve
    puts: float
    merge_s: Linear
    merged_lines: float
    merged_segment: float
    merged_index: float
    open_s: Linear
    lists: float
    queries: Mapping[str, QueryRate]
    import_s: Mapping[str, float]

    @property
    def stored_ratio(self) -> float:
        """Stored bytes after compaction by bytes of text."""
        return (self.merged_segment + self.merged_index) / self.line_bytes

    def to_json(self) -> dict[str, Any]:
        """For the file of figures."""
        return asdict(self)
