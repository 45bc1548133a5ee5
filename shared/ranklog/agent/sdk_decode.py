"""Bodies of a ring and records of a journal as columns of lines, in their order.

The agent's hot path: a ring's short forms are turned into columns without a list a record, the rest
goes through `produce.definitions`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgpack import UnpackException, unpackb

from ranklog.agent.sdk_points import PointDecoder
from ranklog.produce import ring
from ranklog.produce.definitions import Definitions
from ranklog.produce.records import CALL, LINE, SERIES, TELEMETRY, formatted

# Of a short form: kind and number, then time, iteration, context; and, of one value, the value.
_SHORT = struct.Struct("=IqqQ")
_ONE = struct.Struct("=IqqQd")
_WRONG = (
    IndexError,
    TypeError,
    ValueError,
    OverflowError,
    KeyError,
    AttributeError,
    UnpackException,
)


@dataclass(slots=True)
class Columns:
    """n lines: what each was logged with, its text formatted. `extra`: metadata of its own."""

    ts: list[int] = field(default_factory=list)
    level: list[int] = field(default_factory=list)
    site: list[int] = field(default_factory=list)
    context: list[int] = field(default_factory=list)
    iteration: list[int] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    extra: dict[int, dict[str, Any]] = field(default_factory=dict)
    trace: dict[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.text)

    def part(self, start: int, end: int) -> Columns:
        """Lines start .. end."""
        at = slice(start, end)
        return Columns(
            self.ts[at],
            self.level[at],
            self.site[at],
            self.context[at],
            self.iteration[at],
            self.text[at],
            {line - start: own for line, own in self.extra.items() if start <= line < end},
            {line - start: own for line, own in self.trace.items() if start <= line < end},
        )

    def chosen(self, places: Sequence[int]) -> Columns:
        """The lines at these places, ascending."""
        new = {old: place for place, old in enumerate(places)} if self.extra or self.trace else {}
        return Columns(
            [self.ts[i] for i in places],
            [self.level[i] for i in places],
            [self.site[i] for i in places],
            [self.context[i] for i in places],
            [self.iteration[i] for i in places],
            [self.text[i] for i in places],
            {new[line]: own for line, own in self.extra.items() if line in new},
            {new[line]: trace for line, trace in self.trace.items() if line in new},
        )


class Decoder:
    """Of one process. `points`: what was recorded, on the way; `damaged`: what made no sense."""

    def __init__(self) -> None:
        self.definitions = Definitions()
        self.points = PointDecoder()
        self.damaged = 0
        self._calls: dict[int, tuple[int, int, str]] = {}

    def define(self, fields: list[Any]) -> None:
        """Take a definition. Raises IndexError, TypeError, ValueError for what is none."""
        if not self.definitions.take(fields):
            raise ValueError(f"no definition: {fields!r:.40}")
        if fields[0] == CALL:
            self._calls[fields[1]] = (fields[2], fields[3] or 0, fields[4])
        elif fields[0] == SERIES:
            self.points.define(*fields[1:4])

    def bodies(self, bodies: Iterable[bytes]) -> Columns:
        """What a ring held."""
        found = Columns()
        calls, unpack = self._calls, _SHORT.unpack_from
        add_ts, add_level, add_site = found.ts.append, found.level.append, found.site.append
        add_context, add_iteration = found.context.append, found.iteration.append
        add_text = found.text.append
        for body in bodies:
            kind = body[0] if body else 0
            if kind != ring.ARGUMENTS and kind != ring.TEXT:
                if kind == ring.DOUBLE or kind == ring.VALUES:
                    self._values(kind, body)
                else:
                    self._other(body, found)
                continue
            try:
                head, ts_ns, iteration, context = unpack(body)
                site, level, template = calls[head >> 8]
                if kind == ring.TEXT:
                    text = body[28:].decode("utf-8", "surrogatepass")
                else:
                    text = self._format(template, body[28:])
            except (struct.error, *_WRONG):
                self.damaged += 1
                continue
            add_text(text)
            add_ts(ts_ns)
            add_level(level)
            add_site(site)
            add_context(context)
            add_iteration(iteration)
        return found

    def records(self, records: Iterable[list[Any]]) -> Columns:
        """What a journal held."""
        found = Columns()
        for fields in records:
            self._take(fields, found)
        return found

    def _format(self, template: str, packed: bytes) -> str:
        arguments = tuple(unpackb(packed, unicode_errors="surrogatepass"))
        try:
            return template % arguments
        except Exception:
            return formatted(template, arguments)

    def _values(self, kind: int, body: bytes) -> None:
        """A record of a series, in its short form."""
        try:
            if kind == ring.DOUBLE:
                head, ts_ns, iteration, context, value = _ONE.unpack(body)
                self.points.one(ts_ns, context, iteration, head >> 8, value)
            else:
                head, ts_ns, iteration, context = _SHORT.unpack_from(body)
                values = unpackb(body[28:], unicode_errors="surrogatepass", strict_map_key=False)
                self.points.many(ts_ns, context, iteration, head >> 8, values)
        except (struct.error, *_WRONG):
            self.damaged += 1

    def _other(self, body: bytes, found: Columns) -> None:
        try:
            fields = self.definitions.fields(body)
        except (struct.error, *_WRONG):
            self.damaged += 1
        else:
            self._take(fields, found)

    def _take(self, fields: list[Any], found: Columns) -> None:
        """A LINE or TELEMETRY, whole or not at all."""
        try:
            if fields[0] == TELEMETRY:
                self._point(fields)
                return
            kind, ts_ns, level, site, context, iteration, text, *more = fields
            extra, trace, arguments = more if len(more) == 3 else (*more, None, None, None)[:3]
            if arguments is not None:
                text = formatted(text, tuple(arguments))
            # Other numbers are looked at with all others of a chunk.
            numbers = type(ts_ns) is int and type(level or 0) is int
            if kind != LINE or type(text) is not str or not numbers:
                raise ValueError(kind)
            if trace:
                found.trace[len(found.text)] = trace + ""
        except _WRONG:
            self.damaged += 1
            return
        if extra:
            found.extra[len(found.text)] = extra
        found.ts.append(ts_ns)
        found.level.append(level or 0)
        found.site.append(site or 0)
        found.context.append(context or 0)
        found.iteration.append(ring.NO_ITERATION if iteration is None else iteration)
        found.text.append(text)

    def _point(self, fields: list[Any]) -> None:
        """A TELEMETRY record, with all its words. Raises TypeError, ValueError, … for what is none."""
        _, ts_ns, context, iteration, values, *more = fields
        at = ring.NO_ITERATION if iteration is None else iteration
        dims, told = (*more, None, None)[:2]
        self.points.whole(ts_ns, context or 0, at, values, dims, told)
