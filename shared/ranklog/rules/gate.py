"""Which templates a rule can match: its literals, seen through the placeholders.

A template has one placeholder for every token that holds a digit. A literal's inner tokens are
whole: those with a digit became placeholders, those without stand as they are. A token at the
literal's edge may be part of a longer token that holds a digit: it, or a placeholder. Doubt keeps.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ranklog.limits import TEMPLATE_BYTES_MAX

PLACEHOLDER = "\x00"
_TOKEN = re.compile(r"[A-Za-z0-9]+")


@cache
def template_pattern(literal: str) -> str:
    """RE2 expression that every template of a text with `literal` matches."""
    parts: list[str] = []
    at = 0
    for token in _TOKEN.finditer(literal):
        parts.append(re.escape(literal[at : token.start()]))
        edge = token.start() == 0 or token.end() == len(literal)
        parts.append(_token_pattern(token.group(), edge))
        at = token.end()
    parts.append(re.escape(literal[at:]))
    return "".join(parts)


def _token_pattern(token: str, edge: bool) -> str:
    if any("0" <= c <= "9" for c in token):
        return r"\x00"
    return rf"(?:{token}|\x00)" if edge else token


def selective(literal: str) -> bool:
    """Whether the gate of this literal can exclude a template that has a placeholder."""
    tokens = list(_TOKEN.finditer(literal))
    inner = [t for t in tokens if t.start() > 0 and t.end() < len(literal)]
    return bool(inner) or len(literal) > sum(t.end() - t.start() for t in tokens)


class Templates:
    """The templates of one batch, ready to be asked by every rule."""

    def __init__(self, templates: Sequence[str]) -> None:
        self._array = pa.array(templates, pa.string())
        size = pc.binary_length(self._array).to_numpy(zero_copy_only=False)
        # Cut templates hide what stands behind the cut; number 0 hides everything.
        self.doubt = np.asarray(size >= TEMPLATE_BYTES_MAX, np.bool_)
        if len(self.doubt):
            self.doubt[0] = True
        self._asked: dict[str, npt.NDArray[np.bool_]] = {}

    def may_match(self, literals: Sequence[str], gate: str | None) -> npt.NDArray[np.bool_]:
        """Per template, whether a text of it may hold all literals and fit the gate.

        Doubtful templates are left out: their rows are for the caller to look at.
        """
        may = self._ask(template_pattern(literals[0])) if literals else ~self.doubt
        for pattern in [*map(template_pattern, literals[1:]), *([gate] if gate else [])]:
            if not may.any():
                break
            may = may & self._ask(pattern)
        return may

    def _ask(self, pattern: str) -> npt.NDArray[np.bool_]:
        if pattern not in self._asked:
            hit: Any = pc.match_substring_regex(self._array, pattern)
            self._asked[pattern] = hit.to_numpy(zero_copy_only=False) & ~self.doubt
        return self._asked[pattern]
