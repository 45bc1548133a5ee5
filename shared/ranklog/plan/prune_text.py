"""A literal against the template dictionary, and against the tokens that templates leave out.

In a template a token with a digit is the placeholder ¤. A literal's inner tokens are whole, so they
stand in the template as they are, or as ¤ where they have a digit. A token at the literal's edge may
go on in the text: there it stands as it is, or lies inside a ¤. `fallen off the bus` is looked for as
`(fallen|¤) off the (bus|¤)`, where ¤ is taken for a word only in row groups whose letter runs could
hold it. What no template satisfies, no row satisfies.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from ranklog.layout.index import SegmentIndex
from ranklog.layout.schema import BODY_AT
from ranklog.layout.tokens_pure import (
    LETTER_RUN_MIN,
    PLACEHOLDER,
    is_hex_run,
    is_indexed_token,
    tokenise,
)
from ranklog.plan.tables import tables_of

_LETTERS = re.compile(r"[A-Za-z]+")
_LONGEST_CAP = 255


@dataclass(frozen=True, slots=True)
class Variable:
    """A token of a literal that lies in a placeholder of the template.

    `left_open`: the text's token may have more characters before it; `right_open`: behind it.
    """

    word: str
    left_open: bool
    right_open: bool

    @property
    def least(self) -> int:
        """Length that a mixed token which holds it has at least; 0 where digits alone might do."""
        if self.word.isdigit():
            return 0
        return len(self.word) + self.word.isalpha()


class Dictionary:
    """The templates of a segment, and what its row groups know of tokens, for one query."""

    def __init__(self, index: SegmentIndex) -> None:
        self.index = index
        self._tables = tables_of(index)
        self.all = self._tables.all
        self.present = self._tables.present
        self.anywhere = self._tables.anywhere
        self._held: dict[tuple[Variable, int], bool] = {}

    def knows_envelopes(self, group: int) -> bool:
        """Whether the group's texts are an envelope of the head's list and a body."""
        if self.index.head.envelopes is not None:
            return True
        bounds = self.index.head.row_groups[group].bounds.get(BODY_AT)
        return bounds is not None and bounds.high == 0

    def having(self, pattern: str, *, folded: bool) -> int:
        """Templates that contain `pattern`, bodies with any of the segment's envelopes before them.

        Template 0 stands for every text.
        """
        wanted = pattern.encode("utf-8", "surrogatepass")
        found = self.bodies_having(pattern, folded=folded) | 1
        for envelope in self.index.head.envelopes or ():
            before = envelope.encode()
            before = before.lower() if folded else before
            if wanted in before:
                return self.all
            for cut in range(1, min(len(wanted) - 1, len(before)) + 1):
                if before.endswith(wanted[:cut]):
                    found |= self._tables.having(b"\n" + wanted[cut:], folded=folded)
        return found

    def bodies_having(self, pattern: str, *, folded: bool) -> int:
        """Templates that contain `pattern`; never template 0."""
        if "\n" in pattern:
            return 0
        return self._tables.having(pattern.encode("utf-8", "surrogatepass"), folded=folded)

    def with_mixed(self, least: int) -> int:
        """Templates of which a row has a mixed token of that length; 0 always."""
        return self._tables.with_mixed(min(least, _LONGEST_CAP))

    def with_variable(self, least: int) -> int:
        """The same of tokens with a digit, mixed or not."""
        return self._tables.with_variable(min(least, _LONGEST_CAP))

    def may_hold(self, variable: Variable, group: int) -> bool:
        """Whether a token with a digit in the group's rows might hold the word."""
        key = (variable, group)
        if key not in self._held:
            self._held[key] = self._check(variable, group)
        return self._held[key]

    def _check(self, variable: Variable, group: int) -> bool:
        word = variable.word
        whole = not variable.left_open and not variable.right_open and is_indexed_token(word)
        if whole and not self.index.bloom_may_contain(group, word):
            return False
        if not self.index.token_may_hold(group, word):
            return False
        return all(
            self._may_have_run(
                run[0].lower(),
                group,
                left_open=variable.left_open and run.start() == 0,
                right_open=variable.right_open and run.end() == len(word),
            )
            for run in _LETTERS.finditer(word)
        )

    def _may_have_run(self, letters: str, group: int, *, left_open: bool, right_open: bool) -> bool:
        """Whether letter runs inside the group's mixed tokens allow for these letters."""
        described = self.index.head.row_groups[group]
        if len(letters) < LETTER_RUN_MIN or described.runs is None:
            return True
        if described.hex_runs and is_hex_run(letters):
            return True
        wanted = ("" if left_open else " ") + letters + ("" if right_open else " ")
        return wanted in (self._tables.runs[group] or "")


