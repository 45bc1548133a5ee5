"""Build split-block bloom filters from 64-bit hashes (see `bloom`)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ranklog.layout.bloom import BLOCK_BYTES, SALTS, block_count

_BITS = BLOCK_BYTES * 8
_SALTS = np.array(SALTS, np.uint32)


def build_bloom(keys: npt.NDArray[np.uint64]) -> bytes:
    """The filter of distinct keys, U64[k]; b"" for none."""
    blocks = block_count(len(keys))
    bits = np.zeros(blocks * _BITS, np.bool_)
    first = ((keys >> np.uint64(32)) * np.uint64(blocks) >> np.uint64(32)).astype(np.int64) * _BITS
    low = keys.astype(np.uint32)
    for word, salt in enumerate(_SALTS):
        bits[first + (word * 32) + (low * salt >> np.uint32(27))] = True
    return np.packbits(bits, bitorder="little").tobytes()
