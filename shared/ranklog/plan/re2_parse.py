"""RE2's grammar by whitelist: what is not listed here raises Unknown. A builder makes of it what its
reader needs: `literals` the strings of a match, `shapes` an automaton over templates.

Listed: literals, `.`, classes (also `\\d \\s \\w`, POSIX and Unicode ones, as sets or as any
character), groups with and without a name, alternation, repetition, `^ $ \\A \\z \\b \\B`, escapes
of one character, and flags `i m s U` at the very start. Not Python's `re` parser: it reads
`[[:digit:]]xyz` as requiring `]xyz`.
"""

from __future__ import annotations

import re
from typing import Generic, Protocol, TypeVar

# Deeper than this gives no literal; RE2 itself stops at 1,000.
_DEPTH_MAX = 60

_LEADING_FLAGS = re.compile(r"\(\?([imsU]+)\)")
_GROUP = re.compile(r"\((?:\?:|\?P?<[A-Za-z_][A-Za-z0-9_]*>|(?!\?))")
_REPEAT = re.compile(r"(?:([*+?])|\{([0-9]{1,4})(?:(,)([0-9]{0,4}))?\})(\?)?")
_POSIX = re.compile(r"\[:\^?[a-z]+:\]")
_UNICODE_CLASS = re.compile(r"[pP](?:[A-Z]|\{\^?[A-Za-z_]+\})")
_HEX = re.compile(r"x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]{1,6})\})")
_CONTROL = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}

ASCII = frozenset(map(chr, range(128)))
WORD = frozenset(c for c in ASCII if c.isalnum())
_SETS = {
    "d": frozenset("0123456789"),
    "s": frozenset("\t\n\f\r "),
    "w": WORD | {"_"},
}


T = TypeVar("T")


class Unknown(Exception):
    """The pattern has something that is not on the list."""


def parse_pattern(pattern: str, flags: str, builder: Builder[T]) -> tuple[T, bool, bool]:
    """(what it matches, whether case does not count, whether it has anchors)."""
    leading = _LEADING_FLAGS.match(pattern)
    if leading is not None:
        flags, pattern = flags + leading[1], pattern[leading.end() :]
    parser = _Parser(pattern, builder, folded="i" in flags)
    built = parser.alternatives()
    if parser.at < len(pattern):
        raise Unknown(pattern[parser.at :])
    return built, parser.folded, parser.asserted


class Class:
    """Members of a character class: `members` are complete for ASCII; `beyond`: others may be in.

    `unknown`: any character may be a member.
    """

    def __init__(self) -> None:
        self.members: set[str] = set()
        self.beyond = False
        self.unknown = False

    def add_range(self, low: str, high: str) -> None:
        if low > high:
            raise Unknown(f"{low}-{high}")
        self.members.update(map(chr, range(ord(low), min(ord(high), 127) + 1)))
        if not high.isascii():
            if low == high:
                self.members.add(low)
            else:
                self.beyond = True

    def negate(self) -> None:
        self.members = set(ASCII - self.members)
        self.beyond = True

    def is_open(self, folded: bool) -> bool:
        """Whether any character may be a member, as far as is known."""
        # where case does not count, a character outside ASCII may stand for a letter
        beyond = self.beyond or not all(c.isascii() for c in self.members)
        return self.unknown or (folded and beyond)


class Builder(Protocol[T]):
    """What the parts of a pattern become. `folded`: case does not count."""

    def anything(self) -> T:
        """One character, or more than is known of it."""
        ...

    def edge(self, inside: bool) -> T:
        """An anchor: nothing is matched. `inside`: `\\B`, the others end a token."""
        ...

    def character(self, character: str, folded: bool) -> T: ...

    def members(self, found: Class, folded: bool) -> T:
        """One character of a class."""
        ...

    def sequence(self, parts: list[T], folded: bool) -> T: ...

    def either(self, branches: list[T], folded: bool) -> T: ...

    def times(self, part: T, low: int, high: int | None, folded: bool) -> T: ...


