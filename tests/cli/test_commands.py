"""Commands over a real store: what they print, and their exit codes."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from ranklog.api.sinks import StoreFrames
from ranklog.cli.main import main
from ranklog.client import Client
from ranklog.client.follow import Hole
from ranklog.client.tail_items import TailItem
from ranklog.store.memory import MemoryStore
from ranklog.store.open import open_store
from ranklog.stream.disk import DiskStream
from ranklog.stream.frames import encode_frame
from tests.api.job import NOW_NS, frame_of
from tests.ingest.frames import Row, make_frame

ROOT = Path(__file__).parents[2]
MEMORY = MemoryStore()
StoreFrames(MEMORY, lambda: NOW_NS).accept("default", frame_of())


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    url = str(tmp_path_factory.mktemp("cli") / "store")
    sink = StoreFrames(open_store(url, create=True), lambda: NOW_NS)
    sink.accept("default", frame_of())
    return url


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANKLOG_STORE", "RANKLOG_API", "RANKLOG_API_KEY", "RANKLOG_DEBUG"):
        monkeypatch.delenv(name, raising=False)


class Outcome:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def objects(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def ranklog(store: str, capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*words: str) -> Outcome:
        command, *rest = words
        code = main([command, "--store", store, *rest])
        return Outcome(code, *capsys.readouterr())

    return run


# --- search --------------------------------------------------------------------------------------


def test_a_search_prints_lines_with_day_rank_level_and_call_site(ranklog: Any) -> None:
    found = ranklog("search", "odd", "--run", "job")
    assert found.code == 0
    assert found.out == (
        "── 2026-01-01 ──\n00:00:05.000 it 3 rank 2 │ ERROR    loss is odd (train.py:9)\n"
    )
    assert found.err == "run job@l1\n"


def test_json_is_an_object_a_line_and_the_report_last(ranklog: Any) -> None:
    *lines, last = ranklog("search", "--run", "job", "--limit", "2", "--json").objects
    assert [line["kind"] for line in lines] == ["line", "line"]
    assert lines[0]["run_id"] == "job@l1"
    assert last["report"]["bounds"]["defaulted"] is False
    assert (last["truncated"], last["completeness"]["state"]) == (True, "complete")
    assert last["next"]


def test_fields_print_alone(ranklog: Any) -> None:
    found = ranklog("search", "rank:0", "--fields", "text", "--run", "job")
    assert found.out.splitlines() == [f"iteration {k} loss 2.0" for k in range(4)]
    found = ranklog("search", "rank:2", "--fields", "iteration,loss", "--limit", "2", "--json")
    assert found.objects[:-1] == [
        {"iteration": 3, "loss": 2.0},
        {"iteration": 3, "loss": None},
    ]


def test_the_newest_are_kept_and_printed_oldest_first_unless_an_order_is_given(
    ranklog: Any,
) -> None:
    def texts(*words: str) -> list[str]:
        found = ranklog("search", "rank:0", "--limit", "2", "--fields", "text", *words)
        return [line.split()[1] for line in found.out.splitlines()]

    assert texts() == ["2", "3"]
    assert texts("--order", "newest") == ["3", "2"]
    assert texts("--order", "oldest") == ["0", "1"]


def test_a_cut_answer_says_so_and_names_the_next_page(ranklog: Any) -> None:
    found = ranklog("search", "--run", "job", "--limit", "3")
    assert "cut at the 3 newest lines: --limit 0 shows all" in found.err
    cursor = found.err.split("--cursor ")[1].split()[0]
    following = ranklog("search", "--run", "job", "--limit", "3", "--cursor", cursor)
    assert following.code == 0
    assert not set(following.out.splitlines()[1:]) & set(found.out.splitlines()[1:])
    assert "cut" not in ranklog("search", "--run", "job", "--limit", "0").err


@pytest.mark.parametrize(
    ("words", "count"),
    [
        (["-call_site:train.py:7", "--count"], "1\n"),
        (["--count", "iteration", "-rank:2"], "8\n"),
        (["--count", "--rank", "0-1", "--iteration", "..2"], "4\n"),
        (["--count", "--level", "ERROR"], "1\n"),
        (["--count", "--host", "gpu-1", "--attempt", "0"], "4\n"),
        (["--count", "--since", "2026-01-01T00:00:03", "--until", "2026-01-01T00:00:04"], "3\n"),
        (["--count", "--last", "2s"], "4\n"),
        (["--count", "--full-scan", "loss>5"], "1\n"),
        (["--count", "--", "iteration"], "12\n"),
        (["--count", "--since", "2026-01-01T01:00:03", "--tz", "+01:00"], "4\n"),
    ],
)
def test_a_count_is_a_number(words: list[str], count: str, ranklog: Any) -> None:
    assert ranklog("search", *words).out == count


def test_counts_come_by_fields_and_buckets(ranklog: Any) -> None:
    assert ranklog("search", "--by", "level,rank", "--json").objects[:-1] == [
        {"level": "INFO", "rank": 0, "count": 4},
        {"level": "INFO", "rank": 1, "count": 4},
        {"level": "INFO", "rank": 2, "count": 4},
        {"level": "ERROR", "rank": 2, "count": 1},
    ]
    found = ranklog("search", "--every", "2i", "--rank", "2")
    assert found.out.split() == ["iteration", "count", "0", "2", "█" * 27, "2", "3", "█" * 40]


def test_a_plan_is_shown_and_not_run(ranklog: Any) -> None:
    found = ranklog("search", "a b OR c", "--explain", "--run", "job")
    assert found.code == 0
    assert found.out.startswith('query  (("a" AND "b") OR "c")\n') or "OR" in found.out
    found = ranklog("search", "zookeeper", "--explain")
    assert found.code == 0
    assert found.err.startswith("the newest 24 hours that hold data, since ")
    assert "0 of 1 row groups\n    the rest is not read: no template has 'zookeeper'" in found.out
    assert "would read  0 segments, at most 0.00 MB\n" in found.out
    counted = ranklog("search", "--count", "--by", "call_site", "--explain")
    assert "at most 0.00 MB, 1 counted by their indexes\n" in counted.out
    [explained, last] = ranklog("search", "nothing", "--explain", "--json").objects
    assert explained["explain"]["query"]
    assert last["report"]["segments"]["scanned"] == 0
    assert last["completeness"]["skipped_tasks"] == []


def test_a_plan_names_the_index_that_cannot_be_read(
    store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = tmp_path / "store"
    shutil.copytree(store, damaged)
    [index] = damaged.glob("*/index/**/*.idx")
    index.write_bytes(b"cut")
    assert main(["search", "nothing", "--explain", "--store", str(damaged)]) == 0
    told = capsys.readouterr().err
    assert "not complete: partial" in told and index.name in told


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["odd"], 0),
        (["nothing such"], 1),
        (["--count", "nothing"], 1),
        (["(("], 2),
        (["--run", "nobody"], 2),
        (["--order", "sideways"], 2),
        (["--count", "--order", "newest"], 2),
        (["/(/"], 2),
        (["--since", "yesterday"], 2),
        (["--tz", "Mars/Olympus"], 2),
    ],
)
def test_exit_codes_tell_found_nothing_and_error(words: list[str], code: int, ranklog: Any) -> None:
    found = ranklog("search", *words)
    assert found.code == code
    assert (found.err.count("\n") == 1) or code != 2


def test_nothing_found_in_an_answer_that_is_not_complete_is_three(
    tmp_path: Path, capsys: Any
) -> None:
    url = str(tmp_path / "store")
    store = open_store(url, create=True)
    StoreFrames(store, lambda: NOW_NS).accept("default", frame_of())
    [segment] = [item for item in store.list("default/data/") if item.key.endswith(".parquet")]
    store.delete(segment.key)
    assert main(["search", "--store", url, "iteration /x.*y/"]) == 1  # no row group might match
    assert main(["search", "--store", url, "iteration", "--full-scan"]) == 3
    assert "not complete: partial" in capsys.readouterr().err


def test_a_default_of_the_bounds_is_said(ranklog: Any) -> None:
    assert "the newest 24 hours that hold data" in ranklog("search", "odd").err


def test_context_shows_neighbours(ranklog: Any) -> None:
    found = ranklog("search", "odd", "--context", "1", "--json").objects[:-1]
    assert [(line["text"], line["match"]) for line in found] == [
        ("iteration 3 loss 2.0", False),
        ("loss is odd", True),
    ]


# --- listings ------------------------------------------------------------------------------------


def test_runs_are_listed(ranklog: Any) -> None:
    found = ranklog("runs")
    assert found.code == 0
    assert found.out.splitlines()[1].split()[:2] == ["job@l1", "failed"]
    *rows, last = ranklog("runs", "--json").objects
    assert [(row["run_id"], row["lines"]) for row in rows] == [("job@l1", 13)]
    assert "report" in last


def test_runs_are_found_by_what_is_known_of_them(ranklog: Any) -> None:
    assert ranklog("runs", "state:failed", "rank:1").out.split("\n")[1].startswith("job@l1")
    assert ranklog("runs", "state:finished").out == ""
    assert ranklog("runs", "level:ERROR").code == 2
    assert "(no manifest)" in ranklog("runs", "--manifest").out
    assert "no run in scope has the key config.lr" in ranklog("runs", "config.lr>1").err


def test_streams_are_listed(ranklog: Any) -> None:
    assert ranklog("streams").code == 2
    assert [line.split()[0] for line in ranklog("streams", "--run", "job").out.splitlines()] == [
        "rank",
        "0",
        "1",
        "2",
    ]
    assert len(ranklog("streams", "--run", "job", "--json").objects) == 4


def test_call_sites_are_listed(ranklog: Any) -> None:
    rows = ranklog("callsites", "--run", "job", "--json").objects[:-1]
    assert [(row["call_site"], row["count"], row["ranks"]) for row in rows] == [
        ("train.py:7", 12, [0, 1, 2]),
        ("train.py:9", 1, [2]),
    ]
    uneven = ranklog("callsites", "--run", "job", "--uneven", "--json").objects[:-1]
    assert [row["call_site"] for row in uneven] == ["train.py:9"]
    cut = ranklog("callsites", "--run", "job", "--limit", "1")
    assert len(cut.out.splitlines()) == 2
    assert "1 more" in cut.err


def test_call_sites_by_buckets_are_drawn(ranklog: Any) -> None:
    first, site, _ = ranklog("callsites", "--run", "job", "--every", "1i").out.splitlines()
    assert "per 1i" in first
    assert "████" in site


def test_what_every_rank_says_is_muted(ranklog: Any) -> None:
    found = ranklog("search", "--run", "job", "--mute-common", "--fields", "text")
    assert found.out.splitlines() == ["loss is odd"]
    rows = ranklog("callsites", "--run", "job", "--mute-common", "--json").objects[:-1]
    assert [row["call_site"] for row in rows] == ["train.py:9"]


# --- outliers ------------------------------------------------------------------------------------


def test_the_odd_rank_is_shown_with_its_evidence_and_a_map(ranklog: Any, tmp_path: Path) -> None:
    picture = tmp_path / "map.png"
    found = ranklog("outliers", "--run", "job", "--exit-code", "--png", str(picture))
    assert found.code == 4
    assert "odd: rank 2 of 3 ranks, 13 lines" in found.out
    assert "+ its peers do not say this: loss is odd" in found.out
    assert "│" in found.out
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert ranklog("outliers", "--run", "job").code == 0
    *rows, last = ranklog("outliers", "--run", "job", "--json").objects
    assert [(row["rank"], row["evidence"][0]["kind"]) for row in rows] == [(2, "insert")]
    assert last["summary"]["odd"] == [2]


def test_without_an_odd_rank_the_code_is_0(ranklog: Any, tmp_path: Path) -> None:
    words = ["outliers", "--run", "job", "--iteration", "0..2", "--exit-code"]
    found = ranklog(*words)
    assert (found.code, "no odd rank" in found.out) == (0, True)
    assert ranklog("outliers").code == 2
    assert ranklog(*words, "--png", str(tmp_path / "none" / "map.png")).code == 2


# --- compare -------------------------------------------------------------------------------------


def test_ranks_are_compared(ranklog: Any) -> None:
    found = ranklog("compare", "--run", "job", "--ranks", "0,2")
    assert found.code == 0
    assert "1 inserted, 0 deleted, 1 changed" in found.out
    *hunks, last = ranklog("compare", "--run", "job", "--ranks", "0,2", "--json").objects
    assert [(hunk["op"], hunk["iteration"]) for hunk in hunks] == [("change", 2), ("insert", 3)]
    loss = hunks[0]["values"][0]
    assert (loss["name"], loss["0"], loss["2"]) == ("loss", 2.0, 9.5)
    assert "report" in last


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--ranks", "0,1"], 0),
        (["--ranks", "0,1", "--exit-code"], 0),
        (["--ranks", "0,2", "--exit-code"], 4),
        (["--ranks", "0"], 2),
        ([], 2),
    ],
)
def test_a_difference_is_an_exit_code_if_asked_for(
    words: list[str], code: int, ranklog: Any
) -> None:
    assert ranklog("compare", "--run", "job", *words).code == code


# --- export, sql, rules, serve, import, demo -----------------------------------------------------


def test_an_export_writes_files(ranklog: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    found = ranklog("export", "rank:2", "--run", "job", "--out", str(out), "--format", "jsonl")
    assert found.code == 0
    lines = [x for path in out.rglob("*") if path.is_file() for x in path.read_text().splitlines()]
    assert len(lines) == 5
    assert ranklog("export", "rank:2").code == 2


def test_sql_answers_rows(ranklog: Any) -> None:
    statement = "SELECT rank, count(*) AS n FROM lines GROUP BY rank ORDER BY rank"
    found = ranklog("sql", statement, "--run", "job")
    assert found.out.splitlines() == ["rank  n", "   0  4", "   1  4", "   2  5"]
    *rows, last = ranklog("sql", statement, "--run", "job", "--json").objects
    assert rows[2] == {"rank": 2, "n": 5}
    assert last["report"]["rows"] == 3
    assert ranklog("sql").code == 2
    assert ranklog("sql", "SELECT nonsense FROM lines").code == 2


def test_sql_that_never_ends_is_an_error_after_its_time(ranklog: Any) -> None:
    endless = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT max(n) FROM t"
    found = ranklog("sql", endless, "--run", "job", "--timeout", "0.3")
    assert found.code == 2
    assert "the statement took over 0.3 s" in found.err


def test_rules_are_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rules.json"
    rule = {
        "name": "speed",
        "literals": ["tokens/s"],
        "pattern": r"(?P<tokens_per_s>[0-9.]+) tokens/s",
        "types": {"tokens_per_s": "float"},
        "examples": ["ran at 12.5 tokens/s"],
    }
    path.write_text(json.dumps({"version": 1, "rules": [rule]}))
    assert main(["rules", "check", str(path)]) == 0
    out = capsys.readouterr().out
    assert "tokens_per_s = 12.5 (float)" in out
    assert "1 rules are good; 1 of 1 lines matched" in out
    sample = tmp_path / "sample.log"
    sample.write_text("nothing\nat 3 tokens/s\n")
    assert main(["rules", "check", str(path), "--sample", str(sample), "--json"]) == 0
    first, second, last = map(json.loads, capsys.readouterr().out.splitlines())
    assert (first["values"], second["rules"]) == ({}, ["speed"])
    assert last["report"]["rules"] == 1
    path.write_text('{"version": 1, "rules": [{"name": "x", "pattern": "(?=a)"}]}')
    assert main(["rules", "check", str(path)]) == 2
    assert main(["rules", "apply", str(path)]) == 2


def test_an_import_stores_lines_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = str(tmp_path / "store")
    logs = tmp_path / "logs"
    logs.mkdir()
    for rank in range(2):
        text = "".join(f"2026-01-01 00:00:0{k},000 INFO step {k}\n" for k in range(5))
        (logs / f"rank_{rank}.log").write_text(text)
    words = ["import", str(logs), "--run", "old", "--store", url, "--rank-from", r"rank_(\d+)"]
    assert main(words) == 0
    assert "old@import: 10 lines stored" in capsys.readouterr().out
    assert main([*words, "--json"]) == 0
    *files, last = map(json.loads, capsys.readouterr().out.splitlines())
    assert [file["rank"] for file in files] == [0, 1]
    assert (last["report"]["stored"], last["report"]["known"]) == (0, 10)
    assert main([*words, "--json", "--launch", "2"]) == 0
    file = json.loads(capsys.readouterr().out.splitlines()[0])
    assert file["first_ns"] == 1_767_225_600 * 10**9
    assert file["first"] == "2026-01-01T00:00:00.000000000Z"
    assert main(["search", "--store", url, "--run", "old@import", "--rank", "1", "--count"]) == 0
    assert capsys.readouterr().out == "5\n"
    assert main(["search", "--store", url, "--run", "old", "nothing such"]) == 1
    assert main(["import", str(tmp_path / "missing"), "--run", "old", "--store", url]) == 2
    assert main(["import", str(logs), "--store", url]) == 2
    for name in ("a@b", "a~1", "a~ok", "a@*", "@"):
        assert main(["import", str(logs), "--store", url, "--run", name]) == 2


def test_what_files_were_taken_for_is_said_once_and_not_without_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = tmp_path / "logs"
    for rank in range(30):
        folder = logs / "none_x" / "attempt_0" / str(rank)
        folder.mkdir(parents=True)
        (folder / "stdout.log").write_text("a line\n")
    words = ["import", str(logs), "--run", "old", "--store", str(tmp_path / "store")]
    assert main(words) == 0
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 21
    assert said[-1].endswith("more remarks: --json has all, in the files' notes")
    assert main(words) == 0
    assert capsys.readouterr().err == ""


def test_a_part_that_cannot_be_read_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "a.log"
    log.write_text("a line\n")
    where = ["--run", "old", "--store", str(tmp_path / "store")]
    assert main(["import", str(log), *where]) == 0
    segment = next((tmp_path / "store").rglob("*.parquet"))
    segment.write_bytes(b"")
    capsys.readouterr()
    assert main(["search", "line", *where]) == 3
    assert "1 part could not be read (default/data/" in (err := capsys.readouterr().err)
    assert f"{segment.name}: segment is 0 bytes" in err


@pytest.mark.sockets
def test_a_served_store_answers_until_it_is_told_to_stop(store: str) -> None:
    command = [sys.executable, "-m", "ranklog.cli.main", "serve", "--store", store, "--json"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "shared")}
    with subprocess.Popen(
        [*command, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        with urllib.request.urlopen(f"{url}/v1/runs", timeout=20) as response:
            assert json.load(response)["runs"][0]["run_id"] == "job@l1"
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


def test_a_pin_prints_the_same_and_exports_its_evidence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = str(tmp_path / "store")
    sink = StoreFrames(open_store(url, create=True), lambda: NOW_NS)
    sink.accept("default", frame_of())
    where = ["--store", url]
    assert main(["search", "loss", "--run", "job", "--limit", "3", "--pin", *where]) == 0
    first = capsys.readouterr()
    name = re.search(r"ranklog search --pin (pin-[0-9a-f]{16})", first.err)
    assert name is not None
    sink.accept("default", frame_of(ranks=5, number=1))
    assert main(["search", "--pin", name[1], *where]) == 0
    assert capsys.readouterr().out == first.out
    assert main(["search", "--pin", name[1], "--json", *where]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["pin"]["id"] == name[1]
    out = str(tmp_path / "evidence")
    assert main(["export", "--pin", name[1], "--out", out, "--format", "jsonl", *where]) == 0
    assert "certificate.json" in capsys.readouterr().out
    assert len((tmp_path / "evidence" / "lines.jsonl").read_text().splitlines()) == 13
    assert main(["search", "loss", "--pin", name[1], *where]) == 2
    assert main(["search", "loss", "--count", "--pin", *where]) == 2


def test_a_tail_prints_lines_soon_after_their_commit_until_it_is_interrupted(
    tmp_path: Path,
) -> None:
    url = str(tmp_path / "store")
    sink = StoreFrames(open_store(url, create=True), time.time_ns)
    sink.accept("default", frame_of(run="before"))
    command = [sys.executable, "-m", "ranklog.cli.main", "tail", "odd", "--store", url]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "shared")}
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment, **pipes) as process:
        assert process.stdout is not None and process.stderr is not None
        assert "from now on" in process.stderr.readline()
        sink.accept("default", frame_of(run="after", number=1))
        assert process.stdout.readline() == "── 2026-01-01 ──\n"
        assert process.stdout.readline().endswith("ERROR    loss is odd (train.py:9)\n")
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert (process.stdout.read(), process.stderr.read()) == ("", "")


def test_a_followed_stream_is_ingested_until_ctrl_c_and_silent_between(tmp_path: Path) -> None:
    disk, store = DiskStream(tmp_path / "stream", sync=False), str(tmp_path / "store")
    command = [sys.executable, "-m", "ranklog.cli.main", "ingest", str(tmp_path / "stream")]
    command += ["--follow", "--json", "--store", store]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "shared")}
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment, **pipes) as process:
        assert process.stdout is not None and process.stderr is not None
        for number, texts in enumerate((["a"], ["b", "c"]), 1):
            rows = [Row(text) for text in texts]
            frame = make_frame(rows, first_seq={rows[0].stream: number - 1}, number=number)
            disk.put("key", encode_frame(frame))
            assert json.loads(process.stdout.readline())["lines"] == len(texts)
            time.sleep(1.2)  # two looks that find nothing
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert (process.stdout.read(), process.stderr.read()) == ("", "")


def test_a_statement_that_takes_for_ever_ends_with_ctrl_c(store: str) -> None:
    statement = "select sum(a.range * b.range) from range(10000000) a, range(10000000) b"
    command = [sys.executable, "-m", "ranklog.cli.main", "sql", statement, "--store", store]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "shared")}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        time.sleep(3)  # imports are done, DuckDB works
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130


def test_a_tail_shows_holes_and_late_lines(monkeypatch: pytest.MonkeyPatch, ranklog: Any) -> None:
    [line] = Client(store=MEMORY).search("odd", limit=1).lines
    items = [
        TailItem(line),
        TailItem(hole=Hole(line.stream_id, line.run_id, 2, 5, 6)),
        TailItem(hole=Hole(line.stream_id, line.run_id, 2, 7, 9)),
        TailItem(skipped={"segment": "s", "reason": "gone"}),
        TailItem(line, late=True),
    ]
    monkeypatch.setattr(Client, "tail", lambda *args, **given: iter(items))
    found = ranklog("tail", "--limit", "2")
    assert (found.code, found.out.splitlines()[2:]) == (
        0,
        [
            "── rank 2 of job@l1: line 5 has not arrived ──",
            "── rank 2 of job@l1: lines 7-8 have not arrived ──",
            "── can't be read: s: gone ──",
            "00:00:05.000 it 3 rank 2 │ ERROR    late loss is odd (train.py:9)",
        ],
    )
    kinds = [(item["kind"], item.get("late")) for item in ranklog("tail", "--json").objects]
    assert kinds == [
        ("line", None),
        ("gap", None),
        ("gap", None),
        ("skipped", None),
        ("line", True),
    ]


def test_an_open_address_without_keys_is_refused(ranklog: Any) -> None:
    found = ranklog("serve", "--listen", "0.0.0.0:0")
    assert (found.code, "needs keys and TLS" in found.err) == (2, True)
    assert ranklog("serve", "--tls-cert", "only.pem").code == 2


def test_the_demo_shows_its_own_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--store", str(tmp_path / "demo")]) == 0
    out = capsys.readouterr().out
    assert "$ ranklog search" in out
    assert "$ ranklog callsites" in out
    assert "$ ranklog compare" in out
    assert "rank 2" in out


def test_a_local_stream_is_ingested_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    disk, store = DiskStream(tmp_path / "stream", sync=False), str(tmp_path / "store")
    disk.put("key", encode_frame(make_frame([Row("hello")])))
    words = ["ingest", str(tmp_path / "stream"), "--store", store]
    assert main(words) == 0
    assert "1 line ingested" in capsys.readouterr().out
    assert main(words) == 0
    assert "nothing new (--again" in capsys.readouterr().err
    shutil.rmtree(store)
    assert main(words) == 0
    assert "nothing new" in capsys.readouterr().err
    for _ in range(2):
        assert main([*words, "--again"]) == 0
        capsys.readouterr()
    assert main(["search", "hello", "--store", store, "--tenant", "acme", "--count"]) == 0
    assert capsys.readouterr().out == "1\n"
    assert main(["ingest", str(tmp_path), "--store", store]) == 2
    assert "holds no local stream" in capsys.readouterr().err
