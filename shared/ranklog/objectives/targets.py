"""Objectives: which measurement must be how good, by default and for a tenant.

    <tenant>/config/objectives.json     {"version": 1, "targets": {"freshness_p99_ms": 5000, "query_p99_ms": null}}

An objective is a share of good ones: 99 % of the lines within so many ms; all lines that were acknowledged.
What may be bad of the rest is its error budget. null: no objective, only told.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from ranklog.errors import BadInput, Corrupt, NewerVersion, NotFound
from ranklog.layout import keys
from ranklog.objectives import names
from ranklog.store.protocol import Store

VERSION = 1
Targets = Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class Objective:
    """`times`: the histogram of which `share` must be within the target, in ms. Without one the target is
    itself the share of good ones, of what `of` says. `default` None: told, and no objective."""

    name: str
    default: float | None
    meaning: str
    times: str | None = None
    share: Fraction = Fraction(1)


P50, P95, P99 = Fraction(50, 100), Fraction(95, 100), Fraction(99, 100)

OBJECTIVES: tuple[Objective, ...] = (
    Objective(
        "freshness_p50_ms",
        5_000,
        "half of the lines are searchable so long after they arrived in the stream",
        names.FRESHNESS,
        P50,
    ),
    Objective("freshness_p99_ms", 15_000, "99 % of them", names.FRESHNESS, P99),
    Objective(
        "delay_p99_ms",
        30_000,
        "99 % of the lines of producers and agents are searchable so long after their own time",
        names.DELAY,
        P99,
    ),
    Objective("completeness", 0.9999, "lines stored or deleted, of all that are known of"),
    Objective("durability", 1.0, "lines found or deleted, of all that were acknowledged"),
    Objective(
        "query_p50_ms", 1_000, "half of the questions are answered within", names.QUERY_MS, P50
    ),
    Objective("query_p95_ms", 5_000, "95 % of them", names.QUERY_MS, P95),
    Objective("query_p99_ms", 15_000, "99 % of them", names.QUERY_MS, P99),
    Objective("answers_served", 0.999, "questions that did not end with a status of 500 or above"),
    Objective("answers_whole", 0.999, "answers that read all they had to: not `partial`"),
    Objective(
        "answers_current",
        None,
        "answers that are `complete`; while a job runs they are `behind`, so there is no default",
    ),
    Objective("canary_found", 0.999, "a canary's lines found once, in time, as they were written"),
)

BY_NAME = {objective.name: objective for objective in OBJECTIVES}


def defaults() -> dict[str, float | None]:
    """Every objective's target where a tenant says nothing."""
    return {objective.name: objective.default for objective in OBJECTIVES}


def load_targets(store: Store, tenant: str) -> dict[str, float | None]:
    """The tenant's targets: its own before the defaults. Raises Corrupt, NewerVersion."""
    return defaults() | _own(store, tenant)


def set_targets(store: Store, tenant: str, given: Mapping[str, float | str | None]) -> None:
    """Keep the tenant's own targets; "default" forgets one. Of two writers the last has the word.

    Raises BadInput, and what the store raises.
    """
    own = _own(store, tenant)
    for name, value in given.items():
        check_target(name, value)
        if value == "default":
            own.pop(name, None)
        else:
            own[name] = None if value is None else float(value)
    said = {"version": VERSION, "targets": own}
    store.put(keys.objectives_key(tenant), json.dumps(said, indent=1).encode())


def check_target(name: str, value: float | str | None) -> None:
    """Raises BadInput for a name or a number that is none."""
    objective = BY_NAME.get(name)
    if objective is None:
        raise BadInput(f"no objective {name!r}", hint=f"objectives are {', '.join(BY_NAME)}")
    if value is None or value == "default":
        return
    most = 1.0 if objective.times is None else math.inf
    if isinstance(value, str) or not 0 < value <= most or math.isinf(value):
        what = "a share, above 0 and at most 1" if most == 1 else "milliseconds, above 0"
        raise BadInput(f"{name} of {value}", hint=f"{what}; none or default")


def _own(store: Store, tenant: str) -> dict[str, float | None]:
    key = keys.objectives_key(tenant)
    try:
        said = json.loads(store.get(key))
        if said["version"] > VERSION:
            raise NewerVersion(f"{key} was written by a newer ranklog", hint="upgrade ranklog")
        found = {name: said["targets"][name] for name in said["targets"] if name in BY_NAME}
        for name, value in found.items():
            check_target(name, value)
        return found
    except NotFound:
        return {}
    except (ValueError, KeyError, TypeError, AttributeError, BadInput) as error:
        raise Corrupt(f"{key} is damaged: {error}", hint="set it again") from error
