"""Tokens and templates of one text, for the planner: no numpy. Golden twin of `tokens`.

A token is a maximal run of ASCII letters and digits; everything else separates. A token with a
digit is a variable: the template has the placeholder in its place. A variable with a letter is
*mixed*; mixed tokens that are not float-like (`12e5`) and not longer than TOKEN_BYTES_MAX are
indexed (in blooms, folded to lower case). Letter runs are the maximal runs of letters inside mixed
tokens, three letters or more, folded; those of only a-f are hex noise and are kept as one bit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ranklog.limits import TOKEN_BYTES_MAX

PLACEHOLDER = "\x00"
LETTER_RUN_MIN = 3

_TOKEN = re.compile(r"[0-9A-Za-z]+")
_FLOAT_LIKE = re.compile(r"[0-9]+[eE][0-9]*")
_LETTER_RUN = re.compile(r"[A-Za-z]{3,}")
_HEX_RUN = re.compile(r"[a-fA-F]+")

_MASK = 0xFFFFFFFFFFFFFFFF
# Odd 64-bit constants; any would do, these two are fractional digits of pi.
M1 = 0x243F6A8885A308D3
M2 = 0x13198A2E03707345
LOW = 0x2020202020202020  # folds letters to lower case, leaves digits


def tokenise(text: str) -> Iterator[tuple[int, int]]:
    """(start, end) of each token, in characters, half-open, in order."""
    for match in _TOKEN.finditer(text):
        yield match.span()


def is_variable(token: str) -> bool:
    """Whether the template has the placeholder in this token's place."""
    return _TOKEN.fullmatch(token) is not None and not token.isalpha()


def is_mixed(token: str) -> bool:
    """A token of letters and digits."""
    return is_variable(token) and not token.isdigit()


def is_indexed_token(token: str) -> bool:
    """Whether a row with this token has it in its row group's bloom."""
    return (
        is_mixed(token) and _FLOAT_LIKE.fullmatch(token) is None and len(token) <= TOKEN_BYTES_MAX
    )


def template_of(body: str) -> str:
    """The body with each variable replaced by the placeholder."""
    # Not one expression with the digit in it: that takes quadratic time in a long word.
    return _TOKEN.sub(_static_or_placeholder, body)


def _static_or_placeholder(token: re.Match[str]) -> str:
    word = token.group()
    return word if word.isalpha() else PLACEHOLDER


def mixed_tokens(text: str) -> Iterator[str]:
    """The mixed tokens of a text, in order."""
    return (text[a:b] for a, b in tokenise(text) if is_mixed(text[a:b]))


def longest_mixed(text: str) -> int:
    """Length of the longest mixed token, 0 without one, capped at 255."""
    return min(max(map(len, mixed_tokens(text)), default=0), 255)


def letter_runs(text: str) -> tuple[set[str], bool]:
    """(folded letter runs that are not only a-f, whether there were runs of only a-f)."""
    found = {run.lower() for token in mixed_tokens(text) for run in _LETTER_RUN.findall(token)}
    kept = {run for run in found if not _HEX_RUN.fullmatch(run)}
    return kept, len(kept) < len(found)


def is_hex_run(word: str) -> bool:
    """A word of only a-f: runs like it are kept as one bit."""
    return _HEX_RUN.fullmatch(word) is not None


def _mix(x: int) -> int:
    x = x * M1 & _MASK
    x ^= x >> 32
    x = x * M2 & _MASK
    return x ^ x >> 29


def hash_bytes(data: bytes, fold: int = 0) -> int:
    """64-bit hash over 8-byte little-endian words; `fold` is OR-ed into each (`LOW` or 0)."""
    h = (int.from_bytes(data[:8], "little") | fold & _ones(len(data))) ^ (len(data) * M2 & _MASK)
    h = _mix(h)
    for at in range(8, len(data), 8):
        word = int.from_bytes(data[at : at + 8], "little") | fold & _ones(len(data) - at)
        h = _mix((h * M1 & _MASK) ^ word)
    return h


def _ones(count: int) -> int:
    return (1 << 8 * min(count, 8)) - 1


def token_hash(token: str | bytes) -> int:
    """Hash of an indexed token as blooms know it; case is folded."""
    return hash_bytes(token.encode("ascii") if isinstance(token, str) else token, LOW)


def value_hash(key: str, value: str) -> int:
    """Hash of a string metadata value as blooms know it: key and value, case kept."""
    # A query may hold lone surrogates; no stored value does.
    name, text = (part.encode("utf-8", "surrogatepass") for part in (key, value))
    return _mix(hash_bytes(name) * M1 & _MASK ^ hash_bytes(text))
