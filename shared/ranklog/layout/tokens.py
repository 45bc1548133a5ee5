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
from ranklog.limits import LINE_ANALYSED_BYTES_MAX, TOKEN_BYTES_MAX

BATCH_PIECES = 3_072
BATCH_BYTES = 512 * 1024

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]
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


@dataclass(frozen=True, slots=True)
class Extracted:
    """What a batch holds. `hashes`: U64[n], equal exactly where templates are (but for 2^-64).

    `token_piece`, `token_hash`, `token_at`, `token_length`: indexed tokens with their place in the
    bytes. `longest`: uint8[n], longest mixed token. `run_piece`, `run_hash`, `run_at`, `run_length`:
    letter runs that are not hex noise, with their place. `hex_piece`: pieces with runs of only a-f, may
    repeat. `variables`: how many each piece has, `lengths`: of each of them, uint8, at most 255.
    """

    hashes: U64
    token_piece: I64
    token_hash: U64
    token_at: I64
    token_length: I64
    longest: Bytes
    run_piece: I64
    run_hash: U64
    run_at: I64
    run_length: I64
    hex_piece: I64
    variables: I32
    lengths: Bytes


def extract(text: Bytes, offsets: I64) -> Extracted:
    """Templates, tokens and letter runs of n pieces: piece i is text[offsets[i]:offsets[i+1]].

    A piece over LINE_ANALYSED_BYTES_MAX may be taken for an empty one; see `templates.opaque_rows`.
    """
    parts = []
    at, last = 0, len(offsets) - 1
    while at < last:
        fits = int(np.searchsorted(offsets, offsets[at] + BATCH_BYTES, "right")) - 1
        to = max(min(at + BATCH_PIECES, last, fits), at + 1)
        start = offsets[at]
        if offsets[to] - start > max(BATCH_BYTES, LINE_ANALYSED_BYTES_MAX):
            part = _extract_batch(text[:0], np.zeros(2, np.int64))  # one piece, as if it were empty
        else:
            part = _extract_batch(text[start : offsets[to]], offsets[at : to + 1] - start)
        parts.append(_moved(part, at, int(start)))
        at = to
    return _joined(parts)


def _moved(part: Extracted, pieces: int, start: int) -> Extracted:
    for numbers in (part.token_piece, part.run_piece, part.hex_piece):
        numbers += pieces
    for places in (part.token_at, part.run_at):
        places += start
    return part


def _joined(parts: list[Extracted]) -> Extracted:
    parts = parts or [_extract_batch(np.empty(0, np.uint8), np.zeros(1, np.int64))]
    columns = ([getattr(part, name) for part in parts] for name in Extracted.__slots__)
    return Extracted(*(np.concatenate(column) for column in columns))


def _extract_batch(b: Bytes, off: I64) -> Extracted:
    """One batch; `off` begins at 0 and ends at len(b)."""
    words = _words_at_every_byte(b)
    runs = _find_runs(b, off)
    begin, end, letters_first, mixed = _tokens(runs)
    variable = np.flatnonzero(mixed | ~letters_first)
    starts, ends = runs.at.take(begin.take(variable)), runs.at.take(end.take(variable))
    counts = np.searchsorted(starts, off)  # variables before each piece
    hashes = _hash_statics(words, off, starts, ends, counts)

    chosen = np.flatnonzero(mixed.take(variable))
    first, past = begin.take(variable.take(chosen)), end.take(variable.take(chosen))
    piece = np.searchsorted(counts, chosen, "right") - 1
    at, length = starts.take(chosen), ends.take(chosen) - starts.take(chosen)
    keep = np.flatnonzero((length <= TOKEN_BYTES_MAX) & ~_float_like(b, runs, first, past))
    token_at, token_length = at.take(keep), length.take(keep)
    return Extracted(
        hashes,
        piece.take(keep),
        hash_spans(words, token_at, token_length, _LOW),
        token_at,
        token_length,
        _longest(piece, length, len(off) - 1),
        *_letter_runs(words, runs, off),
        np.diff(counts).astype(np.int32),
        np.minimum(ends - starts, 255).astype(np.uint8),
    )


@dataclass(frozen=True, slots=True)
class _Runs:
    """R runs: `at` I64[R+1] starts and the end; `kind` of each; `first`: it begins a piece."""

    at: I64
    kind: Bytes
    first: Flags


