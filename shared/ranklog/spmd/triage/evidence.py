"""What to fetch for the rules, and what exceptions are by their names."""

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


# An exception's last line; which one it is decides what it proves.
EXCEPTION = re.compile(
    r"^(?P<name>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Empty|Failure|Fault))"
    r"(?:: ?(?P<text>.*)|\s*)$"
)
# Who reports to a dashboard can fail without harm.
TELEMETRY_MODULES = frozenset(
    ["requests", "urllib3", "wandb", "mlflow", "httpx", "aiohttp", "neptune", "comet_ml", "grpc"]
)
# Exceptions of ranks whose peer is gone, or whom somebody ended.
VICTIM_EXCEPTIONS = frozenset(
    [
        *("DistBackendError", "DistNetworkError", "DistStoreError", "ChildFailedError"),
        *("SignalException", "KeyboardInterrupt", "BrokenPipeError", "ConnectionResetError"),
        *("RendezvousConnectionError", "RendezvousClosedError", "ConnectionRefusedError"),
    ]
)
