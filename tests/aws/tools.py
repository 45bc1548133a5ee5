"""`python -m tests.aws.tools` installs what deploys and checks the stack here: SAM, ministack, checkov.

Each has an environment of its own under build/tools/, since they pin what the tests use in other versions. It
takes minutes and some 700 MB; tests marked `deploy` are skipped where they are not. Python 3.13, the functions'
runtime, is needed: layers are built for it, and ministack runs functions with its own interpreter.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "tools"
PYTHON = "python3.13"
REQUIREMENTS = {
    "sam": ("aws-sam-cli==1.170.0",),
    # the translator is what makes resources of AWS::Serverless; ministack has it as an extra among others
    "ministack": ("ministack==1.5.33", "aws-sam-translator>=1.115"),
    "checkov": ("checkov==3.3.30",),
}


def program(tool: str) -> Path | None:
    """A tool's program, None where it is not installed."""
    path = FOLDER / tool / "bin" / tool
    return path if path.exists() else None


def path_variable() -> str:
    """PATH on which the layers' makefiles find the runtime's Python."""
    return f"{FOLDER / 'ministack' / 'bin'}{os.pathsep}{os.environ['PATH']}"


def runtime_python() -> str | None:
    """Python 3.13, on PATH or where pyenv keeps versions."""
    found = shutil.which(PYTHON)
    if found is not None and _works(found):
        return found
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    kept = sorted(versions.glob(f"3.13*/bin/{PYTHON}"))
    return str(kept[-1]) if kept else None


def _works(python: str) -> bool:
    """pyenv's shims are there for versions that are not chosen."""
    return subprocess.run([python, "-V"], capture_output=True).returncode == 0


def install() -> int:
    """Make the environments that are not there yet."""
    python = runtime_python()
    if python is None:
        print(f"no {PYTHON}: install it, or put it on PATH", file=sys.stderr)
        return 2
    for tool, requirements in REQUIREMENTS.items():
        if program(tool) is not None:
            continue
        folder = FOLDER / tool
        subprocess.run([python, "-m", "venv", "--clear", folder], check=True)
        pip = [folder / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *requirements], check=True)
        print(f"{tool}: {program(tool)}")
    return 0


if __name__ == "__main__":
    sys.exit(install())
