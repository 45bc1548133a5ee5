"""Wheels gathered on a machine with a network install and serve on one without."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXTRAS = "engine,api,aws"


def run(*command: str, environ: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As docs/self-hosting.md says: `pip wheel` into a folder."""
    base = tmp_path_factory.mktemp("air")
    source = base / "source"
    source.mkdir()
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "*.so")
    shutil.copytree(ROOT / "shared", source / "shared", ignore=ignored)
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--disable-pip-version-check"]
    run(*pip, "--wheel-dir", str(base / "wheels"), f"{source}[{EXTRAS}]")
    return base / "wheels"


def test_a_folder_of_wheels_is_all_that_a_server_needs(wheels: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", str(tmp_path / "venv"))
    bin_folder = tmp_path / "venv" / "bin"
    # nothing that pip was told elsewhere leads to a network
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PIP_CONFIG_FILE": os.devnull}
    install = [
        str(bin_folder / "python"),
        "-m",
        "pip",
        "install",
        "-q",
        "--no-index",
        "--no-compile",
    ]
    install += ["--disable-pip-version-check", "--find-links", str(wheels)]
    run(*install, f"ranklog[{EXTRAS}]", environ=environ)
    serve = [str(bin_folder / "ranklog"), "serve", "--roles", "api,ingest,compact", "--json"]
    serve += ["--listen", "127.0.0.1:0", "--workers", "1", "--store", str(tmp_path / "store")]
    with subprocess.Popen(serve, env=environ, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = json.loads(process.stdout.readline())["url"]
            with urllib.request.urlopen(f"{url}/v1/health", timeout=60) as answer:
                assert json.load(answer)["status"] == "ok"
        finally:
            process.terminate()
