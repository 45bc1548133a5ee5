"""Which spool a destination has, and which destinations there are."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from ranklog.errors import BadInput
from ranklog.produce import spool, trouble
from ranklog.produce.identity import Identity
from ranklog.produce.starting import is_known_kind, resolved, spool_of, take_spool
from ranklog.store.open import scheme_of


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
        ("S3://bucket", False),
        ("s3:/bucket", False),
        ("", False),
        (" ", False),
    ],
)
def test_a_destination_of_no_known_kind_is_known_as_such(destination: str, known: bool) -> None:
    assert is_known_kind(destination) is known


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("logs:2026", True),
        ("./s3:x", True),
        ("s3://b/p", True),
        ("file:///logs", True),
        ("gs://bucket/x", False),
        ("S3://bucket", False),
        ("s3:/bucket", False),
        ("gs:/bucket", False),
        ("file:relative", False),
        ("store:logs", False),
        ("a/b://c", False),
        ("   ", False),
        ("", False),
    ],
)
def test_a_store_that_nobody_could_open_is_of_no_known_kind_and_stays_as_it_is(
    name: str, known: bool
) -> None:
    assert is_known_kind(f"store:{name}") is known
    if known:
        scheme_of(name)
    else:
        assert resolved(f"store:{name}") == f"store:{name}"
        with pytest.raises(BadInput, match=r"no store is kept at|an empty store name"):
            scheme_of(name)


@pytest.mark.parametrize(
    ("destination", "same"),
    [
        ("logs", "{here}/logs"),
        ("store:logs/x", "store:{here}/logs/x"),
        ("/logs", "/logs"),
        ("store:s3://b/p", "store:s3://b/p"),
        ("store:", "store:"),
        (" ", "store:"),
        ("https://host/x", "https://host/x"),
    ],
)
def test_a_relative_directory_is_the_jobs_and_not_the_agents(destination: str, same: str) -> None:
    assert resolved(destination) == same.format(here=os.getcwd())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    usual = tmp_path / "spool"
    monkeypatch.setattr(spool, "default_spool", lambda environ: usual)
    return usual


def test_beside_an_agent_that_sends_elsewhere_a_job_has_a_spool_of_its_own(folder: Path) -> None:
    folder.mkdir()
    spool.say_whose(folder, "/logs/a")
    _age(folder)

    assert spool_of("/logs/b", {}) == folder  # that agent has ended
    with spool.collector_lock(folder):
        assert spool_of("/logs/a", {}) == folder
        assert spool_of("/logs/b", {}).parent == folder.parent
        assert spool_of("/logs/b", {}) == spool_of("/logs/b", {}) != folder
        assert spool_of("/logs/b", {"RANKLOG_SPOOL": str(folder)}) == folder
        assert spool_of(None, {}) not in (folder, spool_of("/logs/b", {}))


def test_of_two_that_take_the_usual_spool_for_two_places_only_one_gets_it(folder: Path) -> None:
    assert take_spool("/logs/a", {}) == folder  # no agent yet, and nobody announced
    assert take_spool("/logs/b", {}).parent == folder.parent
    assert take_spool("/logs/b", {}) == take_spool("/logs/b", {}) != folder
    assert take_spool("/logs/a", {}) == folder != take_spool(None, {})


def test_lines_that_wait_for_one_destination_are_not_sent_to_another(
    folder: Path, told: Callable[[], str]
) -> None:
    assert take_spool("/logs/a", {}) == folder
    _leave(folder)
    _age(folder)
    assert take_spool("/logs/b", {}) != folder
    assert told() == (
        f"ranklog: lines of before, for /logs/a, wait in {folder}: ranklog replay {folder} sends them\n"
    )
    (folder / f"{_NAME}.process").unlink()
    (folder / spool.AGENT_STATUS).write_text('{"log": {"frames": 1}}')
    assert take_spool("/logs/b", {}) != folder
    (folder / spool.AGENT_STATUS).unlink()
    assert take_spool("/logs/b", {}) == folder
    assert spool.whose(folder) == "/logs/b"


def test_lines_without_a_destination_go_where_the_next_job_sends_and_that_is_told(
    folder: Path, told: Callable[[], str]
) -> None:
    assert take_spool("/logs/a", {}) == folder
    _age(folder)
    assert take_spool(None, {}) == folder  # all of a is sent, and it is nobody's now
    _leave(folder)
    assert take_spool(None, {}) == folder
    assert told() == ""
    assert take_spool("/logs/b", {}) == folder
    assert told() == (
        f"ranklog: lines of before, of jobs without a destination, wait in {folder}: "
        "they are sent to /logs/b, too\n"
    )


def test_beside_a_job_without_a_destination_one_that_has_one_has_its_own_spool(
    folder: Path, told: Callable[[], str]
) -> None:
    assert take_spool(None, {}) == folder
    _leave(folder, os.getpid())
    assert take_spool("/logs/b", {}) != folder
    assert told() == ""  # they are of a job that runs


def test_in_a_spool_that_is_named_all_goes_to_one_place_and_that_is_told(
    folder: Path, told: Callable[[], str]
) -> None:
    assert take_spool("/logs/a", {}) == folder
    _leave(folder)
    assert take_spool("/logs/b", {"RANKLOG_SPOOL": str(folder)}) == folder
    assert told().endswith(f"for /logs/a, wait in {folder}: they are sent to /logs/b, too\n")
    assert spool.whose(folder) == "/logs/a"  # until an agent says so


def test_to_ask_for_a_spool_changes_nothing(folder: Path) -> None:
    assert spool_of("/logs/a", {}) == folder
    assert not folder.exists()


_NAME = "0123456789abcdef"


@pytest.fixture
def told(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[[], str]:
    """What was said on stderr since it was asked last; every process says a thing once."""
    monkeypatch.setattr(trouble, "counts", Counter())

    def ask() -> str:
        trouble.counts.clear()
        return capfd.readouterr().err

    return ask


def _leave(folder: Path, pid: int = 2**22 - 1) -> None:
    """A process of before, or one that runs, which is not delivered."""
    who = Identity("default", "demo", "l1", 0, "n0", 3, 3, 8)
    spool.announce(folder, spool.ProcessFiles(who, _NAME, pid, spool.announced_start(pid), {}))


def _age(folder: Path) -> None:
    os.utime(folder / spool.DESTINATION, (1.0, 1.0))


def test_why_an_agent_can_not_work_is_told_to_who_waits(tmp_path: Path) -> None:
    assert spool.agent_error(tmp_path) == ""
    spool.tell_agent_error(tmp_path, ValueError("no such place"))
    told_s = (tmp_path / spool.AGENT_ERROR).stat().st_mtime

    assert spool.agent_error(tmp_path, told_s) == "no such place"
    assert spool.agent_error(tmp_path, told_s + 1) == ""
    spool.tell_agent_error(tmp_path, None)
    assert spool.agent_error(tmp_path) == ""
