"""Calls that log: a place in the code at a level, as the definitions know it.

The line of a frame is dear to ask for (the interpreter walks the function's line table), so it is
asked once for each instruction that logs.
"""

from __future__ import annotations

from types import FrameType

from ranklog.produce import ring
from ranklog.produce.compiled import CallFields


class Call(CallFields):
    """Where, at which level, through which logger. Words are for `Ring.write`; 0: not defined.

    `template` is the one that ARGUMENTS are of; it is set once, at the first line that has some.
    """

    __slots__ = ()

    def __init__(
        self, file: str, line: int, function: str | None, logger: str | None, level: int
    ) -> None:
        self.file = file
        self.line = line
        self.function = function
        self.logger = logger
        self.level = level
        self.site = 0
        self.template = None
        self.text_word = 0
        self.arguments_word = 0
        self.code = None
        self.instruction = -1
        self.owner = None

    def number(self, site: int, number: int) -> None:
        """Defined under this number; none above what a ring can say."""
        self.site = site
        if number <= ring.NUMBER_MAX:
            self.text_word = ring.TEXT | number << 8

    def number_template(self, template: str, number: int) -> None:
        """The number under which it is defined with its template."""
        if number <= ring.NUMBER_MAX:
            self.template = template
            self.arguments_word = ring.ARGUMENTS | number << 8


def call_at(frame: FrameType, logger: str | None, level: int, owner: object) -> Call:
    """A call that nobody defined yet. `owner` is the logger itself."""
    code = frame.f_code
    call = Call(code.co_filename, frame.f_lineno or 0, code.co_name, logger, level)
    call.code, call.instruction, call.owner = code, frame.f_lasti, owner
    return call
