"""What a line's text says that changes, and what its program says every time.

The engine's template replaces each token that holds a digit. To set two ranks side by side that is
too fine: `1.5` and `2.5e-05` and `nan` are values of one variable. So a line's *shape* replaces whole
numbers (with sign and exponent), versions and addresses, clock times, and the other tokens with a
digit, each by one placeholder. It is a pure function of the text: the same for every rank.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

PLACEHOLDER = "\x00"
# How people see a placeholder, and write it in `template:`.
SHOWN = "<*>"

_CLOCK = r"""
  (?<![0-9A-Za-z]) \d{4} [-/] \d\d [-/] \d\d
      (?: [T ] \d\d:\d\d:\d\d (?: [.,] \d+ )? (?: Z | [+-]\d\d:?\d\d )? )? (?![0-9A-Za-z])
| (?<![0-9A-Za-z]) [IWEFCD]\d{4} [ ] \d\d:\d\d:\d\d \. \d+
| (?<![0-9A-Za-z:.]) \d\d:\d\d:\d\d (?: [.,] \d+ )? (?![0-9A-Za-z])
| (?<![0-9A-Za-z.]) 1[4-9]\d{8} (?: \.\d+ | \d{3} | \d{6} | \d{9} )? (?![0-9A-Za-z.])
"""
_NUMBER = r"""
  (?<![0-9A-Za-z]) (?: (?<=[\s=:,(\[{"']) [+-] | ^[+-] )?
      (?: \d+ (?: \.\d* )? (?: [eE][+-]?\d+ )? | nan | NaN | NAN | inf | Inf | Infinity )
      (?![0-9A-Za-z]) (?! \.\d )
"""
_OTHER = r"""
  (?<![0-9A-Za-z]) [A-Za-z]*\d[0-9A-Za-z]* (?: \.\d[0-9A-Za-z]* )*
"""
# Most places begin no value: one look ahead tells, and makes the whole three times as fast.
_BEGINS = r"(?<![0-9A-Za-z]) (?= [+-]? (?: [A-Za-z]*[0-9] | [nN][aA][nN] | [iI]nf ) )"
_VARIABLE = re.compile(
    rf"{_BEGINS} (?: (?P<clock>{_CLOCK}) | (?P<number>{_NUMBER}) | (?P<other>{_OTHER}) )",
    re.VERBOSE | re.ASCII,
)
# The word a value is called by: `loss=2.3`, `"loss": 2.3`, `grad norm: 0.4`, `step 12`.
_NAME = re.compile(r"([A-Za-z_][A-Za-z0-9_./-]*)[\"'\])]?\s*[=:]?\s*[\"'\[(]?$")
_IN_HOST = re.compile(r"[0-9A-Za-z.-]")
_ADDRESS = re.compile(r"0[xX][0-9a-fA-F]+$")
_MEASURE = re.compile(r"(\d+(?:\.\d+)?)(?:[num]?s|m|h|[KMGTkmgt]?i?[Bb]?|it|x)$")
_LABELLED = re.compile(r"[A-Za-z]+(\d+)$")
# Values of these differ in every process and say nothing.
_PROCESS_NAMES = frozenset({"pid", "tid", "ppid", "thread", "process", "port", "fd"})


@dataclass(frozen=True, slots=True)
class Variable:
    """One changing part of a line. `name` is the word before it, where there is one."""

    name: str | None
    text: str
    number: int | float | None
    clock: bool = False
    word: str = ""  # what the part stands in: `gpu-01` around `01`


def shape(body: str) -> str:
    """The text with every variable part replaced by one placeholder, and blanks run together."""
    return _VARIABLE.sub(PLACEHOLDER, _even(body))


def _even(body: str) -> str:
    """Blanks run together, so that padding is no difference, and no placeholder of its own."""
    return " ".join(body.replace(PLACEHOLDER, "\ufffd").split())


def shown_template(template: str) -> str:
    """A template for people and JSON: the placeholder byte as a visible sign."""
    return template.replace(PLACEHOLDER, SHOWN)


def variables(body: str) -> list[Variable]:
    """The changing parts in order. Two texts of one shape have equally many."""
    return [variable(match) for match in split(body)]


def without_clock(text: str) -> str:
    """The text behind a time that it begins with: what there is to compare."""
    found = _VARIABLE.match(text)
    if found is None or found.lastgroup != "clock":
        return text
    return text[found.end() :].lstrip() or text


def split(body: str) -> list[re.Match[str]]:
    """The changing parts in order, as matches: cheaper than `variables` where most are equal."""
    return list(_VARIABLE.finditer(_even(body)))


def variable(match: re.Match[str]) -> Variable:
    """What is known of one part."""
    clock = match.lastgroup == "clock"
    text, start, end = match.string, match.start(), match.end()
    while start and _IN_HOST.match(text, start - 1):
        start -= 1
    while end < len(text) and _IN_HOST.match(text, end):
        end += 1
    name = _NAME.search(match.string, max(0, match.start() - 64), match.start())
    return Variable(
        name=name.group(1) if name else None,
        text=match.group(),
        number=number(match),
        clock=clock,
        word=text[start:end].strip("."),
    )


def number(match: re.Match[str]) -> int | float | None:
    """The number of one part, None for a time and for what is none."""
    return None if match.lastgroup == "clock" else parse_number(match.group())


def parse_number(text: str) -> int | float | None:
    """Int or float of a number, NaN and infinities included, or of `12.5ms`; None if it is none."""
    measure = _MEASURE.match(text)
    if measure is not None:
        text = measure.group(1)
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return None


def finite(values: Iterable[object]) -> list[int | float]:
    """The numbers that distances can be taken of."""
    return [x for x in values if isinstance(x, int | float) and math.isfinite(x)]


def names_its_process(
    variable: Variable, rank: int | None, local_rank: int | None, host: str | None
) -> bool:
    """Whether a value only says who speaks: its own rank or host, a process id, an address."""
    text = variable.text
    if variable.name is not None and variable.name.lower() in _PROCESS_NAMES:
        return True
    if _ADDRESS.match(text):
        return True
    if host is not None and (variable.word or text) in (host, host.split(".", 1)[0]):
        return True
    labelled = _LABELLED.match(text)
    number = labelled.group(1) if labelled else text
    own = {str(value) for value in (rank, local_rank) if value is not None}
    return number in own
