"""Import one text and look at its lines."""

from __future__ import annotations

import os
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from tests.importer.imported import Imports, Row, Stored

# A file's own time where the test does not say: 2025-06-15T12:00:00Z
WRITTEN_NS = 1_749_988_800 * 10**9


def store(imports: Imports, folder: Path, text: str, name: str = "a.log", **options: Any) -> Stored:
    """The stream of a file that holds this text."""
    write(folder, {name: text})
    imports.run(folder / name, **options)
    return imports.streams[-1]


def rows(imports: Imports, folder: Path, text: str, **options: Any) -> list[Row]:
    """The lines of a file that holds this text."""
    return store(imports, folder, text, **options).rows


def write(folder: Path, texts: dict[str, str], written_ns: int = WRITTEN_NS) -> None:
    """Files of one age."""
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        os.utime(path, ns=(written_ns, written_ns))


def iso(ts_ns: int) -> str:
    """`2024-05-01T22:04:12.345678901`, without zeros at the end."""
    moment = datetime.fromtimestamp(ts_ns // 10**9, timezone.utc)
    fraction = f"{ts_ns % 10**9:09d}".rstrip("0")
    return moment.strftime("%Y-%m-%dT%H:%M:%S") + (f".{fraction}" if fraction else "")
