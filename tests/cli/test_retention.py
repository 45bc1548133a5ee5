"""`ranklog retention`: rules are set, shown and cleared; apply lets go of what is older."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ranklog.api.sinks import StoreFrames
from ranklog.cli.main import main
from ranklog.store.open import open_store
from tests.api.job import NOW_NS, frame_of


@pytest.fixture
def store(tmp_path: Path) -> str:
    url = str(tmp_path / "store")
    StoreFrames(open_store(url, create=True), lambda: NOW_NS).accept("default", frame_of())
    return url


def test_a_rule_is_set_shown_applied_and_cleared(
    capsys: pytest.CaptureFixture[str], store: str
) -> None:
    at = ("--store", store)
    assert main(["retention", "show", *at]) == 1
    assert main(["retention", "set", "1d", "--run", "j*", "--who", "ada", *at]) == 0
    assert "j*   1d" in capsys.readouterr().out
    assert main(["retention", "apply", "--dry-run", *at]) == 0
    assert "would hide" in capsys.readouterr().out
    assert main(["search", "--run", "job", *at]) == 0
    assert main(["retention", "apply", *at]) == 0
    capsys.readouterr()
    assert main(["search", "--run", "job", *at]) in (1, 3)
    assert "removed by retention" in capsys.readouterr().err
    assert main(["retention", "clear", "--run", "j*", *at]) == 1
    capsys.readouterr()
    assert main(["audit", "--log", "--json", *at]) == 0
    *entries, _ = map(json.loads, capsys.readouterr().out.splitlines())
    assert [one["action"] for one in entries] == [
        "retention.set",
        "retention.apply",
        "retention.clear",
    ]


@pytest.mark.parametrize("words", [["set"], ["set", "soon"], ["set", "1h"], ["apply", "1d"], ["x"]])
def test_what_is_no_rule_is_refused(words: list[str], store: str) -> None:
    assert main(["retention", *words, "--store", store]) == 2
