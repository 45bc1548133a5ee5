"""What numbers in a process's records mean: the agent's side of the defs file.

Takes SITE, CONTEXT, CALL and SERIES records as they are met, and turns a ring's short forms into the
LINE and TELEMETRY records that a journal holds.
"""

from __future__ import annotations

import struct
from typing import Any

from ranklog.produce import records, ring
from ranklog.produce.records import CALL, CONTEXT, LINE, SERIES, SITE, TELEMETRY

# A short form as RingReader gives it: kind and number, then the fixed fields.
_SHORT = struct.Struct("=IqqQ")
_DOUBLE = struct.Struct("=d")


class Definitions:
    """Of one process. `take` what its defs file says; then `fields` of any body knows it."""

    def __init__(self) -> None:
        # number -> ("file:line", function, logger)
        self.sites: dict[int, tuple[str, str | None, str | None]] = {}
        # number -> (rank, metadata)
        self.contexts: dict[int, tuple[int | None, dict[str, Any] | None]] = {}
        self._calls: dict[int, tuple[int, int, str | None]] = {}
        self._series: dict[int, tuple[list[str], dict[str, Any] | None]] = {}

    def take(self, fields: list[Any]) -> bool:
        """Whether the record was a definition, which is known now."""
        kind, number = fields[0], fields[1] if len(fields) > 1 else None
        if not isinstance(number, int):
            return False
        if kind == SITE:
            self.sites[number] = (fields[2], fields[3], fields[4])
        elif kind == CONTEXT:
            self.contexts[number] = (fields[2], fields[3])
        elif kind == CALL:
            self._calls[number] = (fields[2], fields[3], fields[4])
        elif kind == SERIES:
            self._series[number] = (fields[2], fields[3])
        else:
            return False
        return True

    def fields(self, body: bytes) -> list[Any]:
        """The LINE or TELEMETRY that a body of the ring or of the journal is, or another record.

        Raises ValueError for what is none, KeyError for a number that nobody defined.
        """
        if not body or body[0] > ring.PAD:
            return records.decode(body)
        if len(body) < _SHORT.size:
            raise ValueError(f"no record: {body[:40]!r}")
        head, ts_ns, iteration, context = _SHORT.unpack_from(body)
        number = head >> 8
        at = None if iteration == ring.NO_ITERATION else iteration
        payload = body[_SHORT.size :]
        if head & 0xFF in (ring.TEXT, ring.ARGUMENTS):
            site, level, template = self._calls[number]
            if head & 0xFF == ring.TEXT:
                text = payload.decode("utf-8", "surrogatepass")
                return [LINE, ts_ns, level, site, context, at, text]
            arguments = records.decode(payload)
            return [LINE, ts_ns, level, site, context, at, template, None, None, arguments]
        names, dims = self._series[number]
        if head & 0xFF == ring.DOUBLE:
            return [TELEMETRY, ts_ns, context, at, {names[0]: _DOUBLE.unpack(payload)[0]}, dims]
        values = records.decode(payload)
        return [TELEMETRY, ts_ns, context, at, dict(zip(names, values, strict=True)), dims]
