"""What to fetch for the rules."""

from __future__ import annotations

import re

from ranklog.spmd.triage.rules import RULES

_SHORT = 9  # literals below are words of ordinary lines: the expression is what fetches


def evidence_pattern() -> str:
    """An RE2 expression that every line matches in which a rule can hold, levels apart."""
    terms: list[str] = []
    for rule in RULES:
        if min(map(len, rule.literals)) >= _SHORT:
            terms += [re.escape(literal) for literal in rule.literals]
        else:
            unnamed = re.sub(r"\(\?P<\w+>", "(?:", rule.pattern.pattern)
            terms.append(f"(?:{unnamed.removeprefix('^').removesuffix('$')})")
    return "|".join(dict.fromkeys(terms))
