"""`python -m tests [pytest options]`: style, types, then every test. What CI runs.

Exit status is that of the first step that fails; later steps still run, so that one run shows all.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def _run(name: str, *arguments: str) -> int:
    print(f"== {name}", flush=True)
    return subprocess.run([sys.executable, "-m", *arguments], cwd=ROOT, check=False).returncode


def main(arguments: list[str]) -> int:
    """Run all steps; `arguments` go to pytest."""
    workers = str(min(4, os.cpu_count() or 1))
    results = [
        _run("style", "ruff", "check", "."),
        _run("format", "ruff", "format", "--check", "."),
        _run("types", "mypy"),
        _run("tests", "pytest", "-n", workers, "-q", *arguments),
    ]
    return next((result for result in results if result), 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
