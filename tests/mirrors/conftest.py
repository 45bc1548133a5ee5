from __future__ import annotations

from collections.abc import Iterator

import pytest

from ranklog.mirrors import trackers
from ranklog.produce import context, telemetry, trouble
from tests.mirrors.recording import Recorder


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    found = Recorder()
    monkeypatch.setattr(telemetry, "_producer", found)
    monkeypatch.setattr(trackers, "_told_runs", set())
    context.reset()
    trouble.counts.clear()
    yield found
    context.reset()
