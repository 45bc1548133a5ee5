"""How a rule of the design is broken: functions of ours in place of the product's, whose calls are counted.

A mutation changes this process, and is for a worker that does nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.matrix.faults import Injection


@dataclass(frozen=True, slots=True)
class Mutation:
    """`rule`: what the design says; `apply` makes this process do otherwise. `seed`: of a schedule that shows
    it. `at`: what happens in the schedule besides, where the rule is for one thing that is seldom drawn."""

    rule: str
    apply: Callable[[], None]
    seed: int = 0
    at: Injection | None = None


MUTATIONS: dict[str, Mutation] = {}


def breaks(
    rule: str, at: Injection | None = None, *, seed: int = 0
) -> Callable[[Callable[[], None]], Callable[[], None]]:
    def note(apply: Callable[[], None]) -> Callable[[], None]:
        MUTATIONS[apply.__name__.replace("_", "-")] = Mutation(rule, apply, seed, at)
        return apply

    return note


# Calls of what a mutation put in place of something, by name.
CALLS: Counter[str] = Counter()


def put_in_place(owner: Any, **members: Callable[..., Any]) -> None:
    """Put these functions in place of the owner's, or of its properties', and count their calls."""
    for name, value in members.items():
        before = getattr(owner, name)
        assert callable(before) or isinstance(before, property), (owner, name)
        counted = _counted(f"{owner.__name__}.{name}", value)
        setattr(owner, name, property(counted) if isinstance(before, property) else counted)


def _counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    CALLS[name] = 0

    def call(*args: Any, **kwargs: Any) -> Any:
        CALLS[name] += 1
        return function(*args, **kwargs)

    return call
