"""The verdict of `Client.triage` over simulated jobs, for `python -m tests.faults.score`.

`verdict` imports the job's files into a store in memory and asks; `--verdict tests.faults.triage:verdict`.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence

from ranklog.client import Client
from ranklog.client.triage_answer import Triage
from ranklog.importer import import_paths
from ranklog.store.memory import MemoryStore
from tests.faults.job import Job
from tests.faults.truth import UNDECIDABLE, Culprit


def imported(job: Job) -> Client:
    """A client of a store that holds the job's files as run `job`."""
    store = MemoryStore()
    with tempfile.TemporaryDirectory() as folder:
        job.write(f"{folder}/job")
        import_paths(
            [f"{folder}/job"], store=store, tenant="default", run="job", now_ns=time.time_ns()
        )
    return Client(store=store)


def named(found: Triage) -> tuple[str, list[Culprit]]:
    """Class and suspects in the words of the truth."""
    if found["undecidable"] and not found.suspects:
        return found.fault, [UNDECIDABLE]
    culprits: list[Culprit] = []
    for suspect in found.suspects:
        if suspect["group"] == "node":
            culprits.append(suspect["host"])
        elif suspect["rank"] is not None:
            culprits.append(suspect["rank"])
        elif isinstance(suspect["ranks"], list):
            culprits.append(frozenset(suspect["ranks"]) or UNDECIDABLE)
        else:
            culprits.append(suspect["ranks"] or UNDECIDABLE)
    return found.fault, culprits


def verdict(job: Job) -> tuple[str, Sequence[Culprit]]:
    """Import, then ask."""
    with imported(job) as client:
        return named(client.triage(run="job"))
