"""Existing log files to frames: envelopes, time, level, call site, groups. Byte for byte."""

from __future__ import annotations

from typing import Any

__all__ = ["FileReport", "ImportReport", "import_paths"]


def __getattr__(name: str) -> Any:
    """Load on first use: numpy and pyarrow are not needed to know that an importer is there."""
    if name == "import_paths":
        from ranklog.importer.importing import import_paths

        return import_paths
    if name in ("FileReport", "ImportReport"):
        from ranklog.importer import report

        return getattr(report, name)
    raise AttributeError(name)
