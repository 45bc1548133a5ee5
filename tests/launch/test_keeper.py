from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from ranklog.launch.keeper import WAIT_MAX_S, AgentKeeper
from ranklog.produce import spool, trouble


class Host:
    """A host where agents are started, and may stay."""

    def __init__(self, *, stays: bool) -> None:
        self.now = 100.0
        self.there = False
        self.started: list[float] = []
        self._stays = stays

    def keeper(self, destination: str | None = "d") -> AgentKeeper:
        return AgentKeeper(
            Path("s"),
            destination,
            clock=lambda: self.now,
            start=self._start,
            is_there=lambda folder: self.there,
        )

    def _start(self, folder: Path, destination: str | None) -> None:
        self.started.append(self.now)
        self.there = self._stays


def look_for(host: Host, keeper: AgentKeeper, seconds: float) -> None:
    until = host.now + seconds
    while host.now < until:
        keeper.look()
        host.now += 0.5


def test_an_agent_that_dies_is_started_again_at_the_next_look() -> None:
    host = Host(stays=True)
    keeper = host.keeper()
    look_for(host, keeper, 10)
    host.there = False
    look_for(host, keeper, 10)

    assert host.started == [100.0, 110.0]


def test_that_the_destination_refuses_is_told_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trouble, "counts", Counter())
    keeper = AgentKeeper(tmp_path, "d", is_there=lambda folder: True)
    keeper.look()
    assert capfd.readouterr().err == ""
    spool.tell_denied(tmp_path, "answered 403")
    keeper.look()
    keeper.look()

    assert capfd.readouterr().err == (
        f"ranklog: the destination refuses, lines wait in {tmp_path}: answered 403\n"
    )
    spool.tell_denied(tmp_path, "")
    assert spool.denied(tmp_path, 0.0) == ""


def test_one_that_can_not_work_is_tried_ever_more_seldom_and_the_user_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    host = Host(stays=False)
    look_for(host, host.keeper(), 600)

    assert host.started[:4] == [100.0, 102.0, 106.0, 114.0]
    assert host.started[-1] - host.started[-2] == WAIT_MAX_S
    assert capsys.readouterr().err.count("no agent stays") == 1


def test_without_a_destination_none_is_started() -> None:
    host = Host(stays=True)
    look_for(host, host.keeper(None), 5)

    assert host.started == []
