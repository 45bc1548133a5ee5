"""Prints docs/cli.md: `python -m ranklog.cli.reference > docs/cli.md`."""

from __future__ import annotations

import sys

from ranklog.cli.arguments import reference

if __name__ == "__main__":
    sys.stdout.write(reference())
