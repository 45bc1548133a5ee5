"""What a process writes of its lines: kinds of records, their bytes, and how the agent reads them.

    [SITE, number, "file:line", function, logger]               defs file
    [CONTEXT, number, rank, metadata]                           defs file
    [CALL, number, site, level, template]                       defs file: a site at a level
    [SERIES, number, names, dims]                               defs file: values that come together
    [DROP, lines, reason]                                       defs file
    [CLOSED]                                                    defs file: the process said good-bye
    [MANIFEST, …]                                               defs file, opaque here
    [LINE, ts_ns, level, site, context, iteration, text, metadata, trace, arguments]
    [TELEMETRY, ts_ns, context, iteration, {name: value}, dims, metadata]

LINE and TELEMETRY lie in the ring, most of them in the short forms that `definitions.Definitions`
turns into these; what the ring can't take (a record larger than a quarter of it, all of them where
no ring could be made) lies in the journal. Numbers are defined in the defs file before they are
used: who reads ring and journal first and the defs file to its end after that knows every number.

Trailing Nones of a LINE are left out, and `metadata` of TELEMETRY where its context has a number. With `arguments`, the text is a template that nobody has
formatted yet: only arguments that are exactly int, float, str, bool or None wait, so no tensor is
ever kept, and the result is what formatting at once would have given.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import msgpack

from ranklog import limits
from ranklog.produce.values import text_of

SITE, CONTEXT, LINE, DROP, CLOSED, TELEMETRY, MANIFEST, CALL, SERIES = range(9)
# Longer texts and tracebacks are cut, which is said at their end.
TEXT_CHARACTERS_MAX = 8 * limits.MIB
# Arguments that may be formatted later.
DEFERRABLE = frozenset([int, float, str, bool, type(None)])

# Packers that nobody uses now: making one is two thirds of packing a line. Whoever logs takes one
# out, so a thread, or a signal handler amid a line, never meets one in use.
_packers: list[Any] = []


def encode(fields: list[Any] | tuple[Any, ...]) -> bytes:
    """One body. Strings may hold lone surrogates. Raises OverflowError or TypeError."""
    try:
        packer = _packers.pop()
    except IndexError:
        packer = msgpack.Packer(unicode_errors="surrogatepass")
    body: bytes = packer.pack(fields)
    _packers.append(packer)  # not after an error: then it is left to the collector of garbage
    return body


# For exact int, float, str, bool and None alone: packing them runs nobody's code, so that (where the
# GIL is) one packer serves all threads.
# One raises OverflowError for an int beyond 64 bits.
_HAS_GIL = getattr(sys, "_is_gil_enabled", lambda: True)()
_shared = msgpack.Packer(unicode_errors="surrogatepass")
pack_plain: Callable[[Any], bytes] = _shared.pack if _HAS_GIL else encode


def text_bytes(message: Any) -> bytes:
    """UTF-8 of a message; lone surrogates are kept."""
    text = message if type(message) is str else text_of(message)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def bounded(text: str) -> str:
    """The text; of one that no frame could carry the beginning, and how much is not there."""
    over = len(text) - TEXT_CHARACTERS_MAX
    return text if over <= 0 else f"{text[:TEXT_CHARACTERS_MAX]}… ({over} more characters were cut)"


def filled(message: Any, arguments: Any) -> str:
    """A message and its arguments as one text; a single mapping is for `%(name)s`, as in logging."""
    if type(arguments) is tuple and len(arguments) == 1 and isinstance(arguments[0], Mapping):
        arguments = arguments[0] or arguments
    return formatted(message if type(message) is str else text_of(message), arguments)


def decode(body: bytes) -> list[Any]:
    """The fields of a body. Raises ValueError for what is none."""
    try:
        fields = msgpack.unpackb(body, unicode_errors="surrogatepass", strict_map_key=False)
    except (ValueError, msgpack.UnpackException) as error:
        raise ValueError(f"no record: {error}") from error
    if not isinstance(fields, list) or not fields:
        raise ValueError(f"no record: {fields!r:.40}")
    return fields


def formatted(template: str, arguments: Any) -> str:
    """`template % arguments`; a wrong format is the caller's bug, and the line is evidence of it."""
    try:
        return str(template % arguments)
    except Exception as error:
        told = text_of(arguments)  # their repr, unless one of them has none
        return f"{template} {told:.300} (not formatted: {error!r})"
