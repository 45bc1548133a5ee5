"""One parse-and-extract rule, and why a rule is refused.

A rule names literals that every line it is meant for contains (the pre-filter, asked of templates
before any line is looked at), an RE2 expression whose named groups become metadata keys, a type per
group, and optionally a group that holds a list of key-value pairs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc

from ranklog.errors import BadRule
from ranklog.limits import RULE_PATTERN_BYTES_MAX
from ranklog.rules.gate import selective
from ranklog.rules.names import BUILT_IN, ITERATION, KEY_LENGTH_MAX
from ranklog.rules.values import known_type

_EMPTY: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Style:
    """How pairs stand in a list: what introduces a key (one group: the key), what ends a value."""

    marker: str
    trim: str


STYLES: Mapping[str, Style] = MappingProxyType(
    {
        # lm loss: 1.5 | grad norm: 2.0 |      (a name may hold `: `: the last one of a cell counts)
        "bars": Style(r"(?:^|\|)[ \t]*([^|]*[^| \t:])[ \t]*:[ \t]+", " |"),
        # loss 2446.0 | ppl 1.00
        "bars_blank": Style(r"(?:^|\|)[ \t]*([A-Za-z_][\w/.]*) +", " |"),
        # step=1, lr=[1e-05, 1e-05] or step=1 lr=1e-05; a name may end in parentheses
        "equals": Style(r"(?:^|[,;\s])\s*([A-Za-z_][\w/.-]*(?: \([^()=]*\))?)=", " ,;"),
        # seconds: 0.4, loss: 1.5
        "commas": Style(r"(?:^|, )[ \t]*([A-Za-z_][^,:=|]*): *", " ,"),
        # {'loss': 1.5, 'epoch': 0.03}
        "dict": Style(r"(?:\{|, )'([^']+)': ", " },"),
        # {"loss": 1.5, "inner": {"epoch": 1}}: inner members stand beside the outer ones
        "json": Style(r'[{,]\s*"([^"]+)": ?', " },"),
        # eta: 0:48:44  iter: 50  loss: 1.4 (2.3)
        "spaces": Style(r"(?:^|  )[ \t]*([A-Za-z_][\w ]*): +", " "),
        # Speed: 1.5 samples/sec\taccuracy=nan
        "tabs": Style(r"(?:^|\t)[ \t]*([A-Za-z_][^\t:=]*)(?:=|: ?)", " \t"),
        # name=value, alone on its line
        "line": Style(r"^\s*([^=:]+?)\s*(?:=|: )", " "),
    }
)


@dataclass(frozen=True, slots=True)
class Pairs:
    """A list of pairs in the pattern's group `group`.

    `names` maps a writer's name (lower case, single blanks) to a key, before the stable names;
    `types` maps keys to types, before the known ones; keys in `drop` are left out.
    """

    style: str = "bars"
    group: str = "pairs"
    marker: str | None = None  # an expression of the user's own in place of a style
    names: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    types: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    drop: frozenset[str] = frozenset()
    suffix: str = ""  # a unit that the line names once for all values

    @property
    def spelling(self) -> Style:
        """The marker and what is trimmed off values."""
        return STYLES[self.style] if self.marker is None else Style(self.marker, " ,;|")


@dataclass(frozen=True, slots=True)
class Rule:
    """See the module. `gate`: an expression over templates, where tokens with digits are `\\x00`.

    `run` and `channel` are globs that limit where the rule looks; `ansi` takes colour codes out
    first (also those that lost their ESC); `fallback` leaves lines alone that an earlier rule which
    is no fallback has read.
    """

    name: str
    literals: tuple[str, ...]
    pattern: str
    types: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    pairs: Pairs | None = None
    gate: str | None = None
    ansi: bool = False
    fallback: bool = False
    run: str = "*"
    channel: str = "*"
    examples: tuple[str, ...] = ()  # lines that `ranklog rules check` tries it on

    @property
    def keys(self) -> tuple[str, ...]:
        """Groups that become metadata, in order."""
        names = groups_of(self.pattern)
        return tuple(n for n in names if self.pairs is None or n != self.pairs.group)


_NAME = re.compile(r"[a-z][a-z0-9_./-]{0,63}")
# Escapes and classes are skipped, so that `\(?=` and `[(?=]` are not taken for look-around.
_PERL_ONLY = re.compile(
    r"\\[1-9]|\\k[<{']|\(\?P=|\\.|\[\^?\]?(?:\\.|\[:\w+:\]|[^\]\\])*\]|\(\?(?:<?[=!]|>|\()",
    re.DOTALL,
)


def groups_of(pattern: str) -> tuple[str, ...]:
    """Names of an expression's groups; raises BadRule where RE2 does not compile it."""
    for found in _PERL_ONLY.finditer(pattern):
        reason = _perl_only(found.group())
        if reason is not None:
            raise BadRule(
                f"{reason} at character {found.start()} of the pattern: RE2 can't run it",
                hint="match the text around it too, and name only the part that is wanted",
                position=found.start(),
            )
    try:
        kind = pc.extract_regex(pa.array([""]), pattern).type
    except pa.ArrowInvalid as error:
        raise _refused(pattern, str(error)) from error
    return tuple(kind.field(i).name for i in range(kind.num_fields))


