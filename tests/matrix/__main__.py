"""`python -m tests.matrix`: every actor stopped at every step, and what was lost by it. See README.md."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Iterable, Sequence

from tests.matrix.machine import Where
from tests.matrix.mutations import MUTATIONS
from tests.matrix.table import Table, told
from tests.matrix.workers import first_caught, run_seeds, running_servers

# Schedules in which a broken rule must show.
MUTATION_SCHEDULES = 40


def main(arguments: Sequence[str] | None = None) -> int:
    """0: nothing went wrong, and every broken rule was caught."""
    parser = argparse.ArgumentParser(prog="python -m tests.matrix", description=__doc__)
    parser.add_argument("--schedules", type=int, default=20, help="so many seeds (default: 20)")
    parser.add_argument("--first", type=int, default=0, help="the first of them (default: 0)")
    parser.add_argument("--seed", type=int, help="only this one, and all that is wrong there")
    parser.add_argument("--workers", type=int, default=1, help="processes (default: 1)")
    parser.add_argument(
        "--mutations",
        nargs="*",
        metavar="NAME",
        help=f"break these rules (none: each of {', '.join(MUTATIONS)}), one at a time",
    )
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, _end)
    seeds = range(options.first, options.first + options.schedules)
    if options.seed is not None:
        seeds = range(options.seed, options.seed + 1)
    with running_servers() as where:
        if options.mutations is not None:
            chosen = options.mutations or list(MUTATIONS)
            most = len(seeds) if options.seed is not None else MUTATION_SCHEDULES
            return _mutate(where, chosen, range(seeds[0], seeds[0] + most))
        return _play(where, seeds, options.workers, all_notes=options.seed is not None)


def _end(*_: object) -> None:
    """Servers end with us, however often we are told."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(143)


def _play(where: Where, seeds: Sequence[int], workers: int, *, all_notes: bool) -> int:
    table = Table()
    try:
        for result in run_seeds(where, seeds, workers):
            table.add(result)
            if result.notes:
                _say(told(result, 1_000 if all_notes else 5))
            if table.total.schedules % 20 == 0:
                _say([f"{table.total.schedules} schedules, wrong: {dict(table.total.wrong)}"])
    finally:
        _say(table.render())  # of a run that is ended before its time, too
    return 0 if table.is_clean else 1


def _mutate(where: Where, names: Sequence[str], seeds: Sequence[int]) -> int:
    """Whether each broken rule shows."""
    missed = 0
    for name in names:
        found = first_caught(where, seeds, name)
        missed += found is None
        what = "NOT CAUGHT" if found is None else f"seed {found.seed}: {dict(found.wrong)}"
        _say([f"{name:<34}{what}", f"    {MUTATIONS[name].rule}"])
        if found is not None:
            _say([f"    {note.strip().splitlines()[-1]:.200}" for note in found.notes[:1]])
    _say([f"{len(names) - missed} of {len(names)} broken rules caught"])
    return 1 if missed else 0


def _say(lines: Iterable[str]) -> None:
    for line in lines:
        print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
