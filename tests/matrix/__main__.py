"""`python -m tests.matrix`: every actor stopped at every step, and what was lost by it. See README.md."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Iterable, Sequence

from tests.matrix.machine import Where
from tests.matrix.mutations import MUTATIONS
from tests.matrix.table import Table, told
from tests.matrix.workers import Verdicts, run_seeds, running_servers

SCHEDULES = 20
# Where the schedule that is known to show a broken rule does not any more, so many like it and others are tried.
LIKE_IT, OTHERS = 6, 12


def main(arguments: Sequence[str] | None = None) -> int:
    """0: nothing went wrong, and every broken rule was caught."""
    parser = argparse.ArgumentParser(prog="python -m tests.matrix", description=__doc__)
    parser.add_argument("--schedules", type=int, help=f"so many seeds (default: {SCHEDULES})")
    parser.add_argument("--first", type=int, default=0, help="the first of them (default: 0)")
    parser.add_argument("--seed", type=int, help="only this one, and all that is wrong there")
    parser.add_argument("--workers", type=int, default=1, help="processes (default: 1)")
    parser.add_argument(
        "--mutations",
        nargs="*",
        metavar="NAME",
        help="break these rules, one at a time, each in the schedule that is known to show it, then in others "
        f"until one does, or in --schedules of them (none: each of {', '.join(MUTATIONS)})",
    )
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, _end)
    seeds = range(options.first, options.first + (options.schedules or SCHEDULES))
    if options.seed is not None:
        seeds = range(options.seed, options.seed + 1)
    with running_servers() as where:
        if options.mutations is not None:
            is_search = options.seed is not None or options.schedules is not None
            return _mutate(where, options.mutations or list(MUTATIONS), seeds if is_search else ())
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
    """Whether each broken rule shows, and nothing while it holds. No `seeds`: in the schedule of each, or another
    one."""
    verdicts = Verdicts(where)
    _say([f"{'broken rule':<34}{'seed':>5}{'CPU s':>7}  caught by"])
    for name in names:
        found = verdicts.of(name, seeds or _candidates(MUTATIONS[name].seed))
        seed = "-" if found.seed is None else str(found.seed)
        _say(
            [f"{name:<34}{seed:>5}{found.cpu_s:>7.1f}  {found.what}", f"    {MUTATIONS[name].rule}"]
        )
        _say(f"    {note:.200}" for note in found.notes)
    _say([f"{verdicts.caught} of {len(names)} broken rules caught"])
    return 0 if verdicts.caught == len(names) else 1


def _candidates(known: int) -> list[int]:
    """Seeds in the order in which they are tried. Which scenes a schedule has goes by its seed modulo 16."""
    like_it = range(known, known + 16 * LIKE_IT, 16)
    return list(dict.fromkeys([*like_it, *range(OTHERS)]))


def _say(lines: Iterable[str]) -> None:
    for line in lines:
        print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
