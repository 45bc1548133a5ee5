"""What is wrong with a simulated job, as far as its text can tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

CLASSES = (
    *("none", "oom_device", "oom_host", "collective_timeout", "collective_mismatch", "hardware"),
    *("network", "numeric", "data_loader", "storage", "import_or_config", "external_kill"),
    *("crash_signal", "hang", "slow", "unknown"),
)

NOBODY = "none"  # healthy, or ended from outside
ALL = "all"  # the same fault on every rank
UNDECIDABLE = "undecidable"  # the text leaves it open

# a rank, several ranks, a node's host name, or one of the three words above
Culprit = int | frozenset[int] | str


@dataclass(frozen=True, slots=True)
class Truth:
    """`fault` is the story's name, `iteration` the one it struck in, `first_ns` when (true time).

    `ranks` are the ranks that the culprit covers (a host's ranks; empty for the three words).
    `or_host`: the rank's host is as good an answer (its kernel spoke, not the process).
    `also` are classes that a careful reader may give with equal right: a rank that hangs and its
    peers' time-outs are one event. `note` says in words what the logs show.
    """

    fault: str
    culprit: Culprit
    fault_class: str
    first_ns: int | None
    iteration: int | None
    ranks: frozenset[int] = frozenset()
    also: frozenset[str] = frozenset()
    or_host: str | None = None
    note: str = ""

    def __post_init__(self) -> None:
        assert self.fault_class in CLASSES, self.fault_class
        assert not self.also - set(CLASSES)

    def as_dict(self) -> dict[str, Any]:
        """For JSON: sets as sorted lists."""
        is_set = isinstance(self.culprit, frozenset)
        return {
            "fault": self.fault,
            "culprit": sorted(self.culprit) if is_set else self.culprit,  # type: ignore[arg-type]
            "class": self.fault_class,
            "first_ns": self.first_ns,
            "iteration": self.iteration,
            "ranks": sorted(self.ranks),
            "also": sorted(self.also),
            "or_host": self.or_host,
            "note": self.note,
        }
