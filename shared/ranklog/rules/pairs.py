"""Lists of key-value pairs, exploded for whole columns at once.

Every key in the text is rewritten to SEPARATOR key ASSIGN by one RE2 replacement; splitting at
SEPARATOR then gives, over all lines together, one flat array of pieces with the line each is of.
Only the distinct keys, which are few, are looked at one by one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ranklog.limits import RULE_KEYS_PER_BATCH_MAX, RULE_PAIRS_PER_LINE_MAX
from ranklog.rules.columns import Collector, Rows
from ranklog.rules.names import FLOAT_KEYS, INT_KEYS, ITERATION, stable_name
from ranklog.rules.rule import Pairs
from ranklog.rules.values import parse_values

SEPARATOR, ASSIGN = "\x1f", "\x1e"
_PIECE = f"^(?P<key>[^{ASSIGN}]*){ASSIGN}(?P<value>[^{SEPARATOR}]*)$"


def collect_pairs(pairs: Pairs, rows: Rows, texts: Any, into: Collector) -> int:
    """Read the pairs of every text (a string array, `rows` its rows); return pairs left out."""
    style = pairs.spelling
    marked = pc.replace_substring_regex(texts, style.marker, rf"{SEPARATOR}\1{ASSIGN}")
    pieces = pc.split_pattern(marked, SEPARATOR, max_splits=RULE_PAIRS_PER_LINE_MAX)
    line = np.asarray(pc.list_parent_indices(pieces))
    found = pc.extract_regex(pc.list_flatten(pieces), _PIECE)
    there = np.asarray(found.is_valid().to_numpy(zero_copy_only=False), np.bool_)
    found, line = found.filter(pa.array(there)), line[there]
    names, codes, dropped = _names(pc.struct_field(found, "key"), pairs)
    values = pc.utf8_trim(pc.struct_field(found, "value"), characters=style.trim + "\r")
    kept = np.flatnonzero(codes >= 0)
    _collect(names, codes[kept], rows[line[kept]], values.take(pa.array(kept)), pairs, into)
    return dropped


def _names(keys: Any, pairs: Pairs) -> tuple[list[str], npt.NDArray[np.int64], int]:
    """(distinct keys, per piece the index of its key or -1, pieces left out for want of a key)."""
    coded = pc.dictionary_encode(keys)
    index: dict[str, int] = {}
    code = np.full(len(coded.dictionary), -1, np.int64)
    refused = np.zeros(len(code), np.bool_)
    for i, raw in enumerate(coded.dictionary.to_pylist()):
        folded = " ".join(raw.lower().split())
        name = pairs.names.get(folded) or stable_name(raw)
        if name is not None and name not in ITERATION:
            name += pairs.suffix
        if name in pairs.drop or folded in pairs.drop:
            continue
        if name is None or (name not in index and len(index) >= RULE_KEYS_PER_BATCH_MAX):
            refused[i] = True
            continue
        code[i] = index.setdefault(name, len(index))
    of_piece = np.asarray(coded.indices, np.int64)
    return list(index), code[of_piece], int(refused[of_piece].sum())


def _type_of(name: str, pairs: Pairs) -> str:
    if name in pairs.types:
        return pairs.types[name]
    if name in INT_KEYS or name in ITERATION:
        return "int"
    return "float" if name in FLOAT_KEYS else "number"


def _collect(
    names: list[str],
    codes: npt.NDArray[np.int64],
    rows: Rows,
    values: Any,
    pairs: Pairs,
    into: Collector,
) -> None:
    """Parse per type, then hand out per key, so that parsing cost does not grow with the keys."""
    types = [_type_of(name, pairs) for name in names]
    for type_name in sorted(set(types)):
        chosen = np.array([t == type_name for t in types], np.bool_)
        mine = np.flatnonzero(chosen[codes])
        order = mine[np.argsort(codes[mine], kind="stable")]
        # Pieces stand in line order, so that a key's second value of a line follows its first.
        first = np.ones(len(order), np.bool_)
        first[1:] = (np.diff(codes[order]) != 0) | (np.diff(rows[order].astype(np.int64)) != 0)
        order = order[first]
        typed = parse_values(values.take(pa.array(order)), type_name)
        starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
        for start, stop in zip(starts, [*starts[1:], len(order)], strict=True):
            part = slice(int(start), int(stop))
            into.add(names[codes[order[start]]], rows[order[part]], typed.part(part))
