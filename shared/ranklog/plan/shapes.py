"""Whether a regex can match a text of which only the template is known.

The regex becomes an automaton that walks over the template. Where the template has a placeholder the
automaton goes on for every token with a digit at once. So `\\d{5} \\w+ \\d{5}`, which has no literal,
matches no line whose template lacks `¤ word ¤` or `¤ ¤ ¤`; nor one whose tokens there are shorter than
five, where the index knows how long they get. It says no only where no such text matches:
anchors match anywhere, and classes that the grammar does not know hold every character.

The automaton has a position per character of the pattern (Glushkov's construction); a set of
positions is a Python int.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from ranklog.layout.tokens_pure import PLACEHOLDER
from ranklog.plan.re2_parse import WORD, Class, Unknown, parse_pattern

# A larger automaton is not built: the pattern's literals must do.
_POSITIONS_MAX = 512
# Repetitions beyond this are taken for "at least that many".
_COPIES_MAX = 32
# Parts that are laid out: repetitions of nothing have no positions.
_PARTS_MAX = 4_096
# Characters of distinct templates that one query looks at, and steps that it works out; the templates
# after them are doubt.
_CHARACTERS_MAX = 1_000_000
_STEPS_MAX = 20_000
_MATCH = -1
_DIGITS = frozenset("0123456789")


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a pattern: how it is laid out follows when all of it is known.

    `kind`: one | sequence | either | times | empty. `accepts`: ASCII characters of a `one`, None: all.
    `beyond`: characters outside ASCII that it accepts, None: all.
    """

    kind: str
    accepts: frozenset[str] | None = None
    beyond: frozenset[str] | None = None
    items: tuple[_Part, ...] = ()
    low: int = 0
    high: int | None = None


class _ShapeBuilder:
    """A pattern's parts as a tree."""

    def anything(self) -> _Part:
        return _Part("one")

    def edge(self, inside: bool) -> _Part:
        return _Part("empty")

    def character(self, character: str, folded: bool) -> _Part:
        found = Class()
        found.add_range(character, character)
        return self.members(found, folded)

    def members(self, found: Class, folded: bool) -> _Part:
        if found.is_open(folded):
            return _Part("one")
        ascii_members = {c for c in found.members if c.isascii()}
        if folded:
            # what is outside ASCII may fold to a letter
            both = {c.lower() for c in ascii_members} | {c.upper() for c in ascii_members}
            return _Part("one", frozenset(both), None)
        beyond = None if found.beyond else frozenset(found.members - ascii_members)
        return _Part("one", frozenset(ascii_members), beyond)

    def sequence(self, parts: list[_Part], folded: bool) -> _Part:
        return _Part("sequence", items=tuple(parts))

    def either(self, branches: list[_Part], folded: bool) -> _Part:
        return branches[0] if len(branches) == 1 else _Part("either", items=tuple(branches))

    def times(self, part: _Part, low: int, high: int | None, folded: bool) -> _Part:
        return _Part("times", items=(part,), low=low, high=high)


@dataclass(frozen=True, slots=True)
class _Ends:
    """Of a part: whether it matches nothing, and the positions it can begin and end with."""

    nullable: bool
    first: int
    last: int


_EMPTY = _Ends(True, 0, 0)


class _Automaton:
    """Positions, what each accepts, and which may follow it."""

    def __init__(self) -> None:
        self.accepts: list[_Part] = []
        self.follow: list[int] = []
        self._parts = 0

    def lay_out(self, part: _Part) -> _Ends:
        """Add the part's positions. Raises Unknown where they are too many."""
        self._parts += 1
        if self._parts > _PARTS_MAX:
            raise Unknown("too many parts")
        if part.kind == "empty":
            return _EMPTY
        if part.kind == "one":
            if len(self.accepts) >= _POSITIONS_MAX:
                raise Unknown("too many characters")
            self.accepts.append(part)
            self.follow.append(0)
            position = 1 << (len(self.accepts) - 1)
            return _Ends(False, position, position)
        if part.kind == "times":
            return self._times(part)
        ends = [self.lay_out(item) for item in part.items]
        if part.kind == "sequence":
            return self._sequence(ends)
        return _Ends(
            any(end.nullable for end in ends),
            _union(end.first for end in ends),
            _union(end.last for end in ends),
        )

    def _sequence(self, ends: Sequence[_Ends]) -> _Ends:
        whole = _EMPTY
        for end in ends:
            self._link(whole.last, end.first)
            whole = _Ends(
                whole.nullable and end.nullable,
                whole.first | (end.first if whole.nullable else 0),
                end.last | (whole.last if end.nullable else 0),
            )
        return whole

    def _times(self, part: _Part) -> _Ends:
        """`low` copies, then optional ones up to `high`, or one that repeats."""
        low, high = min(part.low, _COPIES_MAX), part.high
        if high is not None and (part.low > low or high - low > _COPIES_MAX):
            high = None
        copies = [self.lay_out(part.items[0]) for _ in range(low)]
        if high is None:
            more = [self.lay_out(part.items[0])]
            self._link(more[0].last, more[0].first)
        else:
            more = [self.lay_out(part.items[0]) for _ in range(high - low)]
        optional = [_Ends(True, end.first, end.last) for end in more]
        return self._sequence([*copies, *optional])

    def _link(self, lasts: int, first: int) -> None:
        for position in _positions(lasts):
            self.follow[position] |= first


