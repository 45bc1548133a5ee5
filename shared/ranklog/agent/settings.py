"""What an agent is told by its environment: masking, sampling, its share of the disk."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from ranklog.agent.collector import Options
from ranklog.agent.mask import Masker, load_rules
from ranklog.agent.quota import QUOTA_BYTES
from ranklog.agent.sampling import Sampler
from ranklog.errors import BadInput

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
# Less than this holds no two files of the log.
_QUOTA_BYTES_MIN = 32 << 20


def options_from(environ: Mapping[str, str]) -> Options:
    """Raises BadInput, BadRule: what is to be masked is not left to a guess."""
    rules = environ.get("RANKLOG_MASK_RULES")
    return Options(
        masker=Masker(
            load_rules(Path(rules)) if rules else (), enabled=environ.get("RANKLOG_MASK") != "0"
        ),
        sampler=parse_sampling(environ.get("RANKLOG_SAMPLE", "")),
        quota_bytes=parse_quota(environ.get("RANKLOG_SPOOL_QUOTA", "")),
    )


def parse_sampling(text: str) -> Callable[[], Sampler | None]:
    """`RATE` or `RATE:BURST`, in lines a second and lines of a call site; "" is no sampling."""
    if not text:
        return lambda: None
    rate_text, _, burst_text = text.partition(":")
    try:
        rate = float(rate_text)
        burst = float(burst_text) if burst_text else max(rate, 1.0)
        if not (0 < rate < 1e9 and 1 <= burst < 1e9):
            raise ValueError(text)
    except ValueError as error:
        raise BadInput(
            f"RANKLOG_SAMPLE={text!r} is no sampling", hint="lines a second of a call site: 10:100"
        ) from error
    return lambda: Sampler(rate, burst)


def parse_quota(text: str) -> int:
    """`2GiB`, `500M`, a number of bytes; "" is the usual quota."""
    if not text:
        return QUOTA_BYTES
    found = re.fullmatch(r"(\d{1,15})\s*([kmgt]?)(?:i?b)?", text.strip().lower())
    if found is None:
        raise BadInput(f"RANKLOG_SPOOL_QUOTA={text!r} is no size", hint="2GiB, 500M or bytes")
    return max(int(found[1]) * _UNITS[found[2]], _QUOTA_BYTES_MIN)
