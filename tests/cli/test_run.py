"""What `ranklog run` tells before it starts a command."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranklog.cli import run


@pytest.mark.parametrize(
    ("name", "is_installed", "told"),
    [
        ("base.yaml", False, "base.yaml is kept as text"),
        ("base.yml", False, "base.yml is kept as text"),
        ("base.yaml", True, ""),
        ("base.json", False, ""),
        ("base.gin", False, ""),
    ],
)
def test_a_configuration_whose_keys_nobody_can_read_here_is_told(
    name: str, is_installed: bool, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "find_spec", lambda name: object() if is_installed else None)
    said = run._lacking(Path(name))

    assert said.startswith(told)
    assert bool(said) == bool(told)
