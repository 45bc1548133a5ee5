"""Templates of a segment: which of them get an id, and the id of each row.

Shapes: n rows of the segment, in the order given; ids I32[n]. Id 0 stands for every text: lines
with a NUL or over LINE_ANALYSED_BYTES_MAX, templates over TEMPLATE_BYTES_MAX, and the rarest once
the dictionary is full. Other ids are alphabetical, so that equal dictionaries give equal segments.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ranklog.layout.rows import I32, I64, Rows
from ranklog.layout.tokens import Extracted
from ranklog.layout.tokens_pure import template_of
from ranklog.limits import (
    ENVELOPES_PER_SEGMENT_MAX,
    LINE_ANALYSED_BYTES_MAX,
    TEMPLATE_BYTES_MAX,
    TEMPLATES_BYTES_MAX,
    TEMPLATES_PER_SEGMENT_MAX,
)

U64 = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class TemplateIds:
    """`ids` I32[n] into `templates`; templates[0] is ""."""

    ids: I32
    templates: tuple[str, ...]


def factorize(values: npt.NDArray[np.generic]) -> tuple[I64, npt.NDArray[np.generic]]:
    """(code of each value, distinct values in order of first appearance)."""
    encoded = pa.array(values).dictionary_encode()
    return (
        encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64),
        encoded.dictionary.to_numpy(zero_copy_only=False),
    )


def number_templates(rows: Rows, hashes: U64, opaque: npt.NDArray[np.bool_]) -> TemplateIds:
    """Ids of all rows; `hashes` of their bodies."""
    codes, distinct = factorize(hashes)
    count = len(distinct)
    # A row that shows what the template is: the first.
    witness = np.empty(count, np.int64)
    witness[codes[::-1]] = np.arange(len(codes))[::-1]
    counts = np.bincount(codes, minlength=count)
    order = np.lexsort((distinct, -counts))  # the most frequent first; ties by hash
    order = order[~opaque[witness[order]]]
    texts: dict[int, str] = {}
    size = 0
    for code in order[:TEMPLATES_PER_SEGMENT_MAX].tolist():
        template = _template_at(rows, int(witness[code]))
        if template is None:
            continue
        size += len(template.encode()) + 1
        if size > TEMPLATES_BYTES_MAX:
            break
        texts[code] = template
    return _numbered(codes, count, texts)


def renumber(numbered: TemplateIds, chosen: I64) -> TemplateIds:
    """The same for some of the rows: ids of templates that they have."""
    ids = numbered.ids[chosen]
    used = np.bincount(ids, minlength=len(numbered.templates)) > 0
    used[0] = True
    place = np.cumsum(used, dtype=np.int32) - np.int32(1)
    return TemplateIds(
        place[ids], tuple(numbered.templates[tid] for tid in np.flatnonzero(used).tolist())
    )


def _numbered(codes: I64, count: int, texts: dict[int, str]) -> TemplateIds:
    ordered = sorted(set(texts.values()))
    place = {template: tid for tid, template in enumerate(ordered, 1)}
    tid_of_code = np.zeros(count, np.int32)
    tid_of_code[list(texts)] = [place[template] for template in texts.values()]
    return TemplateIds(tid_of_code[codes], ("", *ordered))


def _template_at(rows: Rows, row: int) -> str | None:
    start, end = int(rows.offsets[row]) + int(rows.body_at[row]), int(rows.offsets[row + 1])
    template = template_of(rows.text[start:end].tobytes().decode())
    return template if len(template.encode()) <= TEMPLATE_BYTES_MAX else None


def opaque_rows(rows: Rows) -> npt.NDArray[np.bool_]:
    """Rows whose template says nothing: a NUL can't be told from the placeholder; or too long."""
    found = long_rows(rows)
    if len(rows.text) and not rows.text.all():
        at = np.flatnonzero(rows.text == 0)
        found[np.searchsorted(rows.offsets, at, "right") - 1] = True
    return found


def long_rows(rows: Rows) -> npt.NDArray[np.bool_]:
    """Rows whose tokens were not looked at."""
    return np.diff(rows.offsets) > LINE_ANALYSED_BYTES_MAX


def envelope_templates(
    rows: Rows, chosen: I64, extracted: Extracted, opaque: npt.NDArray[np.bool_]
) -> tuple[str, ...] | None:
    """Distinct templates of the envelopes, sorted; None where they prove nothing (see IndexHead)."""
    if not rows.has_envelopes:
        return ("",)
    codes, distinct = factorize(extracted.hashes[::2][chosen])
    if len(distinct) > ENVELOPES_PER_SEGMENT_MAX or opaque[chosen].any():
        return None
    witness = np.empty(len(distinct), np.int64)
    witness[codes[::-1]] = chosen[::-1]
    found = set()
    for row in witness.tolist():
        start = int(rows.offsets[row])
        text = rows.text[start : start + int(rows.body_at[row])].tobytes().decode()
        found.add(template_of(text))
    # The last character says whether a token may go on into the body. One template holds envelopes
    # that end alike: a variable at the end is a placeholder.
    if any(
        text and (text[-1] == "\0" or (text[-1].isascii() and text[-1].isalnum())) for text in found
    ):
        return None
    return tuple(sorted(found))
