"""From `init` and `ranklog run` to `ranklog runs`: what a run says of itself is found by its keys."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from ranklog.client import Client

WAIT_S = 60.0
PROGRAM = """
import os, ranklog
rank = int(os.environ["RANK"])
ranklog.init(
    run="llama",
    config={"optimizer": {"lr": 0.25}, "api_key": "never-to-be-seen"},
    datasets={"c4": "v3"},
    groups={"tp": (rank, 2)},
    owner="ada",
    tags={"team": "nlp"},
)
ranklog.iteration(7)
if rank == 0:
    ranklog.log("step")
    ranklog.attach("trace.json")
ranklog.close(20)
"""


def environment(tmp_path: Path, **more: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("RANKLOG_")}
    return kept | {
        "RANKLOG_SPOOL": str(tmp_path / "spool"),
        "RANKLOG_DESTINATION": f"store:{tmp_path}/store",
        "RANKLOG_LAUNCH": "17",
        **more,
    }


def until(tmp_path: Path, query: str, count: int) -> list[dict[str, Any]]:
    """Rows of runs that the query finds, when they have that many pieces of a manifest."""
    ends = time.monotonic() + WAIT_S
    folder = tmp_path / "store" / "default" / "runs"
    while len(list(folder.glob("*/*/manifests/*"))) < count:
        assert time.monotonic() < ends
        time.sleep(0.1)
    time.sleep(0.5)  # the index follows its manifests
    return Client(store=f"{tmp_path}/store").runs(query, manifest=True).rows


def test_what_ranks_say_in_init_is_found(tmp_path: Path) -> None:
    (tmp_path / "trace.json").write_text("{}")
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            cwd=tmp_path,
            env=environment(tmp_path, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="3"),
        )
        for rank in (0, 1)
    ]
    assert [rank.wait(WAIT_S) for rank in ranks] == [0, 0]
    # rank 0: given, found out, attached; rank 1: who and where
    [row] = until(tmp_path, "config.optimizer.lr>0.2 owner:ada tags.team:nlp datasets.c4:v3", 4)

    assert (row["world_size"], row["topology"]["groups"]) == (3, {"tp": 2})
    assert row["completeness"]["absent"] == [2]
    assert row["config"]["api_key"] == "***"
    manifest = row["manifest"]
    assert manifest["packages"]["msgpack"]
    assert {rank: said["groups"] for rank, said in manifest["ranks"].items()} == {
        "0": {"tp": [0, 2]},
        "1": {"tp": [1, 2]},
    }
    [attachment] = manifest["attachments"]
    assert (attachment["path"], attachment["kind"]) == (
        str(tmp_path / "trace.json"),
        "profiler trace",
    )
    assert (attachment["iteration"], attachment["rank"], attachment["bytes"]) == (7, 0, 2)
    assert "never-to-be-seen" not in json.dumps(row)
    found = Client(store=f"{tmp_path}/store").search("attachment_kind:*", run="llama").lines
    assert [(line.iteration, line.rank) for line in found] == [(7, 0)]


def test_the_configuration_of_ranklog_run_is_found_though_nothing_calls_init(
    tmp_path: Path,
) -> None:
    (tmp_path / "c.json").write_text('{"lr": 0.5}')
    (tmp_path / "train.py").write_text("print('hello')\n")
    command = [sys.executable, "-m", "ranklog.cli.main", "run", "--config", "c.json", "--"]
    done = subprocess.run(
        [*command, sys.executable, "train.py"],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "hello\n")
    [row] = until(tmp_path, "config.lr:0.5 c.json", 2)

    assert row["manifest"]["command"] == [sys.executable, "train.py"]
    assert [Path(file["path"]).name for file in row["manifest"]["files"]] == ["train.py", "c.json"]
    assert row["ranks"] == []
    assert Client(store=f"{tmp_path}/store").runs("config.lr>0.5").rows == []
