"""`ranklog triage`: the page in a terminal, as JSON, as HTML; its exit codes."""

from __future__ import annotations

import json
import re
import shlex
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from ranklog.cli.main import main
from ranklog.importer import import_paths
from ranklog.store.open import open_store

NOW_NS = 4_102_444_800 * 10**9
EVIL = "<script>alert(1)</script> & \x1b[31m"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """`sick`: rank 1 of three meets an exception whose text is hostile; `well` goes to its end."""
    folder = tmp_path_factory.mktemp("triage")
    for run in ("sick", "well"):
        for rank in range(3):
            lines = [
                f"2026-05-01 10:00:{k:02d},000 INFO train t.py:4 iteration {k} loss 2.5"
                for k in range(8)
            ]
            if run == "sick":
                lost = "torch.distributed.DistBackendError: remote process exited"
                text = f"ValueError: bad {EVIL}" if rank == 1 else lost
                lines += ["Traceback (most recent call last):", '  File "t.py", line 9, in f', text]
            path = folder / run / f"rank-{rank}.log"
            path.parent.mkdir(exist_ok=True)
            path.write_text("\n".join(lines) + "\n")
    url = str(folder / "store")
    opened = open_store(url, create=True)
    for run in ("sick", "well"):
        paths = [str(folder / run)]
        import_paths(paths, store=opened, tenant="default", run=run, now_ns=NOW_NS)
    return url


@pytest.fixture
def triage(store: str, capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*words: str) -> tuple[int, str, str]:
        code = main(["triage", "--store", store, *words])
        return (code, *capsys.readouterr())

    return run


def test_the_page_names_class_suspects_timeline_evidence_and_next_steps(triage: Any) -> None:
    code, out, err = triage("--run", "sick")
    assert code == 0
    assert out.startswith("sick@import: unknown\n")
    assert "rank 1: ValueError: bad" in out
    places = [out.index(f"\n{word}\n") for word in ("suspects", "timeline", "evidence", "next")]
    assert places == sorted(places)
    assert "ranklog compare --run sick@import --ranks 1,0" in out
    assert "docs/runbooks/unknown.md" in out
    assert "run sick@import" in err


def test_each_command_that_is_printed_works_as_it_is_printed(
    triage: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = triage("--run", "sick")
    commands = [row.strip() for row in out.splitlines() if row.startswith("    ranklog ")]
    assert [row.split()[1] for row in commands] == ["search", "search", "compare"]
    for command in commands:
        assert main(shlex.split(command)[1:]) == 0
        assert capsys.readouterr().out


def test_a_healthy_run_is_said_to_be_one(triage: Any) -> None:
    code, out, _ = triage("--run", "well", "--exit-code")
    assert (code, out.splitlines()[0]) == (0, "well@import: none")
    assert "suspects" not in out


@pytest.mark.parametrize(("words", "code"), [([], 0), (["--exit-code"], 4)])
def test_a_suspect_is_an_exit_code_where_it_is_asked_for(
    triage: Any, words: list[str], code: int
) -> None:
    assert triage("--run", "sick", *words)[0] == code


def test_json_is_one_object(triage: Any) -> None:
    _, out, _ = triage("--run", "sick", "--json")
    [line] = out.splitlines()
    found = json.loads(line)
    assert (found["class"], found["suspects"][0]["rank"]) == ("unknown", 1)
    assert {"timeline", "next_steps", "completeness", "report"} <= found.keys()


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


def test_the_html_page_loads_nothing_and_runs_nothing(triage: Any, tmp_path: Path) -> None:
    page = tmp_path / "triage.html"
    triage("--run", "sick", "--html", str(page))
    text = page.read_text()
    tags = _Tags()
    tags.feed(text)
    names = {tag for tag, _ in tags.seen}
    assert not names & {"script", "img", "link", "iframe", "object", "embed", "video", "form"}
    attributes = {name for _, found in tags.seen for name in found}
    assert not {name for name in attributes if name.startswith("on") or name in ("src", "href")}
    assert not re.search(r"url\(|@import [u']|https?://", text)
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp;" in text
    assert "default-src &#x27;none&#x27;" in text


def test_a_run_has_to_be_named(triage: Any) -> None:
    code, _, err = triage()
    assert code == 2
    assert "which run" in err


def test_a_page_that_cannot_be_written_is_an_error(triage: Any, tmp_path: Path) -> None:
    code, _, err = triage("--run", "sick", "--html", str(tmp_path / "no" / "t.html"))
    assert code == 2
    assert "can't write" in err
