"""Literals that every match of a regex must contain, as a tree of AND and OR.

The parser behind it (`re2_parse`) knows RE2's grammar by whitelist: where it meets what it does not
know it says Anything, which every text satisfies. Soundness is one sentence: if RE2 finds a match in
a text, the tree holds on that text.

Shapes: a `Strings` is a small set of the strings a subexpression can match, each with whether its
ends are known to be token boundaries. A `Piece` is such a set, or what its matches begin with, end
with and hold between.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ranklog.plan.re2_parse import WORD, Class, Unknown, parse_pattern

# More alternatives or longer repetitions than these are cut into parts: less exact, still sound.
STRINGS_MAX = 16
LITERAL_CHARACTERS_MAX = 512
# A class of more characters than this is any character.
_CLASS_MAX = 4

# RE2 takes these for k and s where case does not count.
_ODD_CASE = {"\u212a": "k", "\u017f": "s"}


@dataclass(frozen=True, slots=True)
class Anything:
    """Holds on every text."""


@dataclass(frozen=True, slots=True)
class Literal:
    """`text` is contained. `folded`: it is lower-case ASCII and case does not count.

    `token_start`: no letter or digit stands before it in the text; `token_end`: none behind it.
    """

    text: str
    folded: bool = False
    token_start: bool = False
    token_end: bool = False


@dataclass(frozen=True, slots=True)
class AllOf:
    items: tuple[LiteralTree, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    items: tuple[LiteralTree, ...]


LiteralTree: TypeAlias = "Anything | Literal | AllOf | AnyOf"


@dataclass(frozen=True, slots=True)
class Required:
    """`exact`: the tree holds only on texts that match, too."""

    tree: LiteralTree
    exact: bool


def all_of(items: list[LiteralTree]) -> LiteralTree:
    """AND in its shortest form."""
    flat: dict[LiteralTree, None] = {}
    for item in items:
        flat |= dict.fromkeys(item.items if isinstance(item, AllOf) else (item,))
    flat.pop(Anything(), None)
    if len(flat) < 2:
        return next(iter(flat), Anything())
    return AllOf(tuple(flat))


def any_of(items: list[LiteralTree]) -> LiteralTree:
    """OR in its shortest form; one Anything makes it Anything."""
    flat: dict[LiteralTree, None] = {}
    for item in items:
        flat |= dict.fromkeys(item.items if isinstance(item, AnyOf) else (item,))
    if Anything() in flat:
        return Anything()
    return next(iter(flat)) if len(flat) == 1 else AnyOf(tuple(flat))


def required_literals(pattern: str, flags: str = "") -> Required:
    """What every match of an RE2 pattern contains; `flags` is a subset of "ims"."""
    try:
        piece, folded, asserted = parse_pattern(pattern, flags, _LiteralBuilder())
    except Unknown:
        return Required(Anything(), exact=False)
    exact = piece.exact is not None and not asserted
    return Required(piece.requirement(folded), exact)


def tree_holds(tree: LiteralTree, text: str) -> bool:
    """Whether a text has what the tree requires."""
    if isinstance(tree, Anything):
        return True
    if isinstance(tree, AllOf):
        return all(tree_holds(item, text) for item in tree.items)
    if isinstance(tree, AnyOf):
        return any(tree_holds(item, text) for item in tree.items)
    # one character for one: the neighbours are looked up in the text itself
    folded = "".join(map(_fold, text)) if tree.folded else text
    at = folded.find(tree.text)
    while at >= 0:
        end = at + len(tree.text)
        cut = tree.token_start and is_word(tree.text[:1]) and is_word(text[max(at - 1, 0) : at])
        torn = tree.token_end and is_word(tree.text[-1:]) and is_word(text[end : end + 1])
        if not cut and not torn:
            return True
        at = folded.find(tree.text, at + 1)
    return False


def _fold(character: str) -> str:
    return character.lower() if character.isascii() else _ODD_CASE.get(character, character)


def is_word(character: str) -> bool:
    """A letter or digit of a token: ASCII only. "" is none."""
    return character.isascii() and character.isalnum()


@dataclass(frozen=True, slots=True)
class String:
    """One string that a subexpression can match, and what is known beside it (see Literal)."""

    text: str
    token_start: bool = False
    token_end: bool = False

    def then(self, following: String) -> String:
        """This string and `following` directly behind it."""
        return String(
            self.text + following.text,
            self.token_start or (not self.text and following.token_start),
            following.token_end or (not following.text and self.token_end),
        )


Strings: TypeAlias = "tuple[String, ...]"
NOTHING_KNOWN: Strings = (String(""),)
BOUNDARY: Strings = (String("", token_start=True, token_end=True),)


@dataclass(frozen=True, slots=True)
class Piece:
    """Matches are one of `exact`; or, where that is None, begin with one of `prefix`, end with one
    of `suffix` and satisfy `inner`.
    """

    exact: Strings | None
    prefix: Strings = NOTHING_KNOWN
    inner: LiteralTree = Anything()
    suffix: Strings = NOTHING_KNOWN

    @property
    def begins(self) -> Strings:
        return self.prefix if self.exact is None else self.exact

    @property
    def ends(self) -> Strings:
        return self.suffix if self.exact is None else self.exact

    def requirement(self, folded: bool) -> LiteralTree:
        """The tree of everything that is known."""
        if self.exact is not None:
            return one_of(self.exact, folded)
        return all_of([one_of(self.prefix, folded), self.inner, one_of(self.suffix, folded)])


OPAQUE = Piece(None)


def one_of(strings: Strings, folded: bool) -> LiteralTree:
    """A text has one of them."""
    return any_of(
        [
            Literal(s.text, folded, s.token_start, s.token_end) if s.text else Anything()
            for s in strings
        ]
    )


def cross(left: Strings, right: Strings) -> Strings | None:
    """Each of `left` with each of `right` behind it; None where that is too many or too long."""
    if len(left) * len(right) > STRINGS_MAX:
        return None
    joined = tuple(dict.fromkeys(a.then(b) for a in left for b in right))
    return None if any(len(s.text) > LITERAL_CHARACTERS_MAX for s in joined) else joined


def concatenate(pieces: list[Piece], folded: bool) -> Piece:
    """One behind the other."""
    first: Strings | None = None  # what the whole begins with, once it is no longer exact
    inner: list[LiteralTree] = []
    last: Strings = NOTHING_KNOWN  # what stands directly before the cursor

    for piece in pieces:
        joined = cross(last, piece.begins)
        if joined is None:  # too many: the two stand apart from here
            if first is None:
                first = last
            else:
                inner.append(one_of(last, folded))
            joined = piece.begins
            if piece.exact is not None:
                last = joined
                continue
        if piece.exact is not None:
            last = joined
            continue
        if first is None:
            first = joined
        else:
            inner.append(one_of(joined, folded))
        inner.append(piece.inner)
        last = piece.suffix
    if first is None:
        return Piece(last)
    return Piece(None, first, all_of(inner), last)


def alternate(pieces: list[Piece], folded: bool) -> Piece:
    """One of them."""
    if len(pieces) == 1:
        return pieces[0]
    exact = [piece.exact for piece in pieces if piece.exact is not None]
    union = tuple(dict.fromkeys(string for strings in exact for string in strings))
    if len(exact) == len(pieces) and len(union) <= STRINGS_MAX:
        return Piece(union)
    return Piece(None, inner=any_of([piece.requirement(folded) for piece in pieces]))


def repeat(piece: Piece, low: int, high: int | None, folded: bool) -> Piece:
    """`low` to `high` times; None is without limit."""
    if high == 0:
        return Piece(NOTHING_KNOWN)
    if low == 0:
        if high == 1 and piece.exact is not None:
            return alternate([piece, Piece(NOTHING_KNOWN)], folded)
        return OPAQUE
    times = min(low, STRINGS_MAX)
    once = concatenate([piece] * times, folded)
    if times == high and once.exact is not None:
        return once
    return Piece(None, once.begins, once.inner, once.ends)


class _LiteralBuilder:
    """A pattern's parts as pieces."""

    def anything(self) -> Piece:
        return OPAQUE

    def edge(self, inside: bool) -> Piece:
        return Piece(NOTHING_KNOWN if inside else BOUNDARY)

    def character(self, character: str, folded: bool) -> Piece:
        """A character that stands for itself, or for both of its cases."""
        if not folded:
            return Piece((String(character),))
        return Piece((String(character.lower()),)) if character.isascii() else OPAQUE

    def members(self, found: Class, folded: bool) -> Piece:
        if found.is_open(folded):
            return OPAQUE
        if len(found.members) <= _CLASS_MAX and not found.beyond:
            shown = {c.lower() if folded else c for c in found.members}
            return Piece(tuple(String(c) for c in sorted(shown)))
        if not found.members & WORD:
            return Piece(None, BOUNDARY, suffix=BOUNDARY)
        return OPAQUE

    def sequence(self, parts: list[Piece], folded: bool) -> Piece:
        return concatenate(parts, folded)

    def either(self, branches: list[Piece], folded: bool) -> Piece:
        return alternate(branches, folded)

    def times(self, part: Piece, low: int, high: int | None, folded: bool) -> Piece:
        return repeat(part, low, high, folded)
