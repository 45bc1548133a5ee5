"""Identity and launcher, told with where they come from and what to do."""

from __future__ import annotations

import pytest

from ranklog.doctor.check import NOTE, OK, PROBLEM
from ranklog.doctor.who import check_identity, check_launcher
from ranklog.produce.identity import Surroundings

AROUND = Surroundings("n0", "train.py", "n0:7:9")


@pytest.mark.parametrize(
    ("environ", "state", "says"),
    [
        ({"RANK": "3", "WORLD_SIZE": "8", "TORCHELASTIC_RUN_ID": "7"}, OK, "rank 3 of 8, from RANK (torchrun)"),
        ({"RANK": "3"}, NOTE, "rank 3, from RANK (the environment)"),
        ({"JOB_COMPLETION_INDEX": "2"}, NOTE, "from JOB_COMPLETION_INDEX (Kubernetes)"),
        ({}, NOTE, "no rank"),
        ({"RANKLOG_DISABLED": "1", "RANK": "3"}, PROBLEM, "does nothing"),
    ],
)  # fmt: skip
def test_a_rank_is_told_with_its_variable(environ: dict[str, str], state: str, says: str) -> None:
    check = check_identity(environ, AROUND)[0]

    assert check.state == state
    assert says in check.says


@pytest.mark.parametrize(
    ("environ", "state", "do"),
    [
        ({"SLURM_JOB_ID": "88"}, OK, "nothing to do"),
        ({"RANK": "0", "WORLD_SIZE": "16", "LOCAL_WORLD_SIZE": "8"}, PROBLEM, "RANKLOG_LAUNCH"),
        ({"KUBERNETES_SERVICE_HOST": "x", "MASTER_ADDR": "job-0"}, NOTE, "controller-uid"),
    ],
)
def test_a_launch_that_hosts_would_not_share_is_a_problem(
    environ: dict[str, str], state: str, do: str
) -> None:
    check = check_identity(environ, AROUND)[1]

    assert (check.name, check.state) == ("launch", state)
    assert do in check.do


@pytest.mark.parametrize(
    ("words", "environ", "state", "says"),
    [
        ([], {"SLURM_JOB_ID": "1"}, OK, "inside of Slurm"),
        ([], {}, OK, "no launcher around this shell"),
        (["no-such-program"], {}, PROBLEM, "no program no-such-program"),
        (["python3", "-m", "torch.distributed.run", "x.py"], {}, OK, "torchrun with our plugin"),
        (["python3", "-m", "torch.distributed.run", "--logs-specs=mine", "x.py"], {}, NOTE, "--logs-specs mine"),
        (["python3", "train.py"], {}, NOTE, "one program, train"),
    ],
)  # fmt: skip
def test_a_command_is_told_by_what_it_starts(
    words: list[str], environ: dict[str, str], state: str, says: str
) -> None:
    check = check_launcher(words, environ)

    assert check.state == state
    assert says in check.says
