"""`ranklog quarantine`, from a stream with a forged frame to its lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ranklog.access.key_text import parse_ingest_key
from ranklog.cli.main import main
from ranklog.stream.disk import DiskStream
from ranklog.stream.frames import encode_frame, seal_frame
from tests.ingest.frames import Row, make_frame

FRAME = encode_frame(make_frame([Row("a line")]))


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[dict[str, object]]]:
    code = main([*words, "--json"])
    return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_an_unsigned_frame_is_listed_shown_and_replayed_once_it_is_allowed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--store", str(tmp_path / "s"), "--tenant", "acme"]
    _, [made] = run(capsys, "keys", "create", "--ingest", *where)
    assert run(capsys, "keys", "require", "on", *where)[1][0]["signed"] == "required"
    stream = DiskStream(tmp_path / "stream")
    stream.put("p", FRAME)
    stream.put("p", seal_frame(FRAME, b"k" * 32))
    stream.put("p", b"junk")
    secret = parse_ingest_key(str(made["key"])).secret
    good = encode_frame(make_frame([Row("sealed")], number=2, first_seq={Row("").stream: 7}))
    stream.put("p", seal_frame(good, secret))
    main(["ingest", str(tmp_path / "stream"), *where[:2]])
    capsys.readouterr()
    code, found = run(capsys, "quarantine", "list", *where)
    assert (code, [item["reason"] for item in found]) == (0, ["unsigned", "forged"])
    assert run(capsys, "quarantine", "list", "--unknown", *where)[1][0]["reason"] == "malformed"
    entry_id = str(found[0]["id"])
    _, [shown] = run(capsys, "quarantine", "show", entry_id, *where)
    frame = shown["frame"]
    assert isinstance(frame, dict)
    assert (frame["tenant"], frame["sealed"], frame["runs"]) == ("acme", False, ["llama"])
    code, done = run(capsys, "quarantine", "replay", *where)
    assert (code, done[-1]) == (
        3,
        {"report": {"replayed": 0, "already": 0, "refused": 2, "left": 0}},
    )
    run(capsys, "keys", "require", "off", *where)
    code, done = run(capsys, "quarantine", "replay", *where)
    assert (code, done[-1]) == (
        3,
        {"report": {"replayed": 1, "already": 0, "refused": 1, "left": 0}},
    )
    assert run(capsys, "quarantine", "replay", entry_id, *where)[1][0]["state"] == "already"
    lines = run(capsys, "search", "*", *where)[1][:-1]
    assert sorted(str(line["text"]) for line in lines) == ["a line", "sealed"]


def test_an_empty_quarantine_is_nothing_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--store", str(tmp_path / "s")]
    main(["keys", "create", *where])
    capsys.readouterr()
    assert run(capsys, "quarantine", "list", *where) == (1, [])
    assert run(capsys, "quarantine", "replay", *where)[0] == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [(["eat"], "no action"), (["show"], "which record?"), (["list", "x"], "takes no 'x'")],
)
def test_what_makes_no_sense_is_one_line(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["quarantine", *words]) == 2
    assert said in capsys.readouterr().err
