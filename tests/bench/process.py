"""`python -m tests.bench.process`: `ranklog search` as a whole process over a warm disk.

python -m tests.bench.process [--folder .bench]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from tests.bench.asking import median_s
from tests.bench.corpus import NEEDLE
from tests.bench.figures import Figure, show
from tests.bench.suite import RUN

RANKLOG = Path(sys.executable).with_name("ranklog")


def measure(folder: Path, repeat: int = 5) -> list[Figure]:
    """From fork to exit."""
    where = ["--store", str(folder / "store"), "--tenant", "bench", "--run", RUN]

    # What a user has: compiled modules are kept from the first run on.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}

    def search() -> int:
        command = [str(RANKLOG), "search", f'"{NEEDLE}"', *where]
        done = subprocess.run(command, capture_output=True, check=False, env=environment)
        if done.returncode not in (0, 1):  # 1: nothing found, and all was looked at
            raise RuntimeError(done.stderr.decode())
        return len(done.stdout.splitlines())

    seconds, _ = median_s(search, repeat)
    return [Figure("ranklog search, whole process, rare literal", seconds, "s", 0.6)]


def main() -> int:
    """Ask and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=Path(".bench"))
    show(measure(parser.parse_args().folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
