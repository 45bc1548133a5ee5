"""What a process has of ranklog: its output, and what it already defined there.

A line is: the numbers of its call and its stamp (each defined once, in the defs file), then one copy
into the ring. A forked child gets files of its own at its first line.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from time import monotonic_ns
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

from ranklog.produce import output, records, spool, trouble
from ranklog.produce.calls import Call, call_at
from ranklog.produce.clock import OFFSET_NS, now_ns
from ranklog.produce.compiled import ProducerFields, hot
from ranklog.produce.context import EMPTY, INHERITED, STREAM_RANK, Stamp, current, own_iteration
from ranklog.produce.context import process as process_wide
from ranklog.produce.identity import WORKER, Identity
from ranklog.produce.output import Output, drop_class
from ranklog.produce.records import (
    CALL,
    CONTEXT,
    DEFERRABLE,
    DROP,
    LINE,
    SERIES,
    SITE,
    TELEMETRY,
    bounded,
    filled,
    pack_plain,
    text_bytes,
)
from ranklog.produce.ring import (
    FULL,
    HEAD,
    NO_ITERATION,
    NUMBER_MAX,
    PACKED_MAX,
    PACKERS,
    TAKEN,
    Ring,
)
from ranklog.produce.rings import WORKER_RING_BYTES, ring_bytes, rings_folder
from ranklog.produce.values import text_of

# Definitions of each kind; what comes later is told with each of its lines.
DEFINED_MAX = 65_536
POLL_S = 0.02
# An agent that is refused says so every second.
DENIED_AGE_S = 3.0


class Moment(NamedTuple):
    """What a record is stamped with. `inline`: metadata of a context that has no number."""

    ts_ns: int
    context: int
    inline: dict[str, Any] | None
    iteration: int | None


class Producer(ProducerFields):
    """One process's. Methods never raise for reasons of ours or of the disk's.

    `ring`, and `owner` of the stamps whose numbers are known, are for the hot path of telemetry.
    """

    def __init__(
        self,
        folder: Path,
        identity: Identity,
        *,
        launched: bool = False,
        metadata: dict[str, int | float | str] | None = None,
        size: int = 0,
        rings: Path | None = None,
    ) -> None:
        self.folder = folder
        self.process = spool.ProcessFiles(
            identity=identity,
            incarnation=spool.new_incarnation(),
            pid=os.getpid(),
            start=spool.announced_start(os.getpid()),
            files={},
            launched=launched,
            metadata=metadata or {},
        )
        self.ensure_collector: Callable[[], None] = lambda: None
        self.has_destination = False
        self._rings = rings_folder(os.environ) if rings is None else rings
        self._ring_bytes = size or ring_bytes(os.environ)
        if identity.role is not None:
            self._ring_bytes = min(self._ring_bytes, WORKER_RING_BYTES)
        self._closed = False
        self._output: Output | None = None
        self.ring = None
        # Words of series of one value; telemetry has it too.
        self.doubles = {}
        self._forget()
        self._open()

    # --- lines ----------------------------------------------------------------------------------

    def line_by_python(self, call: Call, message: Any, arguments: Any = ()) -> None:
        """A line as logging has it: `arguments` is a tuple or a mapping, empty where there is none.

        `call` is from `call` or `call_at`, and is asked for again after a fork.
        """
        out: Ring | None = self.ring
        stamp, context = current(), 0
        if stamp is not EMPTY:
            context = stamp.number if stamp.owner is self.owner else self.tell_stamp(stamp)
        iteration = own_iteration()
        if iteration == INHERITED:
            iteration = process_wide.iteration
        word = call.text_word
        try:
            if not arguments:
                payload = message.encode() if type(message) is str else text_bytes(message)
            elif message is call.template and type(arguments) is tuple:
                word = call.arguments_word
                for argument in arguments:
                    kind = type(argument)
                    if kind is int or kind is float or kind is str or kind in DEFERRABLE:
                        continue
                    word = 0
                payload = pack_plain(arguments) if word else b""
            else:
                word, payload = 0, b""
        except (UnicodeEncodeError, OverflowError):
            word, payload = 0, b""
        if not word or context < 0 or out is None:
            self._slow_line(call, message, arguments, context)
            return
        length = len(payload)
        if length < PACKED_MAX:
            pack_into, size = PACKERS[length]
            ts_ns = OFFSET_NS + monotonic_ns()
            # From here on there is no call but the one that writes: see ring.py.
            at = out.head
            if at + size <= out.inline_limit:
                out.head = at + size
                pack_into(
                    out.memory,
                    at + out.offset,
                    length,
                    out.lap,
                    word,
                    ts_ns,
                    iteration,
                    context,
                    payload,
                )
                out.words[HEAD] = out.head
                out.records += 1
                return
        self._put(call, word, iteration, context, payload, message, arguments)

    if not TYPE_CHECKING and hot is None:
        line = line_by_python

    def _slow_line(self, call: Call, message: Any, arguments: Any, context: int) -> None:
        """A template's first line, arguments that can't wait, no number, no ring."""
        if call.template is None and type(message) is str and type(arguments) is tuple:
            self._tell_template(call, message)
        if self.ring is None or context < 0 or not call.text_word:
            self._long_line(call, message, arguments)
            return
        own = own_iteration()
        iteration = process_wide.iteration if own == INHERITED else own
        payload = text_bytes(filled(message, arguments) if arguments else message)
        self._put(call, call.text_word, iteration, context, payload, message, arguments)

    def _put(
        self,
        call: Call,
        word: int,
        iteration: int,
        context: int,
        payload: bytes,
        message: Any,
        arguments: Any,
    ) -> None:
        out: Ring | None = self.ring
        if out is None:
            return
        answer = out.write(word, now_ns(), iteration, context, payload, call.level >= 30)
        if answer == FULL:
            self.count_drop(drop_class(call.level))
        elif answer != TAKEN:
            self._long_line(call, message, arguments)

    def emit(
        self,
        level: int,
        site: int,
        text: str,
        metadata: dict[str, Any] | None = None,
        trace: str | None = None,
        ts_ns: int = 0,
    ) -> None:
        """Write one record. `site` is from `site_number`; `trace` is a traceback's text."""
        out = self._output or self._reopen()
        if out is None:
            return
        context, inline = self._context()
        if inline:
            metadata = {**inline, **(metadata or {})}
        fields: list[Any] = [LINE, ts_ns or now_ns(), level, site, context, self._iteration()]
        fields.append(bounded(text))
        if metadata or trace:
            fields += [metadata or None, trace and bounded(trace)]
        out.write(records.encode(fields), level >= 30, drop_class(level))

    def moment(self) -> Moment:
        """Now, here: what a record is stamped with that is written later."""
        context, inline = self._context()
        return Moment(now_ns(), context, inline, self._iteration())

    def telemetry(
        self, values: dict[str, Any], dims: dict[str, Any] | None, moment: Moment | None = None
    ) -> None:
        """Values of one moment (None: this one), cleaned, with all their words."""
        out = self._output or self._reopen()
        if out is None:
            return
        ts_ns, context, inline, iteration = moment or self.moment()
        fields = [TELEMETRY, ts_ns, context, iteration, values, dims or None]
        if inline:  # what is told of a context is no dimension: it would make other series
            fields.append(inline)
        out.write(records.encode(fields), False, output.TELEMETRY)

    def _long_line(self, call: Call, message: Any, arguments: Any) -> None:
        """With all its words: what has no number, what the ring can't take."""
        if self._output is None and self._reopen() is None:
            return
        site = call.site or self.site_number(call.file, call.line, call.function, call.logger)
        text = filled(message, arguments) if arguments else text_of(message)
        self.emit(call.level, site, text)

    def count_drop(self, drops: int) -> None:
        """One record that the ring had no room for, by its class."""
        if self._output is not None:
            self._output.count_ring_drop(drops)

    # --- definitions ----------------------------------------------------------------------------

    def site_number(self, file: str, line: int, function: str | None, logger: str | None) -> int:
        """The number of a call site, defined before its first line; 0 where it can't be."""
        key = (file, line, function, logger)
        number = self._sites.get(key)
        if number is None:
            number = self._define(SITE, f"{file}:{line}", function, logger)
            if number:
                self._sites[key] = number
        return number

    def call(
        self, file: str, line: int, function: str | None, logger: str | None, level: int
    ) -> Call:
        """The call at a place; one that can't be defined now comes without a number."""
        key = (file, line, logger, level)
        known = self.calls.get(key)
        if known is not None:
            return known
        call = Call(file, line, function, logger, level)
        self._number(call)
        if call.text_word:
            self.calls[key] = call
        return call

    def _number(self, call: Call) -> None:
        site = self.site_number(call.file, call.line, call.function, call.logger)
        number = self._define(CALL, site, call.level, None) if site else 0
        if number:
            call.number(site, number)

    def call_at(
        self, frame: FrameType | None, logger: str | None, level: int, owner: object = None
    ) -> Call:
        """The call of a frame that logs; known by its instruction from the second time on."""
        if frame is None:
            return self.call("?", 0, None, logger, level)
        key = (id(frame.f_code), frame.f_lasti, logger, level)
        call = self._calls_by_code.get(key)
        if call is not None:
            return call
        call = call_at(frame, logger, level, owner)
        self._number(call)
        if call.text_word:
            if len(self._calls_by_code) >= DEFINED_MAX:
                self._calls_by_code.clear()
            self._calls_by_code[key] = call  # keeps the code, so that its id stays its own
        return call

    def define_series(self, names: list[str], dims: dict[str, Any] | None) -> int:
        """The number of values that come together; 0 where they must be told with all their words."""
        number = self._define(SERIES, names, dims)
        return number if number <= NUMBER_MAX else 0

    def drop(self, lines: int, reason: str) -> None:
        """Tell of lines that will not come."""
        if self._output is not None:
            self._output.define([DROP, lines, reason])

    def _tell_template(self, call: Call, template: str) -> None:
        number = self._define(CALL, call.site, call.level, template)
        if number:
            call.number_template(template, number)
            if len(self.by_template) < DEFINED_MAX:
                self.by_template[template] = call

    def tell_stamp(self, stamp: Stamp) -> int:
        """Its number from now on; -1: it must be told with each line."""
        number = self._define(CONTEXT, stamp.rank, stamp.metadata or None)
        if not number:
            return -1
        stamp.number, stamp.owner = number, self.owner
        return number

    def _define(self, kind: int, *fields: Any) -> int:
        """A new number, told to the defs file; 0 where it has no room, or has had enough."""
        out = self._output or self._reopen()
        if out is None or self._defined.get(kind, 0) >= DEFINED_MAX:
            return 0
        number = next(self._numbers)
        if not out.define([kind, number, *fields]):
            return 0
        self._defined[kind] = self._defined.get(kind, 0) + 1
        return number

    def _context(self) -> tuple[int, dict[str, Any] | None]:
        """(number, metadata that must be told with the line) of this thread."""
        stamp = current()
        if stamp is EMPTY:
            return 0, None
        number = stamp.number if stamp.owner is self.owner else self.tell_stamp(stamp)
        if number >= 0:
            return number, None
        return self._rank_number(stamp.rank), stamp.metadata

    def _rank_number(self, rank: int | None) -> int:
        """A context of a rank alone: there are few of them, so they are always defined."""
        number = 0 if rank == STREAM_RANK else self._ranks.get(rank, 0)
        if rank != STREAM_RANK and not number and self._output is not None:
            number = next(self._numbers)
            if not self._output.define([CONTEXT, number, rank, None]):
                return 0
            self._ranks[rank] = number
        return number

    def _iteration(self) -> int | None:
        own = own_iteration()
        number = process_wide.iteration if own == INHERITED else own
        return None if number == NO_ITERATION else number

    # --- delivery and end -----------------------------------------------------------------------

    @property
    def records(self) -> int:
        """How many were taken."""
        return self._records_at_end if self._output is None else self._output.records

    def flush(self, timeout_s: float) -> int:
        """Wait until all that was emitted before is delivered; how many records are not."""
        target = self.records
        if not self.has_destination:
            return target - self._acknowledged()
        began_s = time.time()
        self.ensure_collector()
        spool.ask_to_flush(self.folder, self.process.incarnation)
        deadline = time.monotonic() + timeout_s
        while (acknowledged := self._acknowledged()) < target and time.monotonic() < deadline:
            if why := spool.agent_error(self.folder, began_s):
                trouble.once("agent", f"nothing is sent: {why}; lines stay in {self.folder}")
                break  # no agent comes: waiting would be in vain
            trouble.tell_denied(self.folder, spool.denied(self.folder, began_s - DENIED_AGE_S))
            time.sleep(POLL_S)
        refused = spool.read_refused(self.folder, self.process.incarnation)
        return min(target, max(0, target - acknowledged) + refused)

    def say_goodbye(self) -> None:
        """The process is about to end. What it logs still is taken, and delivered when it is gone."""
        if self._output is not None:
            self._output.say_goodbye()

    def close(self) -> None:
        """The end of this process's lines; later ones are dropped."""
        self._closed = True
        out = self._output
        if out is not None:
            self._records_at_end = out.records
            self._output = self.ring = None
            out.close()

    def forked(self) -> None:
        """In a forked child: let go of the parent's files; the first line opens some of our own."""
        if self._output is not None:
            self._output.abandon()
        self._forget()
        self._ring_bytes = WORKER_RING_BYTES
        self.process = replace(
            self.process,
            identity=replace(self.process.identity, role=WORKER),
            incarnation=spool.new_incarnation(),
            pid=os.getpid(),
            start=spool.announced_start(os.getpid()),
            files={},
            launched=False,
        )

    def _forget(self) -> None:
        self._output = self.ring = None
        self.owner = object()
        self.calls: dict[Any, Call] = {}
        self._calls_by_code: dict[tuple[int, int, str | None, int], Call] = {}
        self.forget_known()
        self.by_template: dict[str, Call] = {}
        # Words of VALUES by names and dimensions, and the last ones.
        self.series: dict[Any, int] = {}
        self.last_series = ((), 0)
        self.doubles.clear()
        self._sites: dict[tuple[str, int, str | None, str | None], int] = {}
        self._ranks: dict[int | None, int] = {}
        self._numbers = count(1)
        self._defined: dict[int, int] = {}
        self._records_at_end = 0

    def _open(self) -> Output:
        with spool.beyond_standard():
            out = Output(self.folder, self.process.incarnation, self._rings, self._ring_bytes)
        self.process = replace(self.process, files=out.files)
        spool.announce(self.folder, self.process)
        self._output, self.ring = out, out.ring
        return out

    def _reopen(self) -> Output | None:
        """A forked child's first line; None after the end."""
        return None if self._closed else self._open()

    def _acknowledged(self) -> int:
        return spool.read_ack(self.folder / f"{self.process.incarnation}.acked")[1]
