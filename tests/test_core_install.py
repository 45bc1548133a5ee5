"""The core installs on every supported Python with msgpack and zstandard alone, and logs; with a
compiler and without one."""

from __future__ import annotations

import os
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
from ranklog.produce.compiled import hot
ranklog.init(run="r", destination="out", spool_dir="spool")
for n in range(3):
    logging.info("line %d", n)
    ranklog.telemetry({"loss": 1.5})
assert ranklog.close() == 0
heavy = {"boto3", "pyarrow", "duckdb", "pydantic", "numpy"} & set(sys.modules)
assert not heavy, heavy
print("compiled" if hot else "python")
"""


def _interpreter(version: str) -> str | None:
    """A working python of that version, or None: version managers leave commands that only fail."""
    found = shutil.which(f"python{version}")
    if found is None:
        return None
    probe = subprocess.run([found, "-c", "import ensurepip"], capture_output=True, check=False)
    return found if probe.returncode == 0 else None


def _can_compile(python: str) -> bool:
    """Whether there is what building an extension takes: a compiler, this Python's headers."""
    ask = "import os, sysconfig as s; print(os.path.exists(s.get_paths()['include'] + '/Python.h'))"
    done = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True)
    return done.stdout == "True\n" and shutil.which("gcc") is not None


@pytest.mark.parametrize(
    ("version", "compiler"),
    [(f"3.{minor}", "any") for minor in range(10, 15)] + [("3.11", "none")],
)
def test_the_core_installs_and_logs(version: str, compiler: str, tmp_path: Path) -> None:
    python = _interpreter(version)
    if python is None:
        pytest.skip(f"no python{version} here")
    source = tmp_path / "source"
    source.mkdir()
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(
        ROOT / "shared",
        source / "shared",
        ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "*.so"),
    )
    subprocess.run([python, "-m", "venv", str(tmp_path / "venv")], check=True)
    inside = str(tmp_path / "venv" / "bin" / "python")
    install = [inside, "-m", "pip", "install", "-q", "--disable-pip-version-check", str(source)]
    environ = os.environ | ({"CC": "/bin/false"} if compiler == "none" else {})
    subprocess.run(install, env=environ, check=True)
    listed = subprocess.run(
        [inside, "-m", "pip", "list", "--format=freeze"], capture_output=True, text=True, check=True
    )
    names = {line.split("==")[0] for line in listed.stdout.splitlines()} - {
        "pip",
        "setuptools",
        "wheel",
    }
    assert names == {"ranklog", "msgpack", "zstandard"}
    done = subprocess.run(
        [inside, "-c", PROGRAM], check=True, cwd=tmp_path, capture_output=True, text=True
    )
    is_tried = version in ("3.11", "3.12", "3.13")
    is_compiled = is_tried and compiler == "any" and _can_compile(python)
    assert done.stdout == ("compiled\n" if is_compiled else "python\n")
    site = next((tmp_path / "venv" / "lib").glob("python*")) / "site-packages" / "ranklog"
    assert not [*site.rglob("*.c"), *site.rglob("*.h")]
    assert len([*site.rglob("*.so")]) == is_compiled
