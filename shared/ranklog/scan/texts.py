"""Which texts hold a literal or match a regex, by Arrow's RE2.

RE2 finds a pattern that begins with a literal by looking for its first byte: four times as fast as
Arrow's match_substring, and as a pattern that has its literal further on. So a literal that every match
holds is looked for first, and the pattern in the texts that have it.

Shapes: texts, an Arrow array of n strings without nulls; a mask is bool[n].
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow.compute as pc

from ranklog.plan.literals import AllOf, Literal, required_literals
from ranklog.plan.typed import escape_re2
from ranklog.scan.arrays import flags, indices
from ranklog.scan.fields import regex
from ranklog.scan.numeric import Mask

_SHARE_MAX = 0.25
_SAMPLE = 256
# So few texts are looked through sooner than RE2 has read a pattern.
_FEW = 16


def literal_mask(texts: Any, literal: str) -> Mask:
    """Texts that contain the literal."""
    if len(texts) <= _FEW:
        return np.array([literal in text for text in texts.to_pylist()], np.bool_)
    return flags(pc.match_substring_regex(texts, escape_re2(literal)))


def regex_mask(texts: Any, pattern: str, letters: str) -> Mask:
    """Texts in which RE2 finds the pattern under these flags. Raises ArrowInvalid where it can't run it."""
    whole = regex(pattern, letters)
    literal = _literal_inside(pattern, letters) if len(texts) > _SAMPLE else None
    if literal is None or _is_common(texts, literal):
        return flags(pc.match_substring_regex(texts, whole))
    found = literal_mask(texts, literal)
    places = np.flatnonzero(found)
    found[places] = flags(pc.match_substring_regex(texts.take(indices(places)), whole))
    return found


def _is_common(texts: Any, literal: str) -> bool:
    """Whether so many of the texts have the literal that looking for it first costs more than it saves."""
    step = max(1, len(texts) // _SAMPLE)
    sample = texts.take(indices(np.arange(0, len(texts), step)))
    return bool(np.count_nonzero(literal_mask(sample, literal)) > _SHARE_MAX * len(sample))


@lru_cache(maxsize=64)  # every segment asks
def _literal_inside(pattern: str, letters: str) -> str | None:
    """The longest literal of every match; None: there is none, or the pattern begins with it."""
    tree = required_literals(pattern, letters).tree
    items = tree.items if isinstance(tree, AllOf) else (tree,)
    texts = [item.text for item in items if isinstance(item, Literal) and not item.folded]
    literal = max(texts, key=len, default="")
    if not literal or pattern.startswith((literal, escape_re2(literal), re.escape(literal))):
        return None
    return literal
