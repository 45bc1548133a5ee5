"""Pictures of series: panels by name, and a clear word where matplotlib is missing."""

from __future__ import annotations

import struct
import sys

import pytest

from ranklog.client import Client
from ranklog.client.picture import axis_of, panels_of, render_picture, short_labels
from ranklog.errors import BadInput
from ranklog.store.memory import MemoryStore
from tests.client.test_series import RUN, put_points, record


@pytest.fixture(scope="module")
def client() -> Client:
    store = MemoryStore()
    put_points(
        store,
        "1",
        [
            record(rank, i, {"loss": 3 - i / 10, "grad_norm": float("nan") if i == 7 else 1.0})
            for rank in (0, 1)
            for i in range(20)
        ],
    )
    return Client(store=store, tenant="acme")


def test_a_picture_has_the_size_that_is_asked_for(client: Client) -> None:
    data = render_picture(client.series("*", run=RUN, detect=True), width=640, height=480)
    assert data.startswith(b"\x89PNG\r\n\x1a\n") and struct.unpack(">II", data[16:24]) == (640, 480)


def test_a_panel_is_a_name_and_a_line_what_tells_it_from_the_others(client: Client) -> None:
    panels = panels_of(client.series("*", run=RUN))
    assert {name: short_labels(series) for name, series in panels.items()} == {
        "grad_norm": ["rank 0", "rank 1"],
        "loss": ["rank 0", "rank 1"],
    }
    assert axis_of(panels["loss"])[0] == "iteration"
    folded = client.series("loss", run=RUN, every="5s")
    name, places = axis_of(list(folded))
    assert (name, places[0].tolist()) == ("seconds", [0.0, 5.0, 10.0, 15.0])


def test_without_matplotlib_the_error_says_what_to_install(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    found = client.series("loss", run=RUN)
    with pytest.raises(BadInput) as caught:
        render_picture(found)
    assert "ranklog[plot]" in (caught.value.hint or "")
    assert found._repr_png_() is None and "<table>" in found._repr_html_()
