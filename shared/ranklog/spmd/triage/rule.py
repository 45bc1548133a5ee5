"""What a rule is: words that one of its lines has, and the expression that proves it."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """`pattern` is searched in the line's text; its groups become the sign's data. `fault`: the class
    that it proves."""

    kind: str
    literals: tuple[str, ...]
    pattern: re.Pattern[str]
    fault: str | None = None


def make_rule(kind: str, literals: str, pattern: str, fault: str | None = None) -> Rule:
    """`literals` are parted by bars."""
    return Rule(kind, tuple(literals.split("|")), re.compile(pattern), fault)
