"""What the launch of a process is called: the same for all of a job, on one host and on several."""

from __future__ import annotations

import pytest

from ranklog.produce.identity import Surroundings, find_identity
from ranklog.produce.launch_name import is_host_alone, is_launch_shared

AROUND = Surroundings("n0", "train.py", "n0:7:99")
OTHER = Surroundings("n1", "train.py", "n1:8:77")


TWO_HOSTS = {"MASTER_ADDR": "n0", "MASTER_PORT": "29500", "WORLD_SIZE": "16"}


@pytest.mark.parametrize(
    ("environ", "is_one"),
    [
        (TWO_HOSTS | {"LOCAL_WORLD_SIZE": "8", "TORCHELASTIC_RUN_ID": "none"}, True),
        (TWO_HOSTS | {"GROUP_WORLD_SIZE": "2"}, True),
        (TWO_HOSTS, True),  # nothing tells how many hosts: started by hand
        (TWO_HOSTS | {"LOCAL_WORLD_SIZE": "16"}, False),  # one host: its launcher tells jobs apart
        (TWO_HOSTS | {"WORLD_SIZE": "1"}, False),
        (TWO_HOSTS | {"MASTER_ADDR": "localhost"}, False),
    ],
)
def test_hosts_of_a_job_that_nothing_names_agree_by_where_they_meet(
    environ: dict[str, str], is_one: bool
) -> None:
    found = [
        find_identity(environ | {"RANK": str(rank)}, around)
        for rank, around in ((0, AROUND), (8, OTHER))
    ]

    assert (found[0].identity.launch == found[1].identity.launch) is is_one
    assert is_launch_shared(found[0]) is is_one
    elsewhere = find_identity(environ | {"RANK": "0", "MASTER_PORT": "29501"}, AROUND)
    assert elsewhere.identity.launch != found[0].identity.launch


@pytest.mark.parametrize(
    ("environ", "alone"),
    [
        ({"WORLD_SIZE": "16", "LOCAL_WORLD_SIZE": "8", "RANK": "0"}, True),
        ({"WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "8", "RANK": "0"}, False),
        ({"GROUP_WORLD_SIZE": "2", "RANK": "0", "WORLD_SIZE": "16"}, True),
        ({"WORLD_SIZE": "16", "LOCAL_WORLD_SIZE": "8", "SLURM_JOB_ID": "8"}, False),
        ({"PMI_RANK": "0", "PMI_SIZE": "4", "MPI_LOCALNRANKS": "2"}, True),
        ({"PMI_RANK": "0", "PMI_SIZE": "4", "MPI_LOCALNRANKS": "4"}, False),
        ({"HOROVOD_RANK": "0", "HOROVOD_SIZE": "4", "HOROVOD_LOCAL_SIZE": "2"}, True),
        ({}, False),
    ],
)
def test_a_host_whose_launch_the_others_do_not_share_is_known(
    environ: dict[str, str], alone: bool
) -> None:
    assert is_host_alone(environ, find_identity(environ, AROUND)) is alone


def test_a_child_that_names_a_world_for_itself_is_of_its_parent_s_launch() -> None:
    """As `mp.spawn` has it: the variables of the job's first process name the launch."""
    first = {"MASTER_ADDR": "n0", "MASTER_PORT": "29500"}
    around = Surroundings("n0", "train.py", "n0:7:99", job_started_with=first)
    child = first | {"RANK": "1", "WORLD_SIZE": "4", "MASTER_PORT": "31000"}

    launches = {find_identity(environ, around).identity.launch for environ in (first, child)}
    assert len(launches) == 1
