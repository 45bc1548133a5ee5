"""Characters of a query into words, strings, regexes and values; each token knows where it stood.

A text with wildcards travels in one normal form, a *glob*: `*` and `?` are wildcards, and `\\*`,
`\\?` and `\\\\` stand for themselves.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ranklog.errors import BadQuery
from ranklog.plan.re2_syntax import refused_construct

BLANKS = " \t\r\n\f\v"
KEY = re.compile(r"[^\W\d_](?:[^\W_]|[_.\-/])*")
OPERATOR = re.compile(r">=|<=|!=|:|>|<")
_FLAGS = re.compile(r"[A-Za-z]*")
_HEX = re.compile(r"[0-9A-Fa-f]{2}")


@dataclass(frozen=True, slots=True)
class RawValue:
    """A field's value before its field gives it a type. `kind`: bare | quoted | regex."""

    kind: str
    start: int
    source: str
    glob: str = ""
    pattern: str = ""
    flags: str = ""


def escape_glob(text: str) -> str:
    """The glob that matches `text` and nothing else."""
    return re.sub(r"([*?\\])", r"\\\1", text)


def glob_literal(glob: str) -> str | None:
    """The one text that a glob without wildcards matches, else None."""
    if re.search(r"(?<!\\)(?:\\\\)*[*?]", glob):
        return None
    return re.sub(r"\\(.)", r"\1", glob, flags=re.DOTALL)


def quote(text: str) -> str:
    """`text` as a string of the query language."""
    return '"' + _escaped(text) + '"'


def quote_glob(glob: str) -> str:
    """A glob as a quoted value: its own escapes stay, as in the value's text."""
    return '"' + re.sub(r'"', r"\"", _control_escaped(glob)) + '"'


def _escaped(text: str) -> str:
    return _control_escaped(re.sub(r'(["\\])', r"\\\1", text))


def _control_escaped(text: str) -> str:
    return re.sub(
        r"[\x00-\x1f\x7f]",
        lambda found: "\\t" if found[0] == "\t" else f"\\x{ord(found[0]):02x}",
        text,
    )


