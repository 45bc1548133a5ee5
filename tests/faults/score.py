"""Score a verdict over simulated jobs: `python -m tests.faults.score [--seeds N] [--healthy N]`.

A verdict is a function of a job that returns (class, suspects), suspects ordered, the likeliest
first: a rank, a frozenset of ranks, a host's name, "all", "undecidable" or "none"; no suspects is
"none". The table has the truth's classes as rows. The command scores the three rules of thumb, and
beside them `--verdict module:function` if one is named; `--workers N` asks in N processes.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field

from tests.faults.job import Job
from tests.faults.rules import RULES
from tests.faults.simulate import FAULTS, simulate
from tests.faults.truth import CLASSES, Culprit, Truth

Verdict = Callable[[Job], tuple[str, Sequence[Culprit]]]
_HEALTHY_SEED = 1_000_000  # healthy jobs have seeds of their own
_PART = 10  # jobs that a worker is handed at a time


def names_culprit(truth: Truth, suspects: Sequence[Culprit]) -> bool:
    """Whether the first suspect is the culprit.

    Several ranks may be given as a set or as the first so many suspects; a node by its host's name
    or by all its ranks.
    """
    if not suspects:
        return truth.culprit == "none"
    first = suspects[0]
    if isinstance(truth.culprit, str) and not truth.ranks:
        return first == truth.culprit
    if first in (truth.culprit, truth.or_host):
        return True
    ranks = first if isinstance(first, frozenset) else frozenset(suspects[: len(truth.ranks)])
    return ranks == truth.ranks


def names_class(truth: Truth, named: str) -> bool:
    """Whether the class is the truth's, or one that a careful reader may give with equal right."""
    return named == truth.fault_class or named in truth.also


@dataclass
class Score:
    """Counts of one verdict. `confusion[true class][named class]`; `seconds` of processor time."""

    name: str
    jobs: int = 0
    culprits: int = 0
    classes: int = 0
    healthy: int = 0
    false_alarms: int = 0
    confusion: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    of_class: dict[str, Counter[bool]] = field(default_factory=lambda: defaultdict(Counter))
    of_fault: dict[str, Counter[bool]] = field(default_factory=lambda: defaultdict(Counter))
    seconds: list[float] = field(default_factory=list)
    wrong: list[tuple[int, Truth, str, Sequence[Culprit]]] = field(default_factory=list)

    def add(self, job: Job, named: str, suspects: Sequence[Culprit], seconds: float) -> None:
        """Count one verdict."""
        truth = job.truth
        self.seconds.append(seconds)
        right = names_class(truth, named)
        self.confusion[truth.fault_class][truth.fault_class if right else named] += 1
        if truth.fault_class == "none":
            self.healthy += 1
            if suspects and suspects[0] != "none":
                self.false_alarms += 1
                self.wrong.append((job.seed, truth, named, suspects))
            return
        found = names_culprit(truth, suspects)
        self.jobs += 1
        self.culprits += found
        self.classes += right
        self.of_class[truth.fault_class][right] += 1
        self.of_fault[truth.fault][found] += 1
        if not (found and right):
            self.wrong.append((job.seed, truth, named, suspects))

    def join(self, other: Score) -> None:
        """Add what was counted elsewhere."""
        self.jobs += other.jobs
        self.culprits += other.culprits
        self.classes += other.classes
        self.healthy += other.healthy
        self.false_alarms += other.false_alarms
        for name, row in other.confusion.items():
            self.confusion[name].update(row)
        for name, counts in other.of_class.items():
            self.of_class[name].update(counts)
        for name, counts in other.of_fault.items():
            self.of_fault[name].update(counts)
        self.seconds += other.seconds
        self.wrong += other.wrong

    @property
    def culprit_share(self) -> float:
        return self.culprits / max(1, self.jobs)

    @property
    def class_share(self) -> float:
        return self.classes / max(1, self.jobs)

    @property
    def false_alarm_share(self) -> float:
        return self.false_alarms / max(1, self.healthy)

    def report(self) -> str:
        """The confusion table and the shares."""
        seen = [c for c in CLASSES if c in self.confusion]
        named = [c for c in CLASSES if any(c in row for row in self.confusion.values())]
        head = "truth \\ named".ljust(20) + "".join(f"{c[:11]:>12}" for c in named) + "   right"
        rows = [head]
        for true in seen:
            row = self.confusion[true]
            share = row[true] / max(1, sum(row.values()))
            cells = "".join(f"{row[c] or '.':>12}" for c in named)
            rows.append(f"{true:<20}{cells}{share:8.1%}")
        times = sorted(self.seconds) or [0.0]
        culprits = {f: c[True] / sum(c.values()) for f, c in sorted(self.of_fault.items())}
        weak = ", ".join(f"{f} {share:.0%}" for f, share in culprits.items() if share < 0.95)
        return "\n".join(
            [
                f"== {self.name}: {self.jobs} faults, {self.healthy} healthy",
                *rows,
                f"culprit first {self.culprit_share:.1%}, class {self.class_share:.1%}, worst class "
                f"{min((c[True] / sum(c.values()) for c in self.of_class.values()), default=1):.1%}, "
                f"false alarms {self.false_alarm_share:.1%}",
                f"time to verdict: median {times[len(times) // 2] * 1000:.1f} ms, 95 % "
                f"{times[int(len(times) * 0.95)] * 1000:.1f} ms, longest {times[-1] * 1000:.1f} ms",
                f"culprit below 95 %: {weak or 'nowhere'}",
            ]
        )


