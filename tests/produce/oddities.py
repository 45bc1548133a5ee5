"""Says everything that a job can say with every text and value that is odd, in a process of its own:
`python -m tests.produce.oddities`. What becomes of it is looked at outside."""

from __future__ import annotations

import datetime
import logging
import math
from typing import Any

import numpy

import ranklog

# No character of these is what a name or a line is usually made of.
TEXTS = [
    "",
    " ",
    "\u00a0",
    "a\tb",
    "a\nb",
    "\r",
    "\x00",
    "\x1b[31m",
    "\ud800",
    "\udcff",
    "\u200b",
    "\u202e",
]
TEXTS += [
    "\ufeff",
    "\ufffe",
    "日本",
    "e\u0301",
    "=",
    '"',
    "'",
    "\\",
    "{}",
    "%s",
    "/",
    "..",
    "@",
    "~",
    "k" * 70_000,
]


class Unspeakable:
    """Neither text nor anything else can be had of it."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


VALUES: list[Any] = [*TEXTS, True, None, math.nan, math.inf, -math.inf, 0, -(2**63), 2**63, 10**400]
VALUES += [b"\xff", [1, "\ud800"], {"\ud800": 1}, {1, 2}, 1j, datetime.date.min, Unspeakable()]
VALUES += [
    numpy.float32(1.5),
    numpy.ones(3),
    numpy.array("\ud800"),
    numpy.datetime64("NaT"),
    object,
]


def main() -> None:
    every = dict(zip(TEXTS, VALUES[::-1], strict=False))
    ranklog.init(
        run="odd\u00a0" * 40,
        launch="\ud800",
        metadata=every,
        config=every,
        files=TEXTS,
        datasets=every,
        groups=every,
        owner="\ud800\u00a0",
        tags=TEXTS,
    )
    plain = logging.getLogger("plain")
    for text in TEXTS:
        said = logging.getLogger(f"odd.{text}")
        said.warning("%s", text)
        ranklog.log(text)
        ranklog.attach(f"/nowhere/{text}", kind=text)
        with ranklog.phase(text), ranklog.timer(text):
            plain.info("inside")
        for value in VALUES:
            said.info("odd value", extra={f"x{text}": value})
            ranklog.log("odd value", **{f"x{text}": value})
            ranklog.telemetry({text: value, "loss": 1.0}, **{f"x{text}": value})
            ranklog.telemetry({text: 2.5})
            with ranklog.context(**{f"x{text}": value}):
                plain.info("in its context")
                ranklog.telemetry({"loss": 2.5})
        ranklog.tensor(text, numpy.ones(8), **{f"x{text}": text})
    for _ in range(20):
        plain.info("plain")
    ranklog.close()


if __name__ == "__main__":
    main()
