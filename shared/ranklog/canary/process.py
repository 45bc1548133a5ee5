"""`python -m ranklog.canary.process`: logs the lines on its standard input as a training job would, and ends."""

from __future__ import annotations

import json
import logging
import sys

import ranklog
from ranklog.canary.lines import LEVEL


def main() -> int:
    """1 where a line was not taken."""
    said = json.load(sys.stdin)
    ranklog.init(
        said["run"],
        launch=said["launch"],
        tenant=said["tenant"],
        spool_dir=said["spool"],
        level=LEVEL,
        rank=0,
        local_rank=0,
        world_size=1,
    )
    logger = logging.getLogger("ranklog.canary")
    logger.setLevel(LEVEL)
    for text in said["lines"]:
        logger.log(LEVEL, "%s", text)
    ranklog.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
