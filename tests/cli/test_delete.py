"""`ranklog delete`: asks, tells what it takes, and does it."""

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


def ranklog(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(list(words))
    out, err = capsys.readouterr()
    return code, out, err


def count(capsys: pytest.CaptureFixture[str], store: str) -> int:
    _, out, _ = ranklog(capsys, "search", "--count", "--run", "job", "--store", store, "--json")
    return int(json.loads(out.splitlines()[0])["count"])


def test_it_is_asked_for_unless_it_is_said(capsys: pytest.CaptureFixture[str], store: str) -> None:
    before = count(capsys, store)
    code, _, err = ranklog(capsys, "delete", "rank:0", "--run", "job", "--store", store)
    assert (code, "say --yes" in err) == (2, True)
    code, out, err = ranklog(
        capsys, "delete", "rank:0", "--run", "job", "--store", store, "--dry-run"
    )
    assert (code, "would delete" in err, "lines" in out) == (0, True, True)
    assert count(capsys, store) == before


def test_what_was_deleted_is_gone_and_counted(
    capsys: pytest.CaptureFixture[str], store: str
) -> None:
    before = count(capsys, store)
    words = ("delete", "rank:0", "--run", "job", "--store", store, "--yes", "--json")
    code, out, _ = ranklog(capsys, *words)
    *rows, last = map(json.loads, out.splitlines())
    lines = last["report"]["lines"]
    assert (code, last["report"]["deleted"], sum(row["lines"] for row in rows)) == (0, True, lines)
    assert count(capsys, store) == before - lines
    assert ranklog(capsys, *words)[0] in (1, 3)
    _, _, err = ranklog(capsys, "search", "--run", "job", "--store", store)
    assert f"{lines} lines of rank 0 were deleted" in err


def test_a_run_goes_whole_without_a_query(capsys: pytest.CaptureFixture[str], store: str) -> None:
    code, _, err = ranklog(capsys, "delete", "--run", "job", "--store", store, "--yes")
    assert (code, "all of job@" in err) == (0, True)
    assert count(capsys, store) == 0


def test_a_query_of_a_variable_that_nobody_set_deletes_nothing(
    capsys: pytest.CaptureFixture[str], store: str
) -> None:
    for query in ("", "  "):
        code, _, err = ranklog(capsys, "delete", query, "--run", "job", "--store", store, "--yes")
        assert (code, "the query says nothing" in err) == (2, True)