def _perl_only(text: str) -> str | None:
    if re.fullmatch(r"\\[1-9]", text) or text.startswith((r"\k", "(?P=")):
        return f"back-reference {text}"
    if text.startswith("(?"):
        words = {"(?=": "look-ahead", "(?!": "look-ahead", "(?<=": "look-behind"}
        return f"{words.get(text, 'look-behind' if text == '(?<!' else 'group')} {text}"
    return None


def _refused(pattern: str, message: str) -> BadRule:
    """RE2's reason, with the place of the fragment it names."""
    reason = message.removeprefix("Invalid regular expression: ")
    if "unnamed groups" in reason:
        at = re.search(r"(?:^|[^\\])(\((?!\?))", pattern)
        position = at.start(1) if at else None
        return BadRule(
            f"a group without a name at character {position} of the pattern",
            hint="write (?P<key>…) for a value, (?:…) for grouping only",
            position=position,
        )
    fragment = reason.partition(": ")[2]
    position = max(pattern.find(fragment), 0) if fragment else 0
    return BadRule(f"RE2 refuses the pattern at character {position}: {reason}", position=position)


def validate(rule: Rule) -> None:
    """Raise BadRule with the reason, and the position in the pattern where there is one."""
    if not _NAME.fullmatch(rule.name):
        raise BadRule(
            f"{rule.name!r} is no name of a rule",
            hint="use a-z, 0-9 and _ . / -, a letter first, at most 64 characters",
        )
    try:
        _validate_literals(rule)
        _validate_pattern(rule)
        _validate_pairs(rule)
    except BadRule as error:
        raise BadRule(
            f"rule {rule.name}: {error.message}", hint=error.hint, position=error.position
        ) from error


def _validate_literals(rule: Rule) -> None:
    if not rule.literals and rule.gate is not None:
        return
    if not rule.literals or not all(rule.literals):
        raise BadRule(
            "no literal to filter by",
            hint="name text that every line for this rule contains; it spares the others the regex",
        )
    if not any(map(selective, rule.literals)):
        raise BadRule(
            f"the literals {list(rule.literals)} can stand inside longer words with digits, so they"
            " filter nothing",
            hint="add the blank, colon or bracket beside the word",
        )


def _validate_pattern(rule: Rule) -> None:
    size = len(rule.pattern.encode())
    if size > RULE_PATTERN_BYTES_MAX:
        raise BadRule(f"a pattern of {size} bytes; at most {RULE_PATTERN_BYTES_MAX}", position=0)
    groups = groups_of(rule.pattern)
    if not groups:
        raise BadRule("no named group, so nothing to extract", hint="write (?P<key>…)", position=0)
    for name in groups:
        at = re.search(rf"\(\?P?<{name}>", rule.pattern)
        position = at.start() if at else None
        if groups.count(name) > 1:
            raise BadRule(f"the group {name} is there twice", position=position)
        _validate_key(name, rule.types.get(name, "str"), position)
    if rule.gate is not None:
        _compile(rule.gate, "gate")
    _validate_types(rule.types, frozenset(groups))


def _validate_key(name: str, type_name: str, position: int | None) -> None:
    if name in BUILT_IN:
        raise BadRule(
            f"{name} is a field of every line and no metadata key",
            hint=f"name the group what it is, such as peer_{name}",
            position=position,
        )
    if len(name) > KEY_LENGTH_MAX or not name[0].isalpha():
        raise BadRule(
            f"{name!r} is no key", hint="a letter first, at most 100 characters", position=position
        )
    if name in ITERATION and type_name != "int":
        raise BadRule(
            f"{name} is the line's iteration and has type int, not {type_name}", position=position
        )


def _validate_types(types: Mapping[str, str], groups: frozenset[str] | None) -> None:
    for key, type_name in types.items():
        if groups is not None and key not in groups:
            raise BadRule(f"a type for {key}, which is no group of the pattern")
        if not known_type(type_name):
            raise BadRule(
                f"unknown type {type_name!r} of {key}",
                hint="int, float, str, bool, number, percent, rate, ranges, duration[:ms], size[:GiB]",
            )


def _validate_pairs(rule: Rule) -> None:
    pairs = rule.pairs
    if pairs is None:
        return
    if pairs.group not in groups_of(rule.pattern):
        raise BadRule(f"pairs are to be read from {pairs.group}, which is no group of the pattern")
    if pairs.style not in STYLES:
        raise BadRule(f"unknown style {pairs.style!r} of pairs", hint=", ".join(STYLES))
    if pairs.marker is not None:
        _compile(pairs.marker, "marker")
        try:
            pc.replace_substring_regex(pa.array([""]), pairs.marker, r"\1")
        except pa.ArrowInvalid as error:
            raise BadRule("the marker of pairs needs one group: the key") from error
    _validate_types(pairs.types, None)
    for name in pairs.names.values():
        _validate_key(name, "int" if name in ITERATION else "str", None)


def _compile(pattern: str, what: str) -> None:
    try:
        pc.match_substring_regex(pa.array([""]), pattern)
    except pa.ArrowInvalid as error:
        raise BadRule(f"{what}: {_refused(pattern, str(error)).message}") from error