def _words_at_every_byte(b: Bytes) -> U64:
    """The little-endian word that starts at every byte; contiguous, so that take() is fast."""
    padded = np.zeros((len(b) + 23) // 8 * 8, np.uint8)
    padded[: len(b)] = b
    view = np.lib.stride_tricks.as_strided(
        padded.view("<u8"), shape=(len(b) + 8,), strides=(1,), writeable=False
    )
    return np.ascontiguousarray(view)


def _find_runs(b: Bytes, off: I64) -> _Runs:
    kinds = np.frombuffer(b.tobytes().translate(_CLASS), np.uint8)
    inner = off[(off > 0) & (off < len(b))]
    starts = np.empty(len(b), np.bool_)
    starts[:1] = True
    np.not_equal(kinds[1:], kinds[:-1], out=starts[1:])
    starts[inner] = True
    at = np.flatnonzero(starts)
    first = np.zeros(len(at), np.bool_)
    first[np.searchsorted(at, inner)] = True
    first[:1] = True
    return _Runs(np.append(at, len(b)), kinds.take(at), first)


def _tokens(runs: _Runs) -> tuple[I64, I64, Flags, Flags]:
    """Per token: its first run, the run past its end, begins with letters, mixed."""
    word = runs.kind > _SEPARATOR
    count = len(word)
    begins = word.copy()
    ends = np.zeros(count + 1, np.bool_)
    if count:
        begins[1:] &= ~word[:-1] | runs.first[1:]
        ends[1:-1] = word[:-1] & (~word[1:] | runs.first[1:])
        ends[-1] = word[-1]
    begin, end = np.flatnonzero(begins), np.flatnonzero(ends)
    # A token of one run is of one class; one of more runs has letters and digits.
    return begin, end, runs.kind.take(begin) == _LETTER, end - begin > 1


def _hash_statics(words: U64, off: I64, starts: I64, ends: I64, counts: I64) -> U64:
    """A hash per piece of the spans between its variables, each with its length and its place."""
    pieces, variables = len(off) - 1, len(starts)
    if not pieces:
        return np.empty(0, np.uint64)
    number = np.arange(pieces)
    before = np.arange(variables) + np.repeat(number, np.diff(counts))
    begin, end = np.empty(variables + pieces, np.int64), np.empty(variables + pieces, np.int64)
    head = number + counts[:-1]  # a piece's first span
    begin[head], begin[before + 1] = off[:-1], ends
    end[before], end[number + counts[1:]] = starts, off[1:]
    length = end - begin
    word_count = (length >> 3) + 1
    past = np.cumsum(word_count)
    start = past - word_count
    place = np.arange(int(past[-1]))
    hashed = words.take((place << 3) + np.repeat(begin - (start << 3), word_count))
    last, rest = past - 1, length & 7
    hashed[last] = (hashed.take(last) & _MASK.take(rest)) | _END.take(rest)
    head_word = start.take(head)
    place -= np.repeat(head_word, np.diff(np.append(head_word, len(place))))
    np.minimum(place, _PLACES - 1, out=place)
    hashed ^= _ORDER.take(place)
    return np.add.reduceat(_mix(hashed), head_word)


def _mix(x: U64) -> U64:
    """In place."""
    x *= _M1
    x ^= x >> _S32
    x *= _M2
    x ^= x >> _S29
    return x


def hash_spans(words: U64, at: I64, length: I64, fold: np.uint64) -> U64:
    """`tokens_pure.hash_bytes` of many spans; `words` from `_words_at_every_byte`."""
    h = words.take(at)
    h |= fold
    h &= _MASK.take(np.minimum(length, 8))
    h ^= length.astype(np.uint64) * _M2
    _mix(h)
    left, done = np.flatnonzero(length > 8), 8
    while len(left):
        rest = length.take(left) - done
        word = words.take(at.take(left) + done)
        word |= fold
        word &= _MASK.take(np.minimum(rest, 8))
        word ^= h.take(left) * _M1
        h[left] = _mix(word)
        done += 8
        left = left[rest > 8]
    return h


def hash_values(key: str, values: Bytes, at: I64, length: I64) -> U64:
    """`tokens_pure.value_hash` of many values of one key."""
    h = hash_spans(_words_at_every_byte(values), at, length, np.uint64(0))
    h ^= np.uint64(tokens_pure.hash_bytes(key.encode()) * tokens_pure.M1 & (1 << 64) - 1)
    return _mix(h)


def _float_like(b: Bytes, runs: _Runs, first: I64, past: I64) -> Flags:
    """Digits, one e, perhaps digits."""
    second = runs.at.take(first + 1)
    single = runs.at.take(first + 2) - second == 1
    digits_first = (runs.kind.take(first) == _DIGIT) & (past - first <= 3)
    found: Flags = digits_first & single & ((b.take(second) | 0x20) == ord("e"))
    return found


def _longest(piece: I64, length: I64, pieces: int) -> Bytes:
    longest = np.zeros(pieces, np.uint8)
    if len(piece):
        heads = np.flatnonzero(np.diff(piece, prepend=-1))
        longest[piece.take(heads)] = np.minimum(np.maximum.reduceat(length, heads), 255)
    return longest


def _letter_runs(words: U64, runs: _Runs, off: I64) -> tuple[I64, U64, I64, I64, I64]:
    """Runs of three letters or more beside a digit of the same token."""
    digit = runs.kind == _DIGIT
    beside = np.zeros(len(digit), np.bool_)
    beside[1:] = digit[:-1] & ~runs.first[1:]
    beside[:-1] |= digit[1:] & ~runs.first[1:]
    beside &= runs.kind == _LETTER
    run = np.flatnonzero(beside)
    at = runs.at.take(run)
    length = runs.at.take(run + 1) - at
    long = length >= tokens_pure.LETTER_RUN_MIN
    at, length = at[long], length[long]
    piece = np.searchsorted(off, at, "right") - 1
    noise = _hex_only(words, at, length)
    word = np.flatnonzero(~noise)
    at_, length_ = at.take(word), length.take(word)
    hashed = hash_spans(words, at_, length_, _LOW)
    return piece.take(word), hashed, at_, length_, piece[noise]


# v + 2 of a letter v = 0..25 has bit 3 or 4 set exactly for v >= 6, g and later.
_A, _TWO, _PAST_F = (np.uint64(byte * 0x0101010101010101) for byte in (0x61, 2, 0x18))


def _hex_only(words: U64, at: I64, length: I64) -> Flags:
    """Which spans of letters are of a-f only, eight letters at a time."""
    hex_only = np.ones(len(at), np.bool_)
    left, done = np.arange(len(at)), 0
    while len(left):
        rest = length.take(left) - done
        word = (words.take(at.take(left) + done) | _LOW) - _A + _TWO
        found: Flags = word & _PAST_F & _MASK.take(np.minimum(rest, 8)) == 0
        hex_only[left] = found
        done += 8
        left = left[found & (rest > 8)]
    return hex_only
