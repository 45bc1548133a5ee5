"""What `ranklog run` tells before it starts a command."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranklog.access.key_text import INGEST, new_key
from ranklog.cli import run
from ranklog.cli.main import main
from ranklog.produce import session, trouble


@pytest.mark.parametrize(
    ("name", "is_installed", "told"),
    [
        ("base.yaml", False, "base.yaml is kept as text"),
        ("base.yml", False, "base.yml is kept as text"),
        ("base.yaml", True, ""),
        ("base.json", False, ""),
        ("base.gin", False, ""),
    ],
)
def test_a_configuration_whose_keys_nobody_can_read_here_is_told(
    name: str, is_installed: bool, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "find_spec", lambda name: object() if is_installed else None)
    said = run._lacking(Path(name))

    assert said.startswith(told)
    assert bool(said) == bool(told)


@pytest.mark.parametrize("words", [["run", "--", "true"], ["agent", "--once"]])
@pytest.mark.parametrize("destination", ["kinesis://logs", "/tmp/ranklog-no-such-stream"])
def test_a_tenant_that_the_key_is_not_of_starts_nothing(
    words: list[str],
    destination: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("RANKLOG_INGEST_KEY", new_key(INGEST, "acme").render())
    monkeypatch.setenv("RANKLOG_TENANT", "umbrella")
    monkeypatch.setenv("RANKLOG_DESTINATION", destination)
    monkeypatch.setenv("RANKLOG_SPOOL", str(tmp_path))
    assert main(words) == 2
    told = capsys.readouterr().err
    assert "lines are of tenant 'umbrella', and the ingest key is of 'acme'" in told


def test_a_job_that_starts_itself_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANKLOG_INGEST_KEY", new_key(INGEST, "acme").render())
    monkeypatch.setattr(trouble, "counts", type(trouble.counts)())
    for tenant in ("acme", "umbrella", "umbrella"):
        session._tell_contradiction(tenant, str(tmp_path / "stream"))
    assert capfd.readouterr().err.count("the ingest key is of 'acme'") == 1


STORES = ["gs://bucket/x", "S3://bucket/x", "ftp://x", "hdfs://n/x", "s3:/bucket", "file:relative"]


@pytest.mark.parametrize("store", STORES)
def test_a_store_that_nobody_can_open_is_no_folder_of_that_name(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for words in (["run", "--store", store, "--", "true"], ["import", "-", "--run", "r"]):
        monkeypatch.setenv("RANKLOG_STORE", store)
        assert main(words) == 2
        assert "no store is kept at" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", ["run", "launch", "tenant", "store", "destination"])
@pytest.mark.parametrize("value", ["", " "])
def test_a_name_that_is_given_as_nothing_starts_nothing(
    option: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", f"--{option}", value, "--", "true"]) == 2
    assert f"--{option} names nothing" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["import", "-"], ["run"]])
@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["--run", "lr=1e-4," * 40], "is too long"),
        (["--run", "r", "--launch", "日" * 60], "is too long"),
        (["--run", "a@b"], "can't be named a@b"),
        (["--run", "a~1"], "can't be named a~1"),
    ],
)
def test_a_name_that_no_command_could_ask_for_is_refused(
    command: list[str],
    names: list[str],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    store = ["--store", str(tmp_path / "s")]
    words = [*command, *names, *store, *(["--", "true"] if command == ["run"] else [])]
    assert main(words) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", ["run", "launch"])
def test_an_import_under_no_name_is_refused(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--run", "r", "--store", str(tmp_path / "s"), f"--{option}", ""]
    assert main(["import", str(tmp_path), *words]) == 2
    assert f"--{option} names nothing" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