class LiteralTerm:
    """A literal as a term: see the module."""

    def __init__(
        self,
        dictionary: Dictionary,
        text: str,
        *,
        folded: bool = False,
        token_start: bool = False,
        token_end: bool = False,
    ) -> None:
        self._dictionary = dictionary
        self._text = text
        head = dictionary.index.head
        # RE2 takes U+212A and U+017F for k and s, which the dictionary does not fold
        self._doubt = PLACEHOLDER in text or (
            folded and head.odd_case and ("k" in text or "s" in text)
        )
        self._surely = dictionary.bodies_having(text, folded=folded) if not self._doubt else 0
        self._ways = () if self._doubt else tuple(self._find_ways(folded, token_start, token_end))

    def cells(self, group: int) -> tuple[int, int]:
        dictionary = self._dictionary
        if self._doubt or not dictionary.knows_envelopes(group):
            return dictionary.all, self._surely
        might, present = 0, dictionary.present[group]
        for templates, variables in self._ways:
            new = templates & present & ~might
            if new and all(dictionary.may_hold(v, group) for v in variables):
                might |= new
        return might, self._surely

    def reason(self, group: int, templates: int) -> tuple[str, str]:
        for fitting, variables in self._ways:
            if not fitting & templates:
                continue
            for variable in variables:
                if not self._dictionary.may_hold(variable, group):
                    whole = not variable.left_open and not variable.right_open
                    kind = "bloom" if whole else "token"
                    return kind, f"no template has {self._text!r}, no token {variable.word!r}"
        return "template", f"no template has {self._text!r}"

    def _find_ways(
        self, folded: bool, token_start: bool, token_end: bool
    ) -> Iterator[tuple[int, Sequence[Variable]]]:
        """(templates, what their placeholders must hold) of each way to read the literal; none that no
        row has."""
        for pattern, variables in _readings(self._text, token_start, token_end):
            templates = self._dictionary.having(pattern, folded=folded) & self._dictionary.anywhere
            for variable in variables:
                if not templates:
                    break
                if variable.least:
                    templates &= self._dictionary.with_mixed(variable.least)
                else:
                    templates &= self._dictionary.with_variable(len(variable.word))
            if templates:
                yield templates, variables


@lru_cache(maxsize=1_024)  # every segment asks
def _readings(
    text: str, token_start: bool, token_end: bool
) -> tuple[tuple[str, tuple[Variable, ...]], ...]:
    """The literal as templates may show it: each edge word as it is, or as a placeholder."""
    pieces: list[list[tuple[str, Variable | None]]] = []
    at = 0
    for start, end in tokenise(text):
        pieces.append([(text[at:start], None)])
        left_open = start == 0 and not token_start
        right_open = end == len(text) and not token_end
        pieces.append(_word_readings(text[start:end], left_open, right_open))
        at = end
    pieces.append([(text[at:], None)])
    return tuple(
        ("".join(shown for shown, _ in chosen), tuple(v for _, v in chosen if v is not None))
        for chosen in product(*pieces)
    )


def _word_readings(
    word: str, left_open: bool, right_open: bool
) -> list[tuple[str, Variable | None]]:
    plain = (word, None)
    variable = (PLACEHOLDER, Variable(word, left_open, right_open))
    if not word.isalpha():
        return [variable]
    return [plain, variable] if left_open or right_open else [plain]
