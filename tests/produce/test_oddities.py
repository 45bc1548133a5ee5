"""What one process says with odd names and values has nobody's lines set aside, and is stored."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from ranklog.agent.collector import Collector
from ranklog.client import Client
from ranklog.ingest.local import ingest_stream
from ranklog.store.memory import MemoryStore
from ranklog.stream.disk import DiskStream
from tests.produce.oddities import TEXTS, VALUES


def test_every_oddity_is_stored_and_none_has_a_frame_set_aside(tmp_path: Path) -> None:
    own = {name: value for name, value in os.environ.items() if not name.startswith("RANK")}
    done = subprocess.run(
        [sys.executable, "-m", "tests.produce.oddities"],
        env=own | {"RANKLOG_SPOOL": str(tmp_path / "spool")},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    stream, store = DiskStream(tmp_path / "stream", sync=False), MemoryStore()
    assert Collector(tmp_path / "spool", stream).finish(30.0) == 0

    assert [report.bad for report in ingest_stream(stream, store) if report.bad] == []
    client = Client(store=store)
    counts = {
        text: client.count(f'"{text}" channel:logging').count
        for text in ("odd value", "in its context", "inside", "plain")
    }
    assert counts == {
        "odd value": 2 * len(TEXTS) * len(VALUES),
        "in its context": len(TEXTS) * len(VALUES),
        "inside": len(TEXTS),
        "plain": 20,
    }
    found = client.search("", limit=10_000)
    assert len(found.lines) >= sum(counts.values())
    json.dumps(found.to_json(), allow_nan=False).encode()
    assert found.completeness.state == "complete"