class Shape:
    """A pattern that is asked of template after template; remembers what it said."""

    def __init__(self, pattern: str, flags: str) -> None:
        """Raises Unknown where the pattern is not read."""
        tree = parse_pattern(pattern, flags, _ShapeBuilder())[0]
        automaton = _Automaton()
        ends = automaton.lay_out(tree)
        self._parts, self._follow = automaton.accepts, automaton.follow
        self._start, self._last, self._always = ends.first, ends.last, ends.nullable
        self._accepting: dict[str, int] = {}
        self._steps: dict[tuple[int, str], int] = {}
        self._in_token = self._accepting_any(WORD)
        self._digit = self._accepting_any(_DIGITS)
        self._known: dict[tuple[tuple[str, ...], str, bytes | None], bool] = {}
        self._tokens: dict[tuple[int, int], int] = {}
        self._left = _CHARACTERS_MAX

    def might(self, template: str, envelopes: Sequence[str], longest: bytes | None = None) -> bool:
        """Whether a text of the template, behind one of the envelopes, might match. `longest`: of each
        placeholder's tokens, 255: or longer; None: any length."""
        if self._always:
            return True
        if not self._fits(template, envelopes, None):
            return False
        return longest is None or self._fits(template, envelopes, longest)

    def _fits(self, template: str, envelopes: Sequence[str], longest: bytes | None) -> bool:
        key = (tuple(envelopes), template, longest)
        if key not in self._known:
            self._left -= len(template)
            if self._left < 0 or len(self._steps) + len(self._tokens) > _STEPS_MAX:
                return True
            self._known[key] = self._might(template, envelopes, longest)
        return self._known[key]

    def _might(self, template: str, envelopes: Sequence[str], longest: bytes | None) -> bool:
        state = self._start
        for envelope in envelopes:
            reached = self._walk(self._start, envelope)
            if reached == _MATCH:
                return True
            state |= reached
        if longest is None:
            return self._walk(state, template) == _MATCH
        parts = template.split(PLACEHOLDER)
        for part, length in zip(parts, longest, strict=False):
            state = self._walk(state, part)
            if state != _MATCH:
                state = self._short_token(state, length)
            if state == _MATCH:
                return True
        return self._walk(state, parts[-1]) == _MATCH

    def _walk(self, state: int, text: str) -> int:
        steps = self._steps
        for character in text:
            following = steps.get((state, character))
            if following is None:
                following = self._step(state, character)
                steps[state, character] = following
            if following == _MATCH:
                return _MATCH
            state = following
        return state

    def _step(self, state: int, character: str) -> int:
        """Positions that may come next, or _MATCH."""
        if character == PLACEHOLDER:
            return self._token(state)
        if character not in self._accepting:
            self._accepting[character] = _union(
                1 << i for i, part in enumerate(self._parts) if _accepts(part, character)
            )
        return self._after(state & self._accepting[character])

    def _token(self, state: int) -> int:
        """Behind any token that has a digit."""
        before = self._through(state)
        if before == _MATCH:
            return _MATCH
        digit = self._after(before & self._digit)
        return _MATCH if digit == _MATCH else self._through(digit)

    def _short_token(self, state: int, length: int) -> int:
        """Behind any token of at most so many characters, one of them a digit; 255: any length."""
        key = (state, length)
        if length < 255 and key not in self._tokens:
            self._tokens[key] = self._behind_short(state, length)
        return self._token(state) if length == 255 else self._tokens[key]

    def _behind_short(self, state: int, length: int) -> int:
        behind, without, having = 0, state, 0  # positions after characters without and with a digit
        for _ in range(length):
            digit = self._after(without & self._digit)
            more = self._after(having & self._in_token) if having else 0
            following = self._after(without & self._in_token)
            if _MATCH in (digit, more, following):
                return _MATCH
            if (digit | more, following) == (having, without):
                break
            having, without = digit | more, following
            behind |= having
        return behind

    def _through(self, state: int) -> int:
        """Behind any letters and digits, or none."""
        while True:
            following = self._after(state & self._in_token)
            if following == _MATCH:
                return _MATCH
            if not following & ~state:
                return state
            state |= following

    def _after(self, taken: int) -> int:
        if taken & self._last:
            return _MATCH
        return self._start | _union(self._follow[position] for position in _positions(taken))

    def _accepting_any(self, characters: frozenset[str]) -> int:
        return _union(
            1 << i
            for i, part in enumerate(self._parts)
            if part.accepts is None or part.accepts & characters
        )


def _accepts(part: _Part, character: str) -> bool:
    members = part.accepts if character.isascii() else part.beyond
    return members is None or character in members


def _positions(found: int) -> list[int]:
    positions = []
    while found:
        lowest = found & -found
        positions.append(lowest.bit_length() - 1)
        found ^= lowest
    return positions


def _union(sets: Iterable[int]) -> int:
    return reduce(or_, sets, 0)
