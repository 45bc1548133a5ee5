"""RE2's grammar by whitelist, read for `literals`: what is not listed here raises Unknown.

Listed: literals, `.`, classes (also `\\d \\s \\w`, POSIX and Unicode ones, as sets or as any
character), groups with and without a name, alternation, repetition, `^ $ \\A \\z \\b \\B`, escapes
of one character, and flags `i m s U` at the very start. Not Python's `re` parser: it reads
`[[:digit:]]xyz` as requiring `]xyz`.
"""

from __future__ import annotations

import re

from ranklog.plan.literals import (
    BOUNDARY,
    NOTHING_KNOWN,
    OPAQUE,
    Piece,
    String,
    alternate,
    concatenate,
    is_word,
    repeat,
)

# Deeper than this gives no literal; RE2 itself stops at 1,000.
_DEPTH_MAX = 60
# A class of more characters than this is any character.
_CLASS_MAX = 4

_LEADING_FLAGS = re.compile(r"\(\?([imsU]+)\)")
_GROUP = re.compile(r"\((?:\?:|\?P?<[A-Za-z_][A-Za-z0-9_]*>|(?!\?))")
_REPEAT = re.compile(r"(?:([*+?])|\{([0-9]{1,4})(?:(,)([0-9]{0,4}))?\})(\?)?")
_POSIX = re.compile(r"\[:\^?[a-z]+:\]")
_UNICODE_CLASS = re.compile(r"[pP](?:[A-Z]|\{\^?[A-Za-z_]+\})")
_HEX = re.compile(r"x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]{1,6})\})")
_CONTROL = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}

_ASCII = frozenset(map(chr, range(128)))
_WORD = frozenset(c for c in _ASCII if is_word(c))
_SETS = {
    "d": frozenset("0123456789"),
    "s": frozenset("\t\n\f\r "),
    "w": _WORD | {"_"},
}


class Unknown(Exception):
    """The pattern has something that is not on the list."""


def parse_pattern(pattern: str, flags: str) -> tuple[Piece, bool, bool]:
    """(what it matches, whether case does not count, whether it has anchors)."""
    leading = _LEADING_FLAGS.match(pattern)
    if leading is not None:
        flags, pattern = flags + leading[1], pattern[leading.end() :]
    parser = _Parser(pattern, folded="i" in flags)
    piece = parser.alternatives()
    if parser.at < len(pattern):
        raise Unknown(pattern[parser.at :])
    return piece, parser.folded, parser.asserted


class _Class:
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
        self.members = set(_ASCII - self.members)
        self.beyond = True


class _Parser:
    """Recursive descent; `at` is the cursor."""

    def __init__(self, pattern: str, *, folded: bool) -> None:
        self.pattern = pattern
        self.folded = folded
        self.at = 0
        self.depth = 0
        self.asserted = False

    def peek(self, count: int = 1) -> str:
        return self.pattern[self.at : self.at + count]

    def alternatives(self) -> Piece:
        """Up to a closing parenthesis or the end."""
        branches = [self._sequence()]
        while self.peek() == "|":
            self.at += 1
            branches.append(self._sequence())
        return alternate(branches, self.folded)

    def _sequence(self) -> Piece:
        pieces = []
        while self.peek() not in ("", "|", ")"):
            pieces.append(self._repeated())
        return concatenate(pieces, self.folded)

    def _repeated(self) -> Piece:
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
            return repeat(piece, *bounds, self.folded)
        least = int(low)
        most = least if not comma else int(high) if high else None
        if most is not None and most < least:
            raise Unknown(found[0])
        return repeat(piece, least, most, self.folded)

    def _atom(self) -> Piece:
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
            return OPAQUE
        if character in "^$":
            self.asserted = True
            return Piece(BOUNDARY)
        return self._one(character)

    def _group(self) -> Piece:
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

    def _one(self, character: str) -> Piece:
        """A character that stands for itself, or for both of its cases."""
        if not self.folded:
            return Piece((String(character),))
        if not character.isascii():
            return OPAQUE
        return Piece((String(character.lower()),))

    def _escape(self) -> Piece:
        following = self.peek(2)[1:]
        if following in ("A", "z", "b"):
            self.asserted = True
            self.at += 2
            return Piece(BOUNDARY)
        if following == "B":
            self.asserted = True
            self.at += 2
            return Piece(NOTHING_KNOWN)
        members = _Class()
        self.at += 1
        if self._escaped_set(members):
            return self._class_piece(members)
        return self._one(self._escaped_character())

    def _escaped_set(self, into: _Class) -> bool:
        """`\\d` and the like behind the backslash, added to a class; False if it is none."""
        name = self.peek()
        if name and name.lower() in _SETS:
            chosen = _SETS[name.lower()]
            into.members |= chosen if name.islower() else _ASCII - chosen
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

    def _class(self) -> Piece:
        self.at += 1
        negated = self.peek() == "^"
        self.at += negated
        members = _Class()
        first = True
        while first or self.peek() != "]":
            if not self.peek():
                raise Unknown("a class that is not closed")
            self._class_member(members)
            first = False
        self.at += 1
        if negated:
            members.negate()
        return self._class_piece(members)

    def _class_member(self, members: _Class) -> None:
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

    def _class_piece(self, found: _Class) -> Piece:
        # where case does not count, a character outside ASCII may stand for a letter
        beyond = found.beyond or not _is_ascii(found.members)
        if found.unknown or (self.folded and beyond):
            return OPAQUE
        if len(found.members) <= _CLASS_MAX and not found.beyond:
            shown = {c.lower() if self.folded else c for c in found.members}
            return Piece(tuple(String(c) for c in sorted(shown)))
        if not found.members & _WORD:
            return Piece(None, BOUNDARY, suffix=BOUNDARY)
        return OPAQUE


def _is_ascii(members: set[str]) -> bool:
    return all(c.isascii() for c in members)
