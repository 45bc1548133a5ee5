"""Fixtures that every package's tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

# Real logs lie beside the checkout where a developer has them; RANKLOG_TEST_DATA names another place.
DATA = Path(os.environ.get("RANKLOG_TEST_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real logs, or a skip."""
    if not (DATA / "formats.md").is_file():
        pytest.skip(f"no real logs at {DATA}")
    return DATA
