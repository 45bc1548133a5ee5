"""`ranklog keys`, and `ranklog serve --keys store` with what it made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ranklog.access.api_keys import StoreKeys
from ranklog.cli.main import main
from ranklog.errors import Unauthorized
from ranklog.store.open import open_store


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[dict[str, object]]]:
    code = main(["keys", *words, "--json"])
    return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_key_is_made_listed_and_revoked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--store", str(tmp_path / "s"), "--tenant", "acme"]
    code, [made] = run(capsys, "create", "--scope", "read,write", "--expires", "90d", *where)
    assert (code, made["scopes"], made["tenant"]) == (0, ["read", "write"], "acme")
    key, key_id = str(made["key"]), str(made["id"])
    grant = StoreKeys(open_store(str(tmp_path / "s"))).grant_of(key)
    assert grant is not None and grant.tenant == "acme"
    code, [listed] = run(capsys, "list", *where)
    assert (code, listed["id"], listed["state"]) == (0, key_id, "active")
    assert "key" not in listed
    assert run(capsys, "revoke", key_id, *where)[1][0]["state"] == "revoked"
    with pytest.raises(Unauthorized):
        StoreKeys(open_store(str(tmp_path / "s"))).grant_of(key)
    assert run(capsys, "list", *where)[1][0]["state"] == "revoked"


def test_a_newer_ingest_key_rotates_the_one_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--store", str(tmp_path / "s")]
    for _ in range(2):
        assert str(run(capsys, "create", "--ingest", *where)[1][0]["key"]).startswith("rli_")
    states = [found["state"] for found in run(capsys, "list", *where)[1]]
    assert states == ["rotated", "active"]


def test_a_key_goes_to_stdout_alone_and_the_rest_to_stderr(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["keys", "create", "--store", str(tmp_path / "s")]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("rlk_") and shown.out.count("\n") == 1
    assert "shown this once" in shown.err and shown.out.strip() not in shown.err


def test_an_empty_list_is_nothing_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--store", str(tmp_path / "s")]
    run(capsys, "create", *where, "--tenant", "other")
    assert run(capsys, "list", *where) == (1, [])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["make"], "no action 'make'"),
        (["revoke"], "which?"),
        (["require", "maybe"], "on or off"),
        (["require", "on"], "has no ingest key"),
        (["list", "x"], "list takes no 'x'"),
        (["create", "--scope", "root"], "no scope 'root'"),
        (["create", "--expires", "soon"], "--expires"),
        (["create", "--ingest", "--scope", "read"], "has no scope"),
        (["create", "--scope", ""], "a key without a scope"),
        (["create", "--scope", ","], "a key without a scope"),
        (["create", "--ingest", "--scope", ""], "has no scope"),
        (["create", "--tenant", ""], "--tenant names nothing"),
        (["create", "--ingest", "--tenant", ""], "--tenant names nothing"),
        (["revoke", "0123456789ab"], "no ingest key"),
    ],
)
def test_what_makes_no_sense_is_one_line_with_the_next_step(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = str(tmp_path / "s")
    assert main(["keys", "create", "--store", store]) == 0
    capsys.readouterr()
    assert main(["keys", *words, "--store", store]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1
