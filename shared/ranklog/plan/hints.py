"""Errors that show the two spellings a term could have had."""

from __future__ import annotations

from ranklog import limits
from ranklog.errors import BadQuery
from ranklog.plan.lexer import OPERATOR, quote


def lonely(word: str, position: int) -> BadQuery:
    """AND, OR or NOT without a term beside it."""
    return BadQuery(
        f"{word} has no term beside it", hint=f'to find the word write "{word}"', position=position
    )


def too_deep(position: int) -> BadQuery:
    """Over the limit of nesting."""
    return BadQuery(
        f"nested deeper than {limits.QUERY_DEPTH_MAX} levels, which is the limit",
        hint="leave out parentheses that change nothing",
        position=position,
    )


def too_many_terms(position: int) -> BadQuery:
    """Over the limit of terms."""
    return BadQuery(
        f"more than {limits.QUERY_TERMS_MAX} terms, which is the limit",
        hint="a list key:a,b,c is one term, and so is a regex /a|b|c/",
        position=position,
    )


def equals_sign(word: str, key: str, position: int) -> BadQuery:
    """`rank=3`."""
    value = word[len(key) :].lstrip("=")
    return BadQuery(
        f"{word} could be the field {key} or text",
        hint=f"for the field write {key}:{value or '*'}, for the text write {quote(word)}",
        position=position,
    )


def address(word: str, key: str, position: int) -> BadQuery:
    """`s3://bucket/path`."""
    rest = word[word.index(":") + 1 :]
    return BadQuery(
        f"{word} could be an address or the field {key}",
        hint=f"for the text write {quote(word)}, for the field write {key}:{quote(rest)}",
        position=position,
    )


def no_value(key: str, op: str, following: str, position: int) -> BadQuery:
    """`RuntimeError: …`; `following` is the text behind it."""
    after = following.split(")")[0].strip()[:40]
    example = f"{key}{op} {after}" if after else key + op
    return BadQuery(
        f"{key}{op} has no value",
        hint=f"for text write {quote(example)}, for lines that have the field write {key}:*",
        position=position,
    )


def two_operators(key: str, following: str, position: int) -> BadQuery | None:
    """`loss:>5`, as other languages write it; None if no operator follows the colon."""
    comparison = OPERATOR.match(following)
    if comparison is None or comparison[0] == ":":
        return None
    return BadQuery(
        f"{key}:{comparison[0]} has two operators",
        hint=f"write {key}{comparison[0]}…, without the colon",
        position=position,
    )
