"""A manifest is in the defs file: at once what is known, soon after what takes time."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ranklog.limits import MANIFEST_BYTES_MAX
from ranklog.model.manifest import unpack_piece
from ranklog.produce.identity import Identity
from ranklog.produce.journal import JournalReader
from ranklog.produce.manifest import Given, append_piece, first_piece, write
from ranklog.produce.records import MANIFEST

LEADER = Identity("acme", "llama", "17", 0, "n0", 0, 0, 16)
OTHER = Identity("acme", "llama", "17", 0, "n0", 3, 3, 16)
HELPER_S = 30.0


def pieces(defs: Path) -> list[dict[str, Any]]:
    reader = JournalReader(defs)
    try:
        found = list(reader.read(final=True))
    finally:
        reader.close()
    assert all(fields[0] == MANIFEST for fields in found)
    return [json.loads(unpack_piece(fields[1])) for fields in found]


def test_the_first_piece_is_there_at_once_and_the_helper_adds_the_rest(tmp_path: Path) -> None:
    (tmp_path / "train.json").write_text('{"lr": 0.1}')
    environ = {
        **os.environ,
        "RANKLOG_CONFIG": str(tmp_path / "train.json"),
        "RANKLOG_TAGS": "a=1,b",
    }
    given = Given(
        groups={"tp": (1, 8), "dp": 2},
        owner="ada",
        tags={"team": "nlp"},
        datasets={"c4": "v3"},
    )
    capture = write(tmp_path / "x.defs", LEADER, given, environ=environ)
    first = pieces(tmp_path / "x.defs")[0]

    assert (first["rank"], first["world_size"], first["host"]) == (0, 16, "n0")
    assert first["groups"] == {"tp": [1, 8], "dp": [2, None]}
    assert (first["owner"], first["datasets"]) == ("ada", {"c4": "v3"})
    assert first["tags"] == {"a": "1", "b": "", "team": "nlp"}

    capture.wait(HELPER_S)
    _, second = pieces(tmp_path / "x.defs")
    assert second["config"] == {"lr": 0.1}
    assert second["packages"]["msgpack"]
    assert second["machine"]["cpus"] == os.cpu_count()
    [file] = [item for item in second["files"] if item["path"].endswith("train.json")]
    assert (file["text"], file["bytes"]) == ('{"lr": 0.1}', 11)
    assert "errors" not in second


def test_the_other_ranks_of_a_host_say_only_who_and_where_they_are(tmp_path: Path) -> None:
    write(tmp_path / "x.defs", OTHER, Given(config={"lr": 1}, groups={"tp": 3}, owner="ada"))

    [piece] = pieces(tmp_path / "x.defs")
    assert set(piece) == {
        "version", "rank", "local_rank", "world_size", "host", "groups", "pid", "started_ns",
    }  # fmt: skip


def test_a_launcher_describes_the_program_it_starts(tmp_path: Path) -> None:
    words = ["srun", "python", "train.py", "--api-key", "x"]
    capture = write(tmp_path / "x.defs", LEADER, Given(), command=words)
    capture.wait(HELPER_S)

    assert pieces(tmp_path / "x.defs")[0]["command"] == [*words[:4], "***"]


def test_what_is_too_long_for_a_piece_is_left_out_and_named(tmp_path: Path) -> None:
    noise = {str(i): os.urandom(20).hex() for i in range(20_000)}
    append_piece(tmp_path / "x.defs", {"rank": 0, "packages": noise, "config": {"lr": 1}})
    append_piece(tmp_path / "x.defs", {"rank": 0, "packages": noise, "config": noise})

    assert pieces(tmp_path / "x.defs") == [
        {"rank": 0, "config": {"lr": 1}, "left_out": ["packages"]},
        {"rank": 0, "left_out": ["packages", "config"]},
    ]
    assert (tmp_path / "x.defs").stat().st_size < MANIFEST_BYTES_MAX


def test_a_manifest_that_is_not_wanted_is_not_written(tmp_path: Path) -> None:
    write(tmp_path / "x.defs", LEADER, Given(), environ={"RANKLOG_MANIFEST": "0"})

    assert not (tmp_path / "x.defs").exists()


@pytest.mark.parametrize(
    "nonsense",
    [
        {"groups": {"tp": [[0, 1]]}},
        {"groups": {"tp": "x"}},
        {"groups": 3},
        {"tags": 3},
        {"datasets": 4},
    ],
)
def test_nonsense_in_one_thing_leaves_the_others(nonsense: dict[str, Any]) -> None:
    piece = first_piece(LEADER, Given({"lr": 0.2}, **nonsense), ["x"], {}, whole=True)

    assert piece["config"] == {"lr": 0.2}
    assert not piece.keys() & nonsense.keys()


def test_a_group_that_is_no_place_leaves_the_other_groups() -> None:
    given = Given(groups={"tp": [[0, 1]], "pp": (1, 2, 3), "dp": (2, 4)})

    assert first_piece(OTHER, given, ["x"], {}, whole=False)["groups"] == {"dp": [2, 4]}


@pytest.mark.parametrize("given", [Given(groups={"tp": "x"}), Given(tags=3), Given(datasets=4)])
def test_nonsense_is_swallowed(
    given: Given, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "x.defs", OTHER if given.groups else LEADER, given).wait(HELPER_S)

    assert "Traceback" not in capfd.readouterr().err


def test_a_full_disk_is_no_error(tmp_path: Path) -> None:
    write(Path("/dev/full"), OTHER, Given())
    write(tmp_path / "no" / "folder" / "x.defs", OTHER, Given())
