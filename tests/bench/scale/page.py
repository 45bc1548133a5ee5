"""docs/scale-and-cost.md from the figures of a run: words are here, numbers are the run's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.bench.scale.bill import ALARMS, LOGGED_BYTES, MARK, METRICS, QUESTIONS_A_DAY
from tests.bench.scale.checks import TOLERANCE
from tests.bench.scale.page_mark import from_which_size
from tests.bench.scale.page_table import Figures, number, table
from tests.bench.scale.page_words import CHECK_WORDS, CLOSING, HEAD, KINDS, PEER_WORDS, WAY_WORDS
from tests.bench.scale.pressures import ANSWER_S


def render(found: Figures) -> str:
    """The whole page, which is also what the command prints."""
    parts = [
        HEAD.format(**_of_head(found)),
        found.get("note", ""),
        "## Sizes\n",
        _sizes(found),
        "## Questions\n",
        _questions(found),
        "## The bill\n",
        _bills(found),
        _lines(found),
        "## From which size on\n",
        from_which_size(found),
        "## Beside others\n",
        _others(found),
        "## What breaks first\n",
        _pressures(found),
        "## Measured, and checked\n",
        _rates(found),
        _checks(found),
        CLOSING,
    ]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts if part)


def _of_head(found: Figures) -> Figures:
    return {
        "date": found["date"],
        "machine": found["machine"],
        "aws": found["aws_as_of"],
        "took": f"{found['took_s']:.0f}",
    }


def _by_scenario(found: Figures, rows: Sequence[tuple[str, Any]]) -> str:
    head = ["", *(one["name"] for one in found["scenarios"])]
    return table(head, [(name, *(pick(one) for one in found["scenarios"])) for name, pick in rows])


def _sizes(found: Figures) -> str:
    rows = [
        ("text, MB/s", lambda s: s["bytes_per_s"] / 1e6),
        ("BatchWindowSeconds", lambda s: s["window_s"]),
        ("hosts; tenants", lambda s: f"{s['hosts']:,}; {s['tenants']}"),
        ("frames, MB/s", lambda s: s["wire_bytes_per_s"] / 1e6),
        ("lines of a frame; its bytes", lambda s: _two(s["frame_lines"], s["frame_bytes"])),
        ("shards of on-demand streams", lambda s: s["shards"]),
        ("until a new stream takes it, min", lambda s: s["ramp_s"] / 60),
        ("ingest functions at work", lambda s: s["ingest"]["functions_mean"]),
        ("an invocation, s", lambda s: s["ingest"]["invocation_s"]),
        ("segments a second", lambda s: s["ingest"]["segments_per_s"]),
        ("lines of a segment before compaction", lambda s: s["ingest"]["lines_per_segment"]),
        ("freshness, window 1 s: p50; p99, s", lambda s: _fresh(s, "1.0")),
        ("freshness, window 5 s: p50; p99, s", lambda s: _fresh(s, "5.0")),
        ("freshness, the stack's window: p50; p99, s", lambda s: _fresh(s, str(s["window_s"]))),
        ("compaction: functions at work, all tenants", _compactors),
        ("compaction: text merged, MB/s", _merged),
        ("a tenant's compaction keeps up", lambda s: _yes(s["compaction"]["keeps_up"])),
    ]
    return _by_scenario(found, rows)


def _two(first: float, second: float) -> str:
    return f"{number(first)}; {number(second)}"


def _fresh(scenario: Figures, window: str) -> str:
    one = scenario["freshness"][window]
    return _two(one["p50_s"], one["p99_s"])


def _compactors(scenario: Figures) -> float:
    return float(scenario["compaction"]["compactors_busy"] * scenario["tenants"])


def _merged(scenario: Figures) -> float:
    return float(scenario["compaction"]["merged_text_per_s"] * scenario["tenants"] / 1e6)


def _yes(value: Any) -> str:
    return "yes" if value else "**no**"


def _questions(found: Figures) -> str:
    first = str(min(int(rate) for rate in found["scenarios"][0]["queries"]))
    rows = [
        ("text in scope, GB", lambda s: s["stored"]["text"] / 1e9),
        ("segments in scope", lambda s: s["stored"]["segments"]),
        ("indexes in scope, MB", lambda s: s["stored"]["index_bytes"] / 1e6),
        *(
            (f"{name} of a question", lambda s, key=key: s["queries"][first][key])
            for name, key in (("LISTs", "lists"), ("GETs", "gets"), ("scan tasks", "tasks"))
        ),
        ("PUTs of a question", lambda s: "0"),
        *(
            (f"latency at {int(rate):,} a second: p50; p99, s", _latency(rate))
            for rate in found["scenarios"][0]["queries"]
        ),
        ("a question, $", lambda s: s["question_usd"]),
    ]
    mix = ", ".join(f"{share:.0%} {name}" for name, share in found["mix"].items())
    return f"{KINDS.format(mix=mix)}\n" + _by_scenario(found, rows)


def _latency(rate: str) -> Any:
    def pick(scenario: Figures) -> str:
        one = scenario["queries"][rate]
        if one["p50_s"] is None or one["p50_s"] > ANSWER_S:
            return "–"
        return _two(one["p50_s"], one["p99_s"])

    return pick


def _bills(found: Figures) -> str:
    rows: list[tuple[str, Any]] = [
        (f"{way}, $", lambda s, way=way: s["usd_per_tb"][way])
        for way in found["scenarios"][0]["usd_per_tb"]
    ]
    rows.append(("CloudWatch Logs, $", lambda s: s["cloudwatch_usd"]))
    rows += [
        (f"{way}, part of CloudWatch", lambda s, way=way: _part(s, way))
        for way in found["scenarios"][0]["usd_per_tb"]
    ]
    words = WAY_WORDS.format(
        mark=MARK, asked=QUESTIONS_A_DAY, logged=LOGGED_BYTES, alarms=ALARMS, metrics=METRICS
    )
    return f"{words}\n" + _by_scenario(found, rows)


def _part(scenario: Figures, way: str) -> str:
    """1/N of CloudWatch Logs, bold where the mark is missed or the figure is none."""
    ratio = scenario["cloudwatch_usd"] / scenario["usd_per_tb"][way]
    shown = f"1/{ratio:.1f}" if ratio < 10 else f"1/{ratio:.0f}"
    return shown if ratio >= MARK else f"**{shown}**"


def _lines(found: Figures) -> str:
    """The bills of two ways by line, $ for a TB."""
    parts = []
    for way in ("on demand", "provisioned"):
        names = [item["name"] for item in found["scenarios"][0]["bill"][way]]
        rows = [(name, _line_of(way, at)) for at, name in enumerate(names)]
        parts.append(f"By line, {way}, $ for a TB:\n\n" + _by_scenario(found, rows))
    return "\n".join(parts)


def _line_of(way: str, at: int) -> Any:
    return lambda scenario: round(scenario["bill"][way][at]["usd"], 2)


def _others(found: Figures) -> str:
    size = next(one for one in found["scenarios"] if one["name"] == "1 TB/day")
    rows: list[Sequence[Any]] = [
        (f"ranklog, {way}", "modelled", usd) for way, usd in size["usd_per_tb"].items()
    ]
    for item in size["cloudwatch"]:
        rows.append((f"CloudWatch Logs: {item['name']}", "list price", item["usd"]))
    for peer in found["peers"]:
        how = "measured" if peer["measured"] else f"not measured, [published]({peer['source']})"
        rows.append((peer["name"], how, peer["usd_per_tb"]))
    text = table(("1 TB/day", "", "$ for a TB kept 30 days"), rows)
    told = [
        f"{peer['name']}: {peer['cpu_s_per_byte'] * 1e9:.1f} ns of CPU and "
        f"{peer['stored_per_byte']:.3f} bytes stored for a byte of text."
        for peer in found["peers"]
    ]
    return f"{text}\n{' '.join(told)}\n{PEER_WORDS}"


def _pressures(found: Figures) -> str:
    parts = []
    for scenario in found["scenarios"]:
        rows = [
            (
                one["name"],
                f"{number(one['load'])} {one['unit']}",
                number(one["capacity"]),
                f"{'**' if one['ratio'] > 1 else ''}{number(one['ratio'])}"
                f"{'**' if one['ratio'] > 1 else ''}",
                one["remedy"],
            )
            for one in scenario["pressures"][:6]
        ]
        head = (scenario["name"], "load", "there is", "ratio", "what to do")
        parts.append(table(head, rows))
    return "\n".join(parts)


def _rates(found: Figures) -> str:
    rates = found["rates"]
    wire = rates["wire"]
    rows: list[Sequence[Any]] = [
        ("a line of text, bytes", rates["line_bytes"]),
        *(
            (f"in a frame of {int(size):,} lines, bytes a line", value)
            for size, value in zip(wire["sizes"], wire["values"], strict=True)
        ),
        ("ingest: a batch, ms of CPU", rates["ingest_s"]["fixed"] * 1e3),
        ("ingest: a line of it, µs", rates["ingest_s"]["per"] * 1e6),
        ("merge: ms of CPU; a line of it, µs", _merge_words(rates)),
        ("stored after a merge, bytes for one of text", found["stored_ratio"]),
        ("of that indexes, bytes a line", rates["merged_index"]),
        ("opening an index, ms; and for each MB", _open_words(rates)),
        *(
            (f"planning a segment, µs: {name}", one["plan_s"]["per"] * 1e6)
            for name, one in rates["queries"].items()
        ),
        *(
            (f"scanning: ms a segment, and for each MB of text: {name}", _scan_words(one))
            for name, one in rates["queries"].items()
            if one["hits"]
        ),
        *((f"importing {name}, s", value) for name, value in rates["import_s"].items()),
    ]
    return table(("measured in this run", ""), rows)


def _merge_words(rates: Figures) -> str:
    return _two(rates["merge_s"]["fixed"] * 1e3, rates["merge_s"]["per"] * 1e6)


def _open_words(rates: Figures) -> str:
    return _two(rates["open_s"]["fixed"] * 1e3, rates["open_s"]["per"] * 1e9)


def _scan_words(one: Figures) -> str:
    return _two(one["scan_s"]["fixed"] * 1e3, one["scan_s"]["per"] * 1e9)


def _checks(found: Figures) -> str:
    if not found["checks"]:
        return ""
    rows = [
        (
            one["name"],
            f"{number(one['model'])} {one['unit']}".strip(),
            f"{number(one['measured'])} {one['unit']}".strip(),
            f"{one['ratio']:.2f}" if one["ok"] else f"**{one['ratio']:.2f}**",
        )
        for one in found["checks"]
    ]
    words = CHECK_WORDS.format(tolerance=f"{TOLERANCE:.0%}")
    return f"{words}\n" + table(("local stack", "model", "measured", "ratio"), rows)
