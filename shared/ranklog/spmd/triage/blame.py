"""An explanation of a failure, and whom signs that say the same blame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ranklog.model.answer import Line
from ranklog.spmd.triage.facts import Facts
from ranklog.spmd.triage.read import Sign
from ranklog.spmd.triage.suspects import Suspect, everybody, of_host, of_ranks

# The same fault on so many ranks is on all: those that are missing were ended before they met it.
ALL_SHARE, ALL_SHARE_AT_START = 0.5, 0.3
LINES_MAX = 6
_WORDS_MAX = 160  # characters


@dataclass(slots=True)
class Cause:
    """One explanation: a class and whom it blames."""

    fault: str
    score: float
    why: str
    suspect: Suspect
    first_ns: int


def shown_words(text: str) -> str:
    """What a line says, short enough for a reason."""
    text = text.strip()
    return text if len(text) <= _WORDS_MAX else text[: _WORDS_MAX - 1] + "…"


def ranks_of(signs: Sequence[Sign]) -> frozenset[int]:
    return frozenset(rank for sign in signs for rank in sign.ranks)


def whom(signs: Sequence[Sign], facts: Facts, score: float) -> tuple[Suspect, bool]:
    """All alike, or the ranks that say it."""
    ranks = ranks_of(signs)
    nobody = [sign for sign in signs if not sign.ranks]
    lines = samples(signs)
    words = shown_words(signs[0].line.text[signs[0].line.body_at :])
    share = ALL_SHARE if facts.progress.began else ALL_SHARE_AT_START
    alike = len(ranks) > 1 and len(ranks) >= share * facts.world
    alike = alike and facts.places.whole_host(ranks) is None
    if alike or (not ranks and _repeated(nobody)):
        return everybody(score, words, lines), True
    if ranks:
        return of_ranks(facts.places, ranks, score, words, lines), False
    hosts = {sign.host for sign in signs if sign.host is not None}
    left = _by_codes(facts)
    if left is not None:
        return of_ranks(facts.places, left, score * 0.9, words, lines), False
    if len(hosts) == 1:
        return of_host(facts.places, hosts.pop(), score * 0.9, words, lines), False
    return everybody(score * 0.8, words, lines), True


def _repeated(signs: Sequence[Sign]) -> bool:
    """Whether several processes said it in a console without labels."""
    texts = sum(sign.line.text.count(sign.key[:24]) or 1 for sign in signs)
    return max(texts, len(signs)) > 2


def _by_codes(facts: Facts) -> frozenset[int] | None:
    """The ranks that ended by themselves, where the launcher ended the others."""
    codes = facts.codes()
    own = frozenset(rank for rank, code in codes.items() if code not in (0, -15))
    return own if own and len(own) * 4 <= max(4, len(codes)) else None


def samples(signs: Sequence[Sign]) -> list[Line]:
    seen: dict[frozenset[int], Line] = {}
    for sign in signs:
        seen.setdefault(sign.ranks, sign.line)
    return list(seen.values())[:LINES_MAX]
