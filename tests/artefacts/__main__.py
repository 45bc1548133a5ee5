"""`python -m tests.artefacts COMMAND`: what is deployed, built and run here. See README.md."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.artefacts import build as building

COMMANDS = ("build", "sizes", "imports", "journey", "marks", "freshness")


def main() -> int:
    """The exit code of the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.artefacts", description=__doc__)
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("--architecture", choices=building.ARCHITECTURES, default=building.native())
    parser.add_argument("--verbose", action="store_true", help="imports: the dearest modules")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="marks, freshness: all figures, for programs"
    )
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="marks, freshness: how long lines are put"
    )
    parser.add_argument("--lines", type=int, default=4_000_000, help="marks: lines of the corpus")
    options = parser.parse_args()
    try:
        return _run(options)
    except building.NotHere as error:
        print(error, file=sys.stderr)
        return 2


def _run(options: argparse.Namespace) -> int:
    if options.command == "journey":
        import pytest

        return int(pytest.main(["-m", "artefacts", "-q", str(Path(__file__).parent)]))
    built = building.build(options.architecture)
    print(f"built in {built}")
    if options.command == "sizes":
        from tests.artefacts import sizes

        return sizes.main(built, options.architecture)
    if options.command == "imports":
        from tests.artefacts import imports

        return imports.main(built, building.find_python(), verbose=options.verbose)
    if options.command in ("marks", "freshness"):
        from tests.artefacts.marks import main as measure

        python = building.runtime_python(building.find_python())
        lines = options.lines if options.command == "marks" else None
        return measure(built, python, lines, options.json, options.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
