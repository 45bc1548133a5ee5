"""The core installs on every supported Python with msgpack and zstandard alone, and logs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROGRAM = """
import logging, sys
import ranklog
from ranklog.stream.builder import FrameBuilder
from ranklog.stream.frames import decode_frame, encode_frame
ranklog.context(rank=3)
frame = FrameBuilder("default", "00", 0, "").build()
assert decode_frame(encode_frame(frame)) == frame
heavy = {"boto3", "pyarrow", "duckdb", "pydantic", "numpy"} & set(sys.modules)
assert not heavy, heavy
print("core works on", sys.version_info[:2])
"""


def _interpreter(version: str) -> str | None:
    """A working python of that version, or None: version managers leave commands that only fail."""
    found = shutil.which(f"python{version}")
    if found is None:
        return None
    probe = subprocess.run([found, "-c", "import ensurepip"], capture_output=True, check=False)
    return found if probe.returncode == 0 else None


@pytest.mark.parametrize("version", ["3.10", "3.11", "3.12", "3.13", "3.14"])
def test_the_core_installs_and_logs(version: str, tmp_path: Path) -> None:
    python = _interpreter(version)
    if python is None:
        pytest.skip(f"no python{version} here")
    source = tmp_path / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(
        ROOT / "shared",
        source / "shared",
        ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"),
    )
    subprocess.run([python, "-m", "venv", str(tmp_path / "venv")], check=True)
    inside = str(tmp_path / "venv" / "bin" / "python")
    install = [inside, "-m", "pip", "install", "-q", "--disable-pip-version-check", str(source)]
    subprocess.run(install, check=True)
    listed = subprocess.run(
        [inside, "-m", "pip", "list", "--format=freeze"], capture_output=True, text=True, check=True
    )
    names = {line.split("==")[0] for line in listed.stdout.splitlines()} - {
        "pip",
        "setuptools",
        "wheel",
    }
    assert names == {"ranklog", "msgpack", "zstandard"}
    subprocess.run([inside, "-c", PROGRAM], check=True, cwd=tmp_path)
