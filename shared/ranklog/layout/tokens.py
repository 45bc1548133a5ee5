"""Templates, variable tokens and letter runs of many lines at once; `tokens_pure` says what they are.

Shapes: b bytes of text; n pieces, piece i is b[off[i]:off[i+1]] (a piece is a line's body or its
envelope); R maximal runs of one character class inside a piece; k variable tokens. Batches of 2-4 k
lines stay in cache: 16 k lines take a fifth longer (docs/storage-format.md, "Measured").
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ranklog.layout import tokens_pure
from ranklog.limits import TOKEN_BYTES_MAX

BATCH_PIECES = 3_072
BATCH_BYTES = 512 * 1024

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]

_M1, _M2 = np.uint64(tokens_pure.M1), np.uint64(tokens_pure.M2)
_LOW = np.uint64(tokens_pure.LOW)
_S32, _S29 = np.uint64(32), np.uint64(29)
# Word masks for a last word of 0..8 bytes.
_MASK = np.array([(1 << 8 * i) - 1 for i in range(8)] + [(1 << 64) - 1], np.uint64)
# What ends a span: its length modulo 8 in the top byte, so that "" and "\0" differ.
_END = np.array([(0x80 + i) << 56 for i in range(8)], np.uint64)
# A word's place in its piece; places past the table share the last.
_PLACES = 65_536
_ORDER = np.random.default_rng(20_260_301).integers(0, 1 << 64, _PLACES, np.uint64)
_SEPARATOR, _LETTER, _DIGIT = 0, 1, 2
_CLASS = bytes(
    _DIGIT if 48 <= c < 58 else _LETTER if 65 <= c < 91 or 97 <= c < 123 else _SEPARATOR
    for c in range(256)
)
_HEX_LETTER = np.array([chr(c) in "abcdefABCDEF" for c in range(256)])


@dataclass(frozen=True, slots=True)
class Extracted:
    """What a batch holds. `hashes`: U64[n], equal exactly where templates are (but for 2^-64).

    `token_piece`, `token_hash`: indexed tokens. `longest`: uint8[n], longest mixed token.
    `run_piece`, `run_hash`, `run_at`, `run_length`: letter runs that are not hex noise, with their
    place in the bytes. `hex_piece`: pieces with runs of only a-f, may repeat.
    """

    hashes: U64
    token_piece: I64
    token_hash: U64
    longest: Bytes
    run_piece: I64
    run_hash: U64
    run_at: I64
    run_length: I64
    hex_piece: I64
