"""`python -m ranklog`: the command `ranklog`."""

from __future__ import annotations

import sys

from ranklog.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
