"""Checkpoints, from lines that begin and end one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ranklog.model.answer import Line
from ranklog.spmd.triage.read import Sign

_ITERATION = re.compile(r"(?:iteration|iter_|step[_ -]?|global_step)[ =:]*0*(\d+)")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The newest one that lines speak of. `complete`: everybody who began it ended it."""

    iteration: int | None
    complete: bool


def last_checkpoint(signs: Sequence[Sign]) -> Checkpoint | None:
    """None where no line speaks of one."""
    begun = [sign.line for sign in signs if sign.kind == "save_begun"]
    ended = [sign.line for sign in signs if sign.kind == "save_ended"]
    if not begun and not ended:
        return None
    numbers = (iteration_in(line) for line in (*begun, *ended))
    newest = max((number for number in numbers if number is not None), default=None)
    started = {line.rank for line in begun if iteration_in(line) == newest}
    done = {line.rank for line in ended if iteration_in(line) == newest}
    return Checkpoint(newest, bool(done) and started <= done)


def iteration_in(line: Line) -> int | None:
    """The iteration a checkpoint's line names, else its own."""
    named = _ITERATION.search(line.text)
    return int(named[1]) if named is not None else line.iteration
