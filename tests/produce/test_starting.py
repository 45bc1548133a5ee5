"""Which spool a destination has, and which destinations there are."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ranklog.produce import spool
from ranklog.produce.starting import is_known_kind, resolved, spool_of


@pytest.mark.parametrize(
    ("destination", "known"),
    [
        ("logs", True),
        ("/logs/12:30", True),
        ("store:logs", True),
        ("kinesis://s?region=x", True),
        ("HTTPS://host", True),
        ("ftp://host", False),
        ("s4://bucket", False),
    ],
)
def test_a_destination_of_no_known_kind_is_known_as_such(destination: str, known: bool) -> None:
    assert is_known_kind(destination) is known


@pytest.mark.parametrize(
    ("destination", "same"),
    [
        ("logs", "{here}/logs"),
        ("store:logs/x", "store:{here}/logs/x"),
        ("/logs", "/logs"),
        ("store:s3://b/p", "store:s3://b/p"),
        ("store:", "store:"),
        ("https://host/x", "https://host/x"),
    ],
)
def test_a_relative_directory_is_the_jobs_and_not_the_agents(destination: str, same: str) -> None:
    assert resolved(destination) == same.format(here=os.getcwd())


def test_beside_an_agent_that_sends_elsewhere_a_job_has_a_spool_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "spool"
    folder.mkdir()
    monkeypatch.setattr(spool, "default_spool", lambda environ: folder)
    (folder / spool.AGENT_STATUS).write_text(json.dumps({"destination": "/logs/a"}))

    assert spool_of("/logs/b", {}) == folder  # that agent has ended
    with spool.collector_lock(folder):
        assert spool_of("/logs/a", {}) == folder
        assert spool_of("/logs/b", {}).parent == tmp_path
        assert spool_of("/logs/b", {}) == spool_of("/logs/b", {}) != folder
        assert spool_of("/logs/b", {"RANKLOG_SPOOL": str(folder)}) == folder
        assert spool_of(None, {}) == folder


def test_why_an_agent_can_not_work_is_told_to_who_waits(tmp_path: Path) -> None:
    assert spool.agent_error(tmp_path) == ""
    spool.tell_agent_error(tmp_path, ValueError("no such place"))
    told_s = (tmp_path / spool.AGENT_ERROR).stat().st_mtime

    assert spool.agent_error(tmp_path, told_s) == "no such place"
    assert spool.agent_error(tmp_path, told_s + 1) == ""
    spool.tell_agent_error(tmp_path, None)
    assert spool.agent_error(tmp_path) == ""
