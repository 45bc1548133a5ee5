"""How long the variables of each template get, placeholder by placeholder.

Shapes: n rows in segment order, `order` I64[n] indices into `rows`; a template with k placeholders has
rows of k variables each.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ranklog.layout.rows import I32, I64, Rows
from ranklog.layout.tokens import Extracted
from ranklog.layout.tokens_pure import PLACEHOLDER

# Runs of fewer rows are looked at together: numpy takes longer to begin than to look at them.
_ROWS_ALONE_MIN = 16


def longest_variables(
    rows: Rows, order: I64, tids: I32, extracted: Extracted, templates: Sequence[str]
) -> bytes:
    """uint8 per placeholder of every template, by tid: the longest token there, at most 255."""
    counts = np.array([template.count(PLACEHOLDER) for template in templates], np.int64)
    places = np.cumsum(counts) - counts
    found = np.zeros(int(counts.sum()), np.uint8)
    first = np.cumsum(extracted.variables, dtype=np.int64) - extracted.variables
    if rows.has_envelopes:
        first = first[1::2]
    begins = first[order]
    starts = np.flatnonzero(np.diff(tids, prepend=-1))
    sizes = np.diff(np.append(starts, len(tids)))
    alone = (sizes >= _ROWS_ALONE_MIN) & (counts[tids[starts]] > 0)
    for start, size in zip(starts[alone].tolist(), sizes[alone].tolist(), strict=True):
        tid = int(tids[start])
        count, place = int(counts[tid]), int(places[tid])
        # [count, size], so that the longest are sought along the rows
        at = begins[start : start + size] + np.arange(count)[:, None]
        longest = extracted.lengths.take(at).max(axis=1)
        np.maximum(found[place : place + count], longest, out=found[place : place + count])
    _few(found, begins, counts, places, tids, np.repeat(sizes < _ROWS_ALONE_MIN, sizes), extracted)
    return found.tobytes()


def _few(
    found: npt.NDArray[np.uint8],
    begins: I64,
    counts: I64,
    places: I64,
    tids: I32,
    few: npt.NDArray[np.bool_],
    extracted: Extracted,
) -> None:
    """The same for the rows `few`, variable by variable."""
    chosen = tids[few]
    per_row = counts[chosen]
    within = np.arange(int(per_row.sum())) - np.repeat(np.cumsum(per_row) - per_row, per_row)
    at = np.repeat(begins[few], per_row) + within
    np.maximum.at(found, np.repeat(places[chosen], per_row) + within, extracted.lengths.take(at))
