"""The page's part on the mark: from which size on it is kept, and what stands in its way below."""

from __future__ import annotations

from tests.bench.scale.page_table import Figures, number, table
from tests.bench.scale.page_words import APPROACH_WORDS, FLOOR_WORDS, MARK_WORDS
from tests.bench.scale.thresholds import LARGEST, SMALLEST


def from_which_size(found: Figures) -> str:
    """Three tables with their words."""
    return "\n".join((MARK_WORDS, _sizes(found), FLOOR_WORDS, _floors(found), _tried(found)))


def _sizes(found: Figures) -> str:
    windows = sorted({one["window_s"] for one in found["thresholds"]})
    size = {(one["way"], one["window_s"]): one["bytes_per_s"] for one in found["thresholds"]}
    rows = [
        (way, *(size_words(size[way, window_s]) for window_s in windows))
        for way in dict.fromkeys(one["way"] for one in found["thresholds"])
    ]
    return table(("", *(f"window of {window_s:.0f} s" for window_s in windows)), rows)


def size_words(bytes_per_s: float | None) -> str:
    """Text an hour and a day, in the unit that fits."""
    if bytes_per_s is None:
        return f"at none up to {LARGEST / 1e9:.0f} GB/s"
    if bytes_per_s <= SMALLEST * 1.001:
        return "at 1 GB/h already"
    hour, day = bytes_per_s * 3_600 / 1e9, bytes_per_s * 86_400 / 1e12
    return f"{number(hour)} GB/h, {number(day)} TB/day"


def _floors(found: Figures) -> str:
    rows = []
    for way in found["scenarios"][0]["floors"]:
        for part, name in (("stream", "the stream alone"), ("watching", "alarms and metrics")):
            ofs = [one["floors"][way] for one in found["scenarios"]]
            if any(of[part] for of in ofs) and (part == "stream" or way == "direct"):
                cells = [_cell(of[part], of["mark"]) for of in ofs]
                rows.append((f"{way}: {name}", *cells))
    marks = [next(iter(one["floors"].values()))["mark"] for one in found["scenarios"]]
    rows.append(("the mark, 1/15 of CloudWatch", *marks))
    return table(("$ for a TB", *(one["name"] for one in found["scenarios"])), rows)


def _cell(usd: float, mark: float) -> str:
    return f"**{number(usd)}**" if usd > mark else number(usd)


def _tried(found: Figures) -> str:
    rows = [
        (
            f"frames of {one['frame_lines']:,} lines, zstd level {one['level']}",
            one["ratio"],
            one["cpu_ns"],
            one["usd_per_tb"],
        )
        for one in found["approaches"]
    ]
    head = ("", "bytes for one of text", "ns of CPU for it", "on-demand stream, $ for a TB")
    return f"{APPROACH_WORDS}\n{table(head, rows)}"
