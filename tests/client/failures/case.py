"""Failures as frameworks, launchers, kernels and schedulers tell them: text, class, whom.

Written from what these programs print and not from files that rules were made with. A case is one
console, its ranks labelled as `srun -l` labels them; `STEPS` stands before what happens in training.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

RANKS = 8
ALL = "all"
ANYBODY = "anybody"  # the class is told, whom to blame is not asked


@dataclass(frozen=True, slots=True)
class Failure:
    """`whom`: a rank, "all", a host's name, None for nobody, or ANYBODY."""

    name: str
    fault: str
    whom: int | str | None
    text: str


def clock(second: float) -> str:
    """A time of the job, in local time without a zone."""
    whole = int(second)
    return f"2025-03-04 10:{whole // 60:02d}:{whole % 60:02d}"


def labelled(said: Mapping[int, str]) -> str:
    """Lines of ranks under `srun -l`."""
    return "\n".join(f"{rank}: {line}" for rank, text in said.items() for line in text.split("\n"))


def everybody(text: str, ranks: int = RANKS) -> str:
    """Each rank says the same; {rank} is its number."""
    return labelled({rank: text.replace("{rank}", str(rank)) for rank in range(ranks)})


def steps(last: int = 6, ranks: int = RANKS) -> str:
    """Every rank's iterations, ten seconds apart."""
    return "\n".join(
        f"{rank}: {clock(10 * i)},{100 + rank} INFO iteration {i} loss {9 - i / 10:.4f}"
        for i in range(1, last)
        for rank in range(ranks)
    )


STEPS = steps()


def training(text: str) -> str:
    """What is said after some iterations."""
    return f"{STEPS}\n{text}"


def traceback(last: str, *, code: str = "loss.backward()") -> str:
    """An exception as Python prints it."""
    return (
        "Traceback (most recent call last):\n"
        '  File "/workspace/train.py", line 241, in <module>\n'
        "    main()\n"
        '  File "/workspace/train.py", line 188, in main\n'
        f"    {code}\n{last}"
    )


def one(rank: int, last: str, **more: str) -> str:
    """One rank's exception in training; srun tells who left with which code."""
    end = f"srun: error: gpu-{rank // 4:02d}: task {rank}: Exited with exit code 1"
    return training(f"{labelled({rank: traceback(last, **more)})}\n{end}")


def at_start(last: str, **more: str) -> str:
    """The same exception on every rank before there is an iteration."""
    return everybody(traceback(last, **more))


def unique(cases: Iterable[Failure]) -> tuple[Failure, ...]:
    """Cases by name; a name twice is a mistake."""
    found = tuple(cases)
    assert len({case.name for case in found}) == len(found)
    return found
