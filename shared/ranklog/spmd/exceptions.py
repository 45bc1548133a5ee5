"""What Python's exceptions are by their names: whose end they are, and which end nothing."""

from __future__ import annotations

import re

# An exception's last line; which one it is decides what it proves.
EXCEPTION = re.compile(
    r"^(?P<name>(?:[A-Za-z_]\w*\.)*"
    r"(?:[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Empty|Failure|Fault)|Exception|StopIteration))"
    r"(?:: ?(?P<text>.*)|\s*)$"
)
# Where a traceback ends, a name of a module's is an exception without such an ending, too.
TRACEBACK_END = re.compile(r"^(?P<name>(?:[a-z_]\w*\.)+[A-Za-z_]\w*)(?:: ?(?P<text>.*)|\s*)$")
# Who reports to a dashboard can fail without harm.
TELEMETRY_MODULES = frozenset(
    ["requests", "urllib3", "wandb", "mlflow", "httpx", "aiohttp", "neptune", "comet_ml", "grpc"]
)
# Exceptions of ranks whose peer is gone, or whom somebody ended.
VICTIM_EXCEPTIONS = frozenset(
    [
        *("DistBackendError", "DistNetworkError", "DistStoreError", "ChildFailedError"),
        *("SignalException", "KeyboardInterrupt", "BrokenPipeError", "ConnectionResetError"),
        *("RendezvousConnectionError", "RendezvousClosedError", "ConnectionRefusedError"),
    ]
)


def is_telemetry(text: str) -> bool:
    """Whether a line ends a traceback of a library that only reports to others."""
    found = EXCEPTION.match(text)
    return found is not None and found["name"].partition(".")[0] in TELEMETRY_MODULES
