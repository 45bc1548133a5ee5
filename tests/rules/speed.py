"""`python -m tests.rules.speed [LINES]`: CPU per line of all presets over three kinds of batches."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ranklog.rules.ruleset import RuleSet
from tests.bench.corpus import corpus, text_lines
from tests.rules.preset_cases import CASES


def measure(name: str, rules: RuleSet, lines: Sequence[str], *, catch_all: bool = False) -> None:
    """Print the best of three, in microseconds of CPU a line; templates are not counted."""
    text = pa.array(lines, pa.string())
    bare = pc.replace_substring_regex(text, r"[A-Za-z]*[0-9][A-Za-z0-9]*", "\x00")
    coded = pc.dictionary_encode(bare)
    tids = np.asarray(coded.indices) + 1
    templates = ["", *coded.dictionary.to_pylist()]
    if catch_all:
        tids, templates = np.zeros_like(tids), [""]
    streams = np.zeros(len(lines), np.int32)
    best, matched = float("inf"), 0
    for _ in range(3):
        start = time.process_time()
        matched = sum(rules.evaluate(text, tids, templates, streams, ()).matched.values())
        best = min(best, time.process_time() - start)
    print(
        f"{name}: {best / len(lines) * 1e6:.2f} us/line "
        f"({len(lines)} lines, {len(templates)} templates, {matched} matches)"
    )


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 400_000
    rules = RuleSet.load()
    spmd: list[str] = []
    for frame in corpus(count, 7):
        lines = text_lines(frame)
        spmd.extend(lines.decode().split("\n")[:-1] if isinstance(lines, bytes) else lines)
    measure("SPMD job, own loggers", rules, spmd)
    metrics = [line for line, _ in CASES] * (20_000 // len(CASES))
    measure("every line a known metric line", rules, metrics)
    megatron = next(line for line, _ in CASES if "elapsed time per iteration" in line)
    measure("every line a Megatron line of ten pairs", rules, [megatron] * 20_000)
    measure("no template known", rules, spmd[:20_000], catch_all=True)


if __name__ == "__main__":
    main()
