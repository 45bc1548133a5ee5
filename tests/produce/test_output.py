"""A job that goes on hears of a destination that refuses, at its next definition."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from ranklog.produce import output, spool, trouble
from ranklog.produce.output import Output


def test_a_job_that_goes_on_tells_once_that_the_destination_refuses(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trouble, "counts", Counter())
    monkeypatch.setattr(output, "LOOK_EVERY_S", -1.0)
    out = Output(tmp_path, "i", tmp_path / "rings", 1 << 16)
    try:
        capfd.readouterr()
        out.define([1])
        assert capfd.readouterr().err == ""
        spool.tell_denied(tmp_path, "answered 403")
        out.define([1])
        out.define([1])
        assert capfd.readouterr().err == (
            f"ranklog: the destination refuses, lines wait in {tmp_path}: answered 403\n"
        )
    finally:
        out.close()
