"""X-Ray, where Lambda traces an invocation: a segment of ours around the handler, and one per AWS call.

Lambda says in each invocation whether it is sampled. Where it is not, or there is no daemon to send to, nothing
is imported: the X-Ray SDK takes longer than all of Powertools else.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from typing import Any

_HEADER, _DAEMON = "_X_AMZN_TRACE_ID", "AWS_XRAY_DAEMON_ADDRESS"
_DISABLED = "POWERTOOLS_TRACE_DISABLED"


def is_traced(environ: Mapping[str, str]) -> bool:
    """Whether this invocation is to be traced."""
    if environ.get(_DISABLED, "").lower() in ("1", "true", "yes"):
        return False
    sampled = "Sampled=1" in environ.get(_HEADER, "").split(";")
    return sampled and bool(environ.get(_DAEMON)) and find_spec("aws_xray_sdk") is not None


@contextmanager
def traced(name: str) -> Iterator[None]:
    """The block as a segment `## <name>`, where the invocation is traced."""
    if not is_traced(os.environ):
        yield
        return
    with _tracer(name).provider.in_subsegment(name=f"## {name}"):
        yield


def annotate(name: str, **annotations: str | None) -> None:
    """Say of the segment that is open what it is about."""
    if is_traced(os.environ):
        for key, value in annotations.items():
            if value is not None:
                _tracer(name).put_annotation(key, value)


@cache
def _tracer(name: str) -> Any:
    from aws_lambda_powertools import Tracer

    return Tracer(service=name, auto_patch=True, patch_modules=("botocore",))
