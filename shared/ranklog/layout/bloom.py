"""Split-block bloom filters: 32-byte blocks of eight 32-bit words, one bit set in each.

The scheme and its salts are Parquet's (parquet-format, BloomFilter.md). With 10.5 bits a key about
1.1 % of absent keys are reported as present. Checking is pure; building is in `bloom_build`.
"""

from __future__ import annotations

BITS_PER_KEY = 10.5
BLOCK_BYTES = 32
FULL_BLOOM = b"\xff" * BLOCK_BYTES  # may hold anything
SALTS = (
    0x47B6137B,
    0x44974D91,
    0x8824AD5B,
    0xA2B7289D,
    0x705495C7,
    0x2DF1424B,
    0x9EFC4947,
    0x5C6BFB31,
)


def block_count(keys: int) -> int:
    """Blocks of a filter for that many distinct keys; 0 for none."""
    return -(-int(keys * BITS_PER_KEY) // (BLOCK_BYTES * 8))


def may_contain(filters: bytes, offset: int, length: int, key: int) -> bool:
    """Whether the filter at filters[offset:offset+length] may hold the 64-bit key; empty: no."""
    block = (key >> 32) * (length // BLOCK_BYTES) >> 32
    at = offset + block * BLOCK_BYTES
    low = key & 0xFFFFFFFF
    if not length:
        return False
    for salt in SALTS:
        bit = (low * salt & 0xFFFFFFFF) >> 27
        if not filters[at + (bit >> 3)] >> (bit & 7) & 1:
            return False
        at += 4
    return True
