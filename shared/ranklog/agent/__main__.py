"""`python -m ranklog.agent`: the agent that ranks start."""

from __future__ import annotations

import sys

from ranklog.agent.main import main

if __name__ == "__main__":
    sys.exit(main())
