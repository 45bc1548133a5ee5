"""Fixtures of the importer's tests."""

from __future__ import annotations

import pytest

from tests.importer.imported import Imports


@pytest.fixture
def imports(monkeypatch: pytest.MonkeyPatch) -> Imports:
    return Imports(monkeypatch)