class _Parser(Generic[T]):
    """Recursive descent; `at` is the cursor."""

    def __init__(self, pattern: str, builder: Builder[T], *, folded: bool) -> None:
        self.pattern = pattern
        self.builder = builder
        self.folded = folded
        self.at = 0
        self.depth = 0
        self.asserted = False

    def peek(self, count: int = 1) -> str:
        return self.pattern[self.at : self.at + count]

    def alternatives(self) -> T:
        """Up to a closing parenthesis or the end."""
        branches = [self._sequence()]
        while self.peek() == "|":
            self.at += 1
            branches.append(self._sequence())
        return self.builder.either(branches, self.folded)

    def _sequence(self) -> T:
        pieces = []
        while self.peek() not in ("", "|", ")"):
            pieces.append(self._repeated())
        return self.builder.sequence(pieces, self.folded)

    def _repeated(self) -> T:
        piece = self._atom()
        found = _REPEAT.match(self.pattern, self.at)
        if found is None:
            return piece
        self.at = found.end()
        if _REPEAT.match(self.pattern, self.at):
            raise Unknown("one repetition of another")
        sign, low, comma, high, _ = found.groups()
        if sign is not None:
            bounds = {"*": (0, None), "+": (1, None), "?": (0, 1)}[sign]
            return self.builder.times(piece, *bounds, self.folded)
        least = int(low)
        most = least if not comma else int(high) if high else None
        if most is not None and most < least:
            raise Unknown(found[0])
        return self.builder.times(piece, least, most, self.folded)

    def _atom(self) -> T:
        character = self.peek()
        if character == "(":
            return self._group()
        if character == "[":
            return self._class()
        if character == "\\":
            return self._escape()
        if character in "*+?" or _REPEAT.match(self.pattern, self.at):
            raise Unknown("a repetition of nothing")
        self.at += 1
        if character == ".":
            return self.builder.anything()
        if character in "^$":
            self.asserted = True
            return self.builder.edge(inside=False)
        return self.builder.character(character, self.folded)

    def _group(self) -> T:
        opening = _GROUP.match(self.pattern, self.at)
        self.depth += 1
        if opening is None or self.depth > _DEPTH_MAX:
            raise Unknown(self.peek(8))
        self.at = opening.end()
        piece = self.alternatives()
        if self.peek() != ")":
            raise Unknown("a group that is not closed")
        self.at += 1
        self.depth -= 1
        return piece

    def _escape(self) -> T:
        following = self.peek(2)[1:]
        if following in ("A", "z", "b", "B"):
            self.asserted = True
            self.at += 2
            return self.builder.edge(inside=following == "B")
        members = Class()
        self.at += 1
        if self._escaped_set(members):
            return self.builder.members(members, self.folded)
        return self.builder.character(self._escaped_character(), self.folded)

    def _escaped_set(self, into: Class) -> bool:
        """`\\d` and the like behind the backslash, added to a class; False if it is none."""
        name = self.peek()
        if name and name.lower() in _SETS:
            chosen = _SETS[name.lower()]
            into.members |= chosen if name.islower() else ASCII - chosen
            into.beyond |= name.isupper()
            self.at += 1
            return True
        unicode_class = _UNICODE_CLASS.match(self.pattern, self.at)
        if unicode_class is None:
            return False
        into.unknown = True
        self.at = unicode_class.end()
        return True

    def _escaped_character(self) -> str:
        """One character behind the backslash."""
        character = self.peek()
        code = _HEX.match(self.pattern, self.at)
        if code is not None:
            self.at = code.end()
            number = int(code[1] or code[2], 16)
            if number > 0x10FFFF or 0xD800 <= number < 0xE000:
                raise Unknown(code[0])
            return chr(number)
        self.at += 1
        if character in _CONTROL:
            return _CONTROL[character]
        if not character or not character.isascii() or character.isalnum() or character == "_":
            raise Unknown("\\" + character)
        return character

    def _class(self) -> T:
        self.at += 1
        negated = self.peek() == "^"
        self.at += negated
        members = Class()
        first = True
        while first or self.peek() != "]":
            if not self.peek():
                raise Unknown("a class that is not closed")
            self._class_member(members)
            first = False
        self.at += 1
        if negated:
            members.negate()
        return self.builder.members(members, self.folded)

    def _class_member(self, members: Class) -> None:
        posix = _POSIX.match(self.pattern, self.at)
        if posix is not None:
            members.unknown = True
            self.at = posix.end()
            return
        if self.peek() == "\\":
            self.at += 1
            if self._escaped_set(members):
                if self.peek() == "-" and self.peek(2) != "-]":
                    raise Unknown("a range from a set")
                return
            low = self._escaped_character()
        else:
            low = self.peek()
            self.at += 1
        members.add_range(low, self._range_end() or low)

    def _range_end(self) -> str | None:
        """The upper end where a `-` makes a range of the member before it."""
        if self.peek() != "-" or self.peek(2) in ("-]", "-"):
            return None
        self.at += 1
        if self.peek() == "[":
            raise Unknown("a range to a class")
        if self.peek() != "\\":
            self.at += 1
            return self.pattern[self.at - 1]
        self.at += 1
        return self._escaped_character()
