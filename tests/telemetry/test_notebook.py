"""The notebook of the docs runs, and says what it says."""

from __future__ import annotations

from typing import Any

import nbformat

from tests.telemetry.make_notebook import CELLS, PAGE, build, run


def said(book: Any) -> list[list[str]]:
    """What each cell of code prints or is, but for pictures and their bytes."""
    return [
        [
            output.get("text") or output["data"]["text/plain"]
            for output in cell.outputs
            if output.output_type in ("stream", "execute_result")
        ]
        for cell in book.cells
        if cell.cell_type == "code"
    ]


def test_the_stored_page_is_what_a_run_gives_now() -> None:
    stored = nbformat.read(PAGE, as_version=4)  # type: ignore[no-untyped-call]
    assert [cell.source for cell in stored.cells] == [text for _, text in CELLS]
    assert said(stored) == said(run(build()))


def test_the_stored_page_has_its_picture_and_no_error() -> None:
    stored = nbformat.read(PAGE, as_version=4)  # type: ignore[no-untyped-call]
    outputs = [output for cell in stored.cells for output in cell.get("outputs", ())]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert all(output.output_type != "error" for output in outputs)