def seeds_of(faults: int, healthy: int, first_seed: int = 0) -> list[int]:
    """Seeds of jobs with faults, then of healthy ones, which are above a million."""
    first = range(first_seed, first_seed + faults)
    return [*first, *(_HEALTHY_SEED + seed for seed in range(first_seed, first_seed + healthy))]


def job_of(seed: int) -> Job:
    """Of all kinds of faults alike often; healthy from a million on."""
    if seed >= _HEALTHY_SEED:
        return simulate(seed, fault="healthy")
    return simulate(seed, fault=FAULTS[seed % len(FAULTS)])


def jobs_of(faults: int, healthy: int, first_seed: int = 0) -> Iterable[Job]:
    """Jobs with faults, all kinds alike often, then healthy ones."""
    return map(job_of, seeds_of(faults, healthy, first_seed))


def score(verdicts: dict[str, Verdict], jobs: Iterable[Job]) -> dict[str, Score]:
    """Ask each verdict about each job."""
    scores = {name: Score(name) for name in verdicts}
    for job in jobs:
        for name, verdict in verdicts.items():
            began = time.process_time()
            named, suspects = verdict(job)
            scores[name].add(job, named, suspects, time.process_time() - began)
    return scores


def named_verdicts(name: str | None) -> dict[str, Verdict]:
    """The rules of thumb, and beside them `module:function`."""
    verdicts: dict[str, Verdict] = dict(RULES)
    if name:
        module, _, function = name.partition(":")
        verdicts[name] = getattr(importlib.import_module(module), function)
    return verdicts


def score_seeds(name: str | None, seeds: Sequence[int]) -> dict[str, Score]:
    """What a worker does: ask about the jobs of these seeds."""
    return score(named_verdicts(name), map(job_of, seeds))


def score_in(workers: int, name: str | None, seeds: Sequence[int]) -> dict[str, Score]:
    """The same in several processes; how far they are goes to standard error."""
    parts = [seeds[at : at + _PART] for at in range(0, len(seeds), _PART)]
    total = {verdict: Score(verdict) for verdict in named_verdicts(name)}
    with ProcessPoolExecutor(workers) as pool:
        futures = [pool.submit(score_seeds, name, part) for part in parts]
        for done, future in enumerate(as_completed(futures), 1):
            for verdict, part in future.result().items():
                total[verdict].join(part)
                for seed, truth, named, suspects in part.wrong if verdict == name else ():
                    print(f"seed {seed}: {truth} named {named} {suspects[:3]}", file=sys.stderr)
            print(
                f"{min(done * _PART, len(seeds))} of {len(seeds)} jobs", file=sys.stderr, flush=True
            )
    return total


def main(arguments: list[str] | None = None) -> int:
    """Print each verdict's table."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.score", description=__doc__)
    parser.add_argument("--seeds", type=int, default=500, help="jobs with a fault")
    parser.add_argument("--healthy", type=int, default=1000, help="healthy jobs")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--verdict", metavar="MODULE:FUNCTION", help="a verdict to score, too")
    parser.add_argument("--wrong", action="store_true", help="list what that verdict got wrong")
    parser.add_argument("--workers", type=int, default=1, help="processes that ask")
    given = parser.parse_args(arguments)
    seeds = seeds_of(given.seeds, given.healthy, given.first)
    if given.workers > 1:
        scores = score_in(given.workers, given.verdict, seeds)
    else:
        scores = score_seeds(given.verdict, seeds)
    print("\n\n".join(score.report() for score in scores.values()))
    if given.wrong and given.verdict:
        for seed, truth, named, suspects in scores[given.verdict].wrong:
            print(f"seed {seed}: {truth} named {named} {suspects[:3]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
