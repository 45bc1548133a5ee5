from __future__ import annotations

import pytest

from ranklog.produce.identity import Identity, Surroundings, identify

AROUND = Surroundings(host="n0", script="/job/train.py", launcher="n0:7:99")
OTHER = Surroundings(host="n0", script="/job/train.py", launcher="n0:8:99")
TORCHRUN = Surroundings("n0", "/usr/bin/torchrun", "n0:7:99", in_torchrun_launcher=True)
SLURM = {
    "SLURM_JOB_ID": "88",
    "SLURM_STEP_ID": "0",
    "SLURM_JOB_NAME": "llama",
    "SLURM_PROCID": "5",
    "SLURM_LOCALID": "1",
    "SLURM_NTASKS": "16",
}


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, (None, None, None)),
        ({"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "8"}, (3, 1, 8)),
        ({"RANK": "3"}, (3, None, None)),
        ({"RANK": "", "PMI_RANK": "2", "PMI_SIZE": "4"}, (2, None, 4)),
        ({"RANK": "-1"}, (None, None, None)),
        ({"RANK": "two"}, (None, None, None)),
        (
            {
                "OMPI_COMM_WORLD_RANK": "6",
                "OMPI_COMM_WORLD_LOCAL_RANK": "2",
                "OMPI_COMM_WORLD_SIZE": "8",
            },
            (6, 2, 8),
        ),
        ({"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALRANKID": "0"}, (1, 0, 2)),
        ({"PMIX_RANK": "4"}, (4, None, None)),
        (SLURM, (5, 1, 16)),
        # Each variable of one launcher: never the rank of one and the size of another.
        (SLURM | {"RANK": "3", "WORLD_SIZE": "8"}, (3, None, 8)),
        (SLURM | {"OMPI_COMM_WORLD_RANK": "9"}, (9, None, None)),
        (SLURM | {"SLURM_NTASKS": "1"}, (None, None, None)),
        ({"RANK": "3", "OMPI_COMM_WORLD_RANK": "9", "PMI_RANK": "8"}, (3, None, None)),
        ({"RANKLOG_RANK": "7", "RANK": "3"}, (7, None, None)),
    ],
)
def test_ranks_come_from_the_launcher_that_is_trusted_most(
    environ: dict[str, str], expected: tuple[int | None, int | None, int | None]
) -> None:
    found = identify(environ, AROUND)

    assert (found.rank, found.local_rank, found.world_size) == expected


def test_a_torchrun_launcher_in_a_slurm_task_has_no_rank() -> None:
    assert identify(SLURM, TORCHRUN).rank is None


@pytest.mark.parametrize(
    ("environ", "run", "launch"),
    [
        (SLURM, "llama", "88.0"),
        ({"SLURM_JOB_ID": "88"}, "train", "88"),
        (SLURM | {"TORCHELASTIC_RUN_ID": "job-7"}, "llama", "job-7"),
        (SLURM | {"TORCHELASTIC_RUN_ID": "none"}, "llama", "88.0"),
        ({"PMIX_NAMESPACE": "prterun-1@1"}, "train", "prterun-1@1"),
        (SLURM | {"RANKLOG_RUN": "r", "RANKLOG_LAUNCH": "l"}, "r", "l"),
    ],
)
def test_run_and_launch_come_from_the_same_order(
    environ: dict[str, str], run: str, launch: str
) -> None:
    found = identify(environ, AROUND)

    assert (found.run, found.launch) == (run, launch)


def test_ranks_of_one_launcher_agree_on_a_launch_and_another_launcher_has_another() -> None:
    environ = {"MASTER_ADDR": "n0", "MASTER_PORT": "29500"}
    launches = [
        identify(environ | {"RANK": str(rank)}, around).launch
        for rank, around in ((0, AROUND), (1, AROUND), (0, OTHER))
    ]

    assert launches[0] == launches[1] != launches[2]


@pytest.mark.parametrize(
    ("environ", "attempt"),
    [
        ({}, 0),
        ({"TORCHELASTIC_RESTART_COUNT": "2"}, 2),
        ({"SLURM_RESTART_COUNT": "1"}, 1),
        ({"TORCHELASTIC_RESTART_COUNT": "2", "SLURM_RESTART_COUNT": "1"}, 2),
    ],
)
def test_a_restart_is_an_attempt(environ: dict[str, str], attempt: int) -> None:
    assert identify(environ, AROUND).attempt == attempt


def test_what_is_given_wins() -> None:
    given = identify(
        SLURM,
        AROUND,
        tenant="t",
        run="r",
        launch="l",
        attempt=4,
        rank=1,
        local_rank=0,
        world_size=2,
    )

    assert given == Identity("t", "r", "l", 4, "n0", 1, 0, 2)