class Scanner:
    """A cursor over the query. `stop`, where set, ends words and values at a function's tail."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.stops: list[re.Pattern[str] | None] = [None]

    def skip_blanks(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in BLANKS:
            self.at += 1

    def peek(self) -> str:
        """The character at the cursor; "" at the end."""
        return self.text[self.at : self.at + 1]

    def at_boundary(self) -> bool:
        """At the end of a term: a blank, a parenthesis, the end, a function's tail."""
        following = self.peek()
        return following == "" or following in BLANKS + "()" or self.at_stop() is not None

    def at_stop(self) -> re.Match[str] | None:
        """The tail of the innermost function, if it begins here."""
        stop = self.stops[-1]
        return stop.match(self.text, self.at) if stop is not None else None

    def keyword(self, word: str) -> bool:
        """Consume `word` if it stands here as a term of its own."""
        if not self.text.startswith(word, self.at):
            return False
        start, self.at = self.at, self.at + len(word)
        if self.at_boundary():
            return True
        self.at = start
        return False

    def at_keyword(self, word: str) -> bool:
        """Whether `word` stands here as a term of its own."""
        start = self.at
        found = self.keyword(word)
        self.at = start
        return found

    def word(self) -> str:
        """Everything up to a blank or a parenthesis."""
        start = self.at
        while not self.at_boundary():
            self.at += 1
        return self.text[start : self.at]

    def string(self) -> str:
        """A string's text; the cursor is at its first quote."""
        start, glob = self.at, self._quoted(wildcards=False)
        if not self.at_boundary():
            raise BadQuery(
                f"text follows the closing quote of {self.text[start : self.at]}",
                hint=r"put a blank after the quote, or write \" for a quote inside the string",
                position=self.at,
            )
        return glob

    def regex(self) -> tuple[str, str]:
        """(pattern, flags); the cursor is at the first slash."""
        start, pattern = self.at, self._pattern()
        flags = _FLAGS.match(self.text, self.at)[0]  # type: ignore[index]
        self.at += len(flags)
        if set(flags) - set("ims") or not (self.at_boundary() or self.peek() == ","):
            while not self.at_boundary():
                self.at += 1
            path = self.text[start : self.at]
            raise BadQuery(
                f"only the flags i, m, s may follow a regex, not {path[len(pattern) + 2 :]!r}",
                hint=f"for the text write {quote(path)}; a slash inside a regex is \\/",
                position=start,
            )
        refused = refused_construct(pattern)
        if refused is not None:
            raise BadQuery(
                f"{refused} in /{pattern}/ is not in RE2, which never backtracks",
                hint="match more with the regex and exclude with a second term, as in /a/ -/b/",
                position=start,
            )
        return pattern, "".join(sorted(set(flags)))

    def value(self) -> RawValue:
        """One value of a field; ends at a blank, a parenthesis, a comma."""
        start = self.at
        if self.peek() == "/":
            pattern, flags = self.regex()
            return RawValue("regex", start, self.text[start : self.at], "", pattern, flags)
        if self.peek() == '"':
            glob = self._quoted(wildcards=True)
            return RawValue("quoted", start, self.text[start : self.at], glob)
        glob = self._bare()
        return RawValue("bare", start, self.text[start : self.at], glob)

    def _pattern(self) -> str:
        """To the first slash without a backslash; only `\\/` is ours, the rest is RE2's."""
        start, self.at, parts = self.at, self.at + 1, []
        while self.peek() not in ("/", ""):
            if self.peek() == "\\":
                pair = self.text[self.at : self.at + 2]
                parts.append("/" if pair == "\\/" else pair)
                self.at += len(pair)
            else:
                parts.append(self.peek())
                self.at += 1
        if self.peek() == "":
            raise BadQuery(
                "the regex has no closing slash",
                hint=f"for the text write {quote(self.text[start:].split(' ')[0])}",
                position=start,
            )
        self.at += 1
        return "".join(parts)

    def _bare(self) -> str:
        parts = []
        while not self.at_boundary() and self.peek() != ",":
            pair = self.text[self.at : self.at + 2]
            if pair[0] == "\\" and len(pair) == 2 and pair[1] in '*?\\,()"' + BLANKS:
                parts.append(pair if pair[1] in "*?\\" else pair[1])
                self.at += 2
                continue
            parts.append("\\\\" if pair[0] == "\\" else pair[0])
            self.at += 1
        return "".join(parts)

    def _quoted(self, *, wildcards: bool) -> str:
        """A string's text, or a quoted value's glob."""
        start, self.at, parts = self.at, self.at + 1, []
        while self.peek() not in ('"', ""):
            character = self.peek()
            if character == "\\":
                parts.append(self._escape(wildcards))
            else:
                parts.append(character)
                self.at += 1
        if self.peek() == "":
            raise BadQuery(
                "the string has no closing quote",
                hint=r'close it; to find a quote write "\""',
                position=start,
            )
        self.at += 1
        return "".join(parts)

    def _escape(self, wildcards: bool) -> str:
        following = self.text[self.at + 1 : self.at + 2]
        digits = _HEX.match(self.text, self.at + 2)
        if following == "x" and digits is not None:
            self.at += 4
            character = chr(int(digits[0], 16))
            return escape_glob(character) if wildcards else character
        plain = {'"': '"', "t": "\t", "\\": "\\\\" if wildcards else "\\"}
        if wildcards:
            plain |= {"*": r"\*", "?": r"\?"}
        if following not in plain or following == "":
            raise BadQuery(
                f"\\{following} is no escape of a string",
                hint=r"a string knows \" \\ \t \xHH; write \\ for a backslash",
                position=self.at,
            )
        self.at += 2
        return plain[following]
