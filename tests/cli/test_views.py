"""What people see."""

from __future__ import annotations

from datetime import timezone
from typing import Any

import pytest

from ranklog.answer.render import line_json
from ranklog.cli.compare_view import show_comparison
from ranklog.cli.console import Console
from ranklog.cli.line_view import LineView
from ranklog.cli.tables import cells, fit, fit_end, print_table, shown_bytes, shown_ranks
from ranklog.cli.times import shown_span, shown_time, spread_view
from ranklog.spmd.compare import Side, compare
from ranklog.spmd.hunks import Comparison
from tests.spmd.lines import column, line


def test_lines_have_a_day_a_clock_a_rank_gutter_and_a_level(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = [
        line("ready", rank=3, ts_ns=1_500_000_000, level=20, iteration=7, site="t.py:5"),
        line("died", rank=12, ts_ns=86_400 * 10**9, level=40),
    ]
    lines[1].match = False
    view = LineView(Console(), timezone.utc, lines)
    for item in lines:
        view.show(item)
    assert capsys.readouterr().out == (
        "── 1970-01-01 ──\n"
        "00:00:01.500 it 7 rank  3 │ INFO     ready (t.py:5)\n"
        "── 1970-01-02 ──\n"
        "00:00:00.000 it   rank 12 ┊ ERROR    died\n"
    )


def rows(found: Comparison) -> list[dict[str, Any]]:
    return [hunk.to_json(line_json, str) for hunk in found.hunks]


def test_ranks_stand_side_by_side_with_what_changed_below(
    capsys: pytest.CaptureFixture[str],
) -> None:
    sides = [
        Side("0", column(0, (4, "loss 2.5"), (4, "saved"))),
        Side("7", column(7, (4, "loss 97.5"), (5, "retry"))),
    ]
    console = Console()
    show_comparison(console, rows(compare(sides, peers=column(1, (4, "loss 2.5")))))
    out = capsys.readouterr().out
    wide = (console.width - 5) // 2
    assert out == (
        f"  {'rank 0':<{wide}} │ rank 7\n"
        "── iteration 4 ──\n"
        f"~ {'loss 2.5':<{wide}} │ loss 97.5\n"
        "    loss  0: 2.5, 7: 97.5  (peers' median 2.5, off by 95)\n"
        f"- {'saved':<{wide}} │\n"
        "── iteration 5 ──\n"
        f"+ {'':<{wide}} │ retry\n"
        "1 inserted, 1 deleted, 1 changed\n"
    )


def test_eight_ranks_that_do_not_fit_side_by_side_stand_below_each_other(
    capsys: pytest.CaptureFixture[str],
) -> None:
    sides = [Side(str(k), column(k, "same", *(["odd"] if k == 5 else []))) for k in range(8)]
    show_comparison(Console(), rows(compare(sides)))
    assert "+ rank 5 │ odd\n" in capsys.readouterr().out


def test_a_table_is_as_wide_as_its_values(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(Console(), ["name", "count"], [["long name", 3], ["日本", None]])
    assert capsys.readouterr().out == "name       count\nlong name      3\n日本           -\n"


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("日本語", 4, "日…"), ("abc", 0, "")],
)
def test_a_text_is_cut_to_columns_not_characters(text: str, width: int, shown: str) -> None:
    assert fit(text, width) == shown
    assert cells(shown) <= max(width, 0)


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [("abc", 3, "abc"), ("/a/b.log", 6, "…b.log"), ("日本語", 4, "…語"), ("abc", 0, "")],
)
def test_a_path_is_cut_from_the_left(text: str, width: int, shown: str) -> None:
    assert fit_end(text, width) == shown


def test_a_table_on_a_terminal_cuts_the_named_column(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    console = Console()
    console.terminal = True
    monkeypatch.setenv("COLUMNS", "30")
    path = "/logs/of/a/job/attempt_0/0/stderr.log"
    print_table(console, ["file", "lines"], [[path, 3]], wide=0, keep_end=True)
    assert capsys.readouterr().out.splitlines()[1] == "…attempt_0/0/stderr.log      3"


def test_a_table_that_is_too_wide_loses_from_its_widest_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    console = Console()
    monkeypatch.setenv("COLUMNS", "50")
    rows = [["short", "x" * 90, 3, "y" * 30]]
    heads = ["a", "b", "n", "c"]
    print_table(console, heads, rows)
    assert "x" * 90 in capsys.readouterr().out
    console.terminal = True
    print_table(console, heads, rows)
    assert capsys.readouterr().out.splitlines()[1] == f"short  {'x' * 19}…  3  {'y' * 19}…"
    monkeypatch.setenv("COLUMNS", "60")
    print_table(console, heads, rows)
    assert max(map(cells, capsys.readouterr().out.splitlines())) <= 60


def test_times_of_several_days_show_their_day() -> None:
    day = 86_400 * 10**9
    assert spread_view([day, None, day + 10**9], timezone.utc)(day) == "00:00:00.000"
    view = spread_view([day, 3 * day], timezone.utc)
    assert (view(day), view(None)) == ("1970-01-02 00:00:00", "-")


def test_amounts_ranks_and_times_are_short() -> None:
    assert [shown_bytes(n) for n in (512, 1536, 3 << 30)] == ["512 B", "1.5 KiB", "3.0 GiB"]
    assert [shown_ranks(r) for r in ([], [3], [0, 1, 2, 5, 7, 8])] == ["-", "3", "0-2,5,7-8"]
    assert shown_ranks(range(0, 1000, 2)) == "0,2,4,6,8,10,12,14,… (500 ranks)"
    assert [shown_span(int(s * 10**9)) for s in (0.25, 12.5, 200, 7500, 270_000)] == [
        "250ms",
        "12.5s",
        "3m20s",
        "2h05m",
        "3d03h",
    ]
    assert shown_time(None, timezone.utc) == "-"


def test_a_terminal_sees_no_escape_of_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console()
    text = "\x1b[31mred\x1b]0;title\x07 \x9b2J\x07end"
    assert console.safe(text) == text
    console.terminal = True
    assert console.safe(text) == "red \\x9b2J\\x07end"


def test_no_colour_where_it_is_not_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console()
    assert console.paint("x", "red") == "x"
    console.colour = True
    assert console.paint("x", "red") == "\x1b[31mx\x1b[0m"
