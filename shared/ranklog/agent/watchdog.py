"""A parent that starts the agent again when something kills it, as long as somebody logs.

It does nothing else: no file, no socket, no thread. Ranks need not watch, and don't.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from types import FrameType

# Before the first new start, and at most, where the agent is killed again and again.
PAUSE_S, PAUSE_S_MAX = 0.2, 30.0
# An agent that worked this long was not killed by what it met at its start.
SETTLED_S = 60.0


def keep_alive(work: Callable[[], int], is_needed: Callable[[], bool]) -> int:
    """Run `work` in a child, again whenever a signal ended it while it `is_needed`.

    Returns its exit code. SIGTERM and SIGINT are passed on, and then it is not started again.
    """
    child = 0
    told = False

    def pass_on(number: int, frame: FrameType | None) -> None:
        nonlocal told
        told = True
        if child:
            os.kill(child, number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, pass_on)
    pause_s = PAUSE_S
    while True:
        started = time.monotonic()
        child = os.fork()
        if child == 0:
            os._exit(_run(work))
        code = _wait(child)
        child = 0
        if code >= 0 or told or not is_needed():
            return max(code, 0)
        pause_s = PAUSE_S if time.monotonic() - started > SETTLED_S else pause_s
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, PAUSE_S_MAX)


def _run(work: Callable[[], int]) -> int:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    try:
        return work()
    except BaseException:
        traceback.print_exc()
        return 70  # EX_SOFTWARE
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def _wait(child: int) -> int:
    """Exit code; negative: the signal."""
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)
