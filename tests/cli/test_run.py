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
def test_a_tenant_that_the_key_is_not_of_starts_nothing(
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("RANKLOG_INGEST_KEY", new_key(INGEST, "acme").render())
    monkeypatch.setenv("RANKLOG_TENANT", "umbrella")
    monkeypatch.setenv("RANKLOG_DESTINATION", "kinesis://logs")
    monkeypatch.setenv("RANKLOG_SPOOL", str(tmp_path))
    assert main(words) == 2
    told = capsys.readouterr().err
    assert "lines are of tenant 'umbrella', and the ingest key is of 'acme'" in told


def test_a_job_that_starts_itself_is_told_once(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANKLOG_INGEST_KEY", new_key(INGEST, "acme").render())
    monkeypatch.setattr(trouble, "counts", type(trouble.counts)())
    for tenant in ("acme", "umbrella", "umbrella"):
        session._tell_contradiction(tenant, "kinesis://logs")
    assert capfd.readouterr().err.count("the ingest key is of 'acme'") == 1
