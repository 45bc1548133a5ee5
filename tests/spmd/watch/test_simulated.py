"""Simulated jobs: healthy ones raise nothing, faulty ones something that fits, whatever their framework."""

from __future__ import annotations

import pytest

from tests.faults.simulate import FAULTS, simulate
from tests.spmd.watch.simulated import Watched, watch_job

# Ended from outside, or nothing of it is in the lines while the run goes on.
QUIET = {"sigterm_outside", "time_limit", "preemption", "slow_rank", "slow_node", "loss_spike"}


@pytest.fixture(scope="module")
def healthy() -> list[Watched]:
    jobs = (simulate(80_000 + seed, fault="healthy", ranks=8) for seed in range(20))
    return [watch_job(job, ends=True) for job in jobs]


def test_healthy_jobs_with_all_their_noise_raise_nothing(healthy: list[Watched]) -> None:
    loud = [watched.fired for watched in healthy if watched.fired]
    assert len(loud) <= 1, loud


def test_a_job_that_ended_well_is_known_to_have(healthy: list[Watched]) -> None:
    assert {watched.watching.state for watched in healthy} == {"finished"}


@pytest.fixture(scope="module")
def faulty() -> dict[str, Watched]:
    found = {}
    for seed, fault in enumerate(FAULTS):
        if fault not in QUIET:
            job = simulate(81_000 + seed, fault=fault, ranks=8)
            found[fault] = watch_job(job, ends=False, after_s=2_400)
    return found


def test_faulty_jobs_raise_alerts(faulty: dict[str, Watched]) -> None:
    """Untimed lines of imported files come too early, which hides a few."""
    quiet = [fault for fault, watched in faulty.items() if not watched.fired]
    assert len(quiet) <= 3, quiet


def test_an_alert_is_told_once_until_it_is_resolved(faulty: dict[str, Watched]) -> None:
    for watched in faulty.values():
        open_ = set[tuple[str, str]]()
        for notice in watched.notices:
            for subject in notice.subjects:
                key = (notice.kind, subject)
                assert (key in open_) == (notice.state == "resolved")
                open_ ^= {key}
