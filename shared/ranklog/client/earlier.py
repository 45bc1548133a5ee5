"""The run that a run is held against, in a user's words: `NAME`, or `~1`, the launch before."""

from __future__ import annotations

from collections.abc import Sequence

from ranklog.client.catalog import Launch
from ranklog.client.reader import Reader
from ranklog.errors import BadInput, NotFound
from ranklog.model.query import RunSelector
from ranklog.plan.bounds import parse_run_selector


def earlier_run(
    reader: Reader, run: RunSelector | None, launches: Sequence[Launch] | None, words: str
) -> RunSelector:
    """One launch. `~N` counts back from the one launch that `run` means. Raises BadInput, NotFound."""
    if words.startswith("~"):
        if run is None or launches is None or len(launches) != 1:
            raise BadInput(f"{words} of which run?", hint="name one launch with --run")
        chosen = _before(reader, launches[0], words)
    else:
        chosen = parse_run_selector(words)
    if chosen.ok and launches is not None and len(launches) == 1:
        chosen = _well_before(reader, launches[0], chosen)
    for item in reader.catalog.select(chosen):
        if launches is not None and item.run_id in {launch.run_id for launch in launches}:
            raise BadInput(f"{item.run_id} is held against itself", hint="name an earlier run")
    return chosen


def _well_before(reader: Reader, launch: Launch, chosen: RunSelector) -> RunSelector:
    """What ended well last; of the launch's own run, which may have ended well itself, before it."""
    if chosen.name != launch.run:
        return chosen
    found = reader.catalog.ended_well_before(launch)
    if found is None:
        raise NotFound(f"no launch of {launch.run} before {launch.launch} ended well")
    return RunSelector(found.run, launch=found.launch)


def _before(reader: Reader, launch: Launch, words: str) -> RunSelector:
    if words == "~ok":
        return RunSelector(launch.run, ok=True)
    if not words[1:].isdecimal() or int(words[1:]) < 1:
        raise BadInput(
            f"{words} is no earlier launch", hint="~1 is the launch before, or name a run"
        )
    names = [item.launch for item in reader.catalog.launches(launch.run)]
    at = names.index(launch.launch) - int(words[1:])
    if at < 0:
        raise BadInput(f"{launch.run_id} has no launch {words[1:]} before it", hint="name a run")
    return RunSelector(launch.run, launch=names[at])
