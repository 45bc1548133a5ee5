"""`ranklog series` and `ranklog plot` over a small store."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from ranklog.cli.main import main
from ranklog.cli.plot_view import Canvas
from ranklog.store.disk import DiskStore
from tests.client.test_search import put
from tests.client.test_series import metric, put_points, record


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


Command = Callable[..., Outcome]


@pytest.fixture
def ranklog(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    store = DiskStore(tmp_path / "store", create=True)
    rows = [metric(r, i, lm_loss=3 - i / 10, elapsed_s=0.5) for i in range(20) for r in (0, 1)]
    put(store, "1", rows)  # type: ignore[arg-type]
    values = [1 + i % 7 / 100 for i in range(60)]
    values[40], values[50] = 9.0, math.nan
    records = [record(2, i, {"grad_norm": v}, layer="h.7") for i, v in enumerate(values)]
    put_points(store, "1", records)  # type: ignore[arg-type]

    def run(command: str, *words: str) -> Outcome:
        where = ["--store", str(tmp_path / "store"), "--tenant", "acme", "--run", "llama"]
        code = main([command, *where, *words])
        return Outcome(code, *capsys.readouterr())

    return run


def test_points_are_rows_with_a_column_per_dimension(ranklog: Command) -> None:
    found = ranklog("series", "grad_norm layer:h.* iteration:39..42")
    assert found.code == 0
    assert [line.split() for line in found.out.splitlines()] == [
        ["time", "rank", "iteration", "series", "layer", "value"],
        ["2026-03-01", "00:00:39", "2", "39", "grad_norm", "h.7", "1.04"],
        ["2026-03-01", "00:00:40", "2", "40", "grad_norm", "h.7", "9"],
        ["2026-03-01", "00:00:41", "2", "41", "grad_norm", "h.7", "1.06"],
    ]


def test_json_is_points_and_the_report_last(ranklog: Command) -> None:
    found = ranklog("series", "loss rank:0", "--max-points", "8", "--json")
    *rows, last = map(json.loads, found.out.splitlines())
    assert {(row["series"], row["written"], row["rank"]) for row in rows} == {
        ("loss", "lm_loss", 0)
    }
    assert last["downsampled"]["read"] == 20 and last["downsampled"]["shown"] == len(rows)
    assert last["report"]["run_ids"] == ["llama@17"]


def test_a_list_names_every_series_with_unit_and_written_name(ranklog: Command) -> None:
    lines = [line.split() for line in ranklog("series", "*", "--list").out.splitlines()]
    assert [line[0] for line in lines[1:]] == ["grad_norm", "iteration_time_ms", "loss"]
    assert lines[2][1:4] == ["0-1", "ms", "40"] and lines[2][-1] == "elapsed_s"


def test_what_stands_out_is_a_table_of_events(ranklog: Command) -> None:
    found = ranklog("series", "*", "--detect")
    assert [line.split()[:5] for line in found.out.splitlines()[1:]] == [
        ["spike", "grad_norm", "2", "layer=h.7", "40"],
        ["nan", "grad_norm", "2", "layer=h.7", "50"],
    ]
    only = ranklog("series", "*", "--detect", "nan")
    assert len(only.out.splitlines()) == 2
    assert "nothing found in 2 series" in ranklog("series", "loss", "--detect").out


def test_a_chart_has_axes_a_legend_and_marks_for_nan(ranklog: Command) -> None:
    found = ranklog("plot", "loss OR grad_norm")
    assert found.code == 0
    for part in ("grad_norm", "loss", "iteration", "rank 0", "rank 1", "×", "59", "1.1"):
        assert part in found.out, part
    assert any("\u2801" <= character <= "\u28ff" for character in found.out)


def test_a_picture_is_a_png(ranklog: Command, tmp_path: Path) -> None:
    path = tmp_path / "out.png"
    found = ranklog("plot", "grad_norm", "--out", str(path), "--detect")
    assert found.code == 0 and path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert ranklog("plot", "loss", "--out", str(tmp_path / "out.gif")).code == 2
    assert ranklog("plot", "absent", "--out", str(path)).code == 2


def test_nothing_found_is_told_by_the_exit_code(ranklog: Command) -> None:
    found = ranklog("series", "absent")
    assert found.code in (1, 3) and "--list" in found.err and found.out == ""
    assert ranklog("series", '"text"').code == 2


def test_a_line_of_a_canvas_goes_from_dot_to_dot() -> None:
    canvas = Canvas(2, 1)
    canvas.line(0, 3, 3, 0, 0)
    assert [cell for cell, _ in canvas.cells(0)] == ["⡠", "⠊"]
