from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ranklog.access.key_text import API, INGEST, new_key
from ranklog.agent.sealing import SealingSink
from ranklog.agent.sinks import open_sink
from ranklog.model.names import fitting
from ranklog.produce import key_tenant
from ranklog.produce.identity import (
    Identity,
    Surroundings,
    find_identity,
    identify,
    tenant_at,
)
from ranklog.produce.key_tenant import contradiction
from ranklog.produce.spool import stream_of
from ranklog.store.disk_names import MARKER
from ranklog.store.open import open_store

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


ELASTIC = {"TORCHELASTIC_RESTART_COUNT": "2", "TORCHELASTIC_MAX_RESTARTS": "3"}
POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "JOB_COMPLETION_INDEX": "3"}
PYTORCHJOB = {
    "KUBERNETES_SERVICE_HOST": "10.0.0.1",
    "MASTER_ADDR": "llama-master-0",
    "MASTER_PORT": "23456",
    "PET_NNODES": "2",
    "RANK": "1",
    "WORLD_SIZE": "2",
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
        (
            {
                "MV2_COMM_WORLD_RANK": "1",
                "MV2_COMM_WORLD_LOCAL_RANK": "1",
                "MV2_COMM_WORLD_SIZE": "2",
            },
            (1, 1, 2),
        ),
        ({"PALS_RANKID": "9", "PALS_LOCAL_RANKID": "1"}, (9, 1, None)),
        ({"FLUX_TASK_RANK": "2", "FLUX_TASK_LOCAL_ID": "0", "FLUX_JOB_SIZE": "4"}, (2, 0, 4)),
        ({"JSM_NAMESPACE_RANK": "5", "JSM_NAMESPACE_SIZE": "6"}, (5, None, 6)),
        ({"HOROVOD_RANK": "1", "HOROVOD_LOCAL_RANK": "1", "HOROVOD_SIZE": "2"}, (1, 1, 2)),
        (POD, (3, None, None)),
        (POD | {"RANK": "12", "LOCAL_RANK": "4", "WORLD_SIZE": "16"}, (12, 4, 16)),
        # The second job of a JobSet: its pods count from 0 again.
        (POD | {"JOB_INDEX": "1"}, (None, None, None)),
        (POD | {"JOB_INDEX": "1", "JOB_PARALLELISM": "4"}, (7, None, None)),
        (POD | {"JOB_INDEX": "0"}, (3, None, None)),
        (PYTORCHJOB, (1, None, 2)),
    ],
)
def test_ranks_come_from_the_launcher_that_is_trusted_most(
    environ: dict[str, str], expected: tuple[int | None, int | None, int | None]
) -> None:
    found = identify(environ, AROUND)

    assert (found.rank, found.local_rank, found.world_size) == expected


@pytest.mark.parametrize("environ", [SLURM, PYTORCHJOB, POD])
def test_a_torchrun_launcher_in_a_task_or_pod_has_no_rank(environ: dict[str, str]) -> None:
    assert identify(environ, TORCHRUN).rank is None
    assert identify(environ | {"RANKLOG_RANK": "1"}, TORCHRUN).rank == 1


@pytest.mark.parametrize(
    ("environ", "source"),
    [
        ({"RANK": "1", "TORCHELASTIC_RUN_ID": "7"}, "RANK (torchrun)"),
        ({"RANK": "1"}, "RANK (the environment)"),
        (PYTORCHJOB, "RANK (PyTorchJob)"),
        ({"PMI_RANK": "1"}, "PMI_RANK (PMI)"),
        (SLURM, "SLURM_PROCID (Slurm)"),
        (POD, "JOB_COMPLETION_INDEX (Kubernetes)"),
        ({}, None),
    ],
)
def test_it_is_known_where_a_rank_comes_from(environ: dict[str, str], source: str | None) -> None:
    assert find_identity(environ, AROUND).sources.get("rank") == source


def test_a_child_that_began_with_its_ranks_variables_is_its_worker() -> None:
    environ = {"RANK": "3", "WORLD_SIZE": "8"}
    loader = Surroundings("n0", "train.py", "n0:7:99", started_with=environ)

    assert identify(environ, AROUND).role is None
    assert (identify(environ, loader).rank, identify(environ, loader).role) == (3, "worker")
    assert identify(SLURM, Surroundings("n0", "x", "", started_with=SLURM)).role == "worker"
    assert identify(environ, loader, rank=3).role is None
    assert identify({"RANKLOG_ROLE": "evaluator"}, AROUND).role == "evaluator"


def test_a_child_that_was_made_a_rank_is_one() -> None:
    spawned = Surroundings("n0", "train.py", "n0:7:99", started_with={"HOME": "/"})

    assert identify({"RANK": "3", "WORLD_SIZE": "8"}, spawned).role is None
    assert identify({}, spawned).role is None


@pytest.mark.parametrize(
    ("environ", "run", "launch"),
    [
        (SLURM, "llama", "88.0"),
        ({"SLURM_JOB_ID": "88"}, "train", "88"),
        (SLURM | {"TORCHELASTIC_RUN_ID": "job-7"}, "llama", "job-7"),
        (SLURM | {"TORCHELASTIC_RUN_ID": "none"}, "llama", "88.0"),
        ({"PMIX_NAMESPACE": "prterun-1@1"}, "train", "prterun-1@1"),
        (SLURM | {"RANKLOG_RUN": "r", "RANKLOG_LAUNCH": "l"}, "r", "l"),
        ({"PET_RDZV_ID": "pet-1"}, "train", "pet-1"),
        ({"PALS_APID": "a-1"}, "train", "a-1"),
        ({"FLUX_JOB_ID": "f1"}, "train", "f1"),
        ({"LSB_JOBID": "5"}, "train", "5"),
        ({"PBS_JOBID": "5.pbs"}, "train", "5.pbs"),
        ({"JOBSET_NAME": "llama", "JOBSET_UID": "uid-1"}, "llama", "uid-1"),
        ({"JOBSET_NAME": "llama"}, "llama", "llama"),
        ({"JOB_NAME": "llama", "JOB_UID": "uid-2"}, "llama", "uid-2"),
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


def test_pods_of_a_job_agree_on_a_launch_though_each_has_a_launcher_of_its_own() -> None:
    launches = [
        identify(PYTORCHJOB | {"RANK": str(rank)}, around).launch
        for rank, around in ((0, AROUND), (1, OTHER))
    ]
    local = PYTORCHJOB | {"MASTER_ADDR": "localhost"}

    assert launches[0] == launches[1]
    assert identify(local, AROUND).launch != identify(local, OTHER).launch


def test_what_the_ranks_agreed_on_is_the_launch_where_nothing_names_it() -> None:
    agreed = Surroundings("n0", "train.py", "n0:7:99", agreed="a1b2")

    assert identify({"RANK": "0"}, agreed).launch == "a1b2"
    assert identify({"TORCHELASTIC_RUN_ID": "7"}, agreed).launch == "7"
    assert identify({"TORCHELASTIC_RUN_ID": "none"}, agreed).launch == "a1b2"


@pytest.mark.parametrize(
    ("environ", "attempt"),
    [
        ({}, 0),
        ({"TORCHELASTIC_RESTART_COUNT": "2"}, 2),
        ({"SLURM_RESTART_COUNT": "1"}, 1),
        ({"TORCHELASTIC_RESTART_COUNT": "2", "SLURM_RESTART_COUNT": "1"}, 2),
        # A requeued job counts torchrun's restarts anew: its attempts come after all of before.
        (ELASTIC | {"SLURM_RESTART_COUNT": "0"}, 2),
        (ELASTIC | {"SLURM_RESTART_COUNT": "1"}, 6),
        (ELASTIC | {"JOBSET_RESTART_ATTEMPT": "2"}, 10),
        (ELASTIC | {"RANKLOG_ATTEMPT": "9"}, 9),
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


def test_who_sends_to_an_api_is_who_its_key_is_of_unless_told() -> None:
    key = new_key(API, "acme").render()
    api = {"RANKLOG_DESTINATION": "https://logs", "RANKLOG_API_KEY": key}
    cases = [
        ({}, "default"),
        (api, "acme"),
        (api | {"RANKLOG_TENANT": "other"}, "other"),
        (api | {"RANKLOG_API_KEY": "a key of --keys FILE"}, "default"),
        (api | {"RANKLOG_API_KEY": new_key(INGEST, "acme").render()}, "default"),
        (api | {"RANKLOG_DESTINATION": "store:/logs"}, "default"),
        ({"RANKLOG_API_KEY": key}, "default"),
    ]
    found = [find_identity(environ, AROUND).identity.tenant for environ, _ in cases]
    assert found == [expected for _, expected in cases]
    assert tenant_at("http://127.0.0.1:8080", {"RANKLOG_API_KEY": key}) == "acme"


def test_an_ingest_key_says_whose_lines_go_into_kinesis(tmp_path: Path) -> None:
    key = new_key(INGEST, "acme").render()
    (tmp_path / "key").write_text(key + "\n")
    there = {"RANKLOG_DESTINATION": "kinesis://logs"}
    file = {"RANKLOG_INGEST_KEY_FILE": str(tmp_path / "key")}
    cases: list[tuple[dict[str, str], str]] = [
        (there | {"RANKLOG_INGEST_KEY": key}, "acme"),
        (there | file, "acme"),
        (there | {"RANKLOG_INGEST_KEY": key, "RANKLOG_TENANT": "umbrella"}, "umbrella"),
        (there | {"RANKLOG_INGEST_KEY": "junk"}, "default"),
        (there | {"RANKLOG_INGEST_KEY_FILE": str(tmp_path / "none")}, "default"),
        (there | {"RANKLOG_INGEST_KEY": new_key(API, "acme").render()}, "default"),
        ({"RANKLOG_DESTINATION": "s3://logs", "RANKLOG_INGEST_KEY": key}, "default"),
    ]
    found = [find_identity(environ, AROUND).identity.tenant for environ, _ in cases]
    assert found == [expected for _, expected in cases]


def test_an_ingest_key_is_looked_at_where_frames_go_sealed_and_nowhere_else(tmp_path: Path) -> None:
    assert key_tenant._STORE_MARKER == MARKER
    key = new_key(INGEST, "acme").render()
    open_store(str(tmp_path / "a store"), create=True)
    environ = {"RANKLOG_INGEST_KEY": key}
    for destination, proves in [
        (str(tmp_path / "stream"), True),
        (f"file://{tmp_path}/stream", True),
        (str(tmp_path / "a store"), False),
        (f"file://{tmp_path}/a%20store", False),
        (f"store:{tmp_path}/new", False),
        ("https://logs", False),
    ]:
        sink = open_sink(destination, environ)
        assert (isinstance(sink, SealingSink) and sink._proves) == proves, destination
        assert tenant_at(destination, environ) == ("acme" if proves else "default"), destination
        told = contradiction("umbrella", destination, environ)
        assert ("the ingest key is of 'acme'" in told) == proves, destination
    assert contradiction("umbrella", "kinesis://[", environ) == ""
    assert tenant_at(None, environ) == "default"


def test_a_tenant_that_the_key_is_not_of_is_told() -> None:
    api, ingest = new_key(API, "acme").render(), new_key(INGEST, "acme").render()
    told = contradiction("umbrella", "kinesis://logs", {"RANKLOG_INGEST_KEY": ingest})
    assert told == (
        "lines are of tenant 'umbrella', and the ingest key is of 'acme': set RANKLOG_TENANT=acme, or leave "
        "it out, or take a key of that tenant"
    )
    assert "API key is of 'acme'" in contradiction(
        "umbrella", "https://logs", {"RANKLOG_API_KEY": api}
    )
    assert contradiction("acme", "kinesis://logs", {"RANKLOG_INGEST_KEY": ingest}) == ""
    assert contradiction("umbrella", "kinesis://logs", {}) == ""
    assert contradiction("umbrella", "https://logs", {"RANKLOG_API_KEY": "of a file"}) == ""


def test_names_are_as_keys_take_them() -> None:
    """A frame has the lines of many jobs: who has a longer name has others' lines refused."""
    long = "lr=1e-4," * 40
    environ = {"RANKLOG_RUN": long, "RANKLOG_LAUNCH": "日" * 60, "RANKLOG_HOST": "h" * 300}
    for who in (identify(environ, AROUND), identify({}, AROUND, run=long, launch="日" * 60)):
        assert who.run == fitting(long) != long
        assert who.launch == fitting("日" * 60) != "日" * 60
    old = replace(identify(environ, AROUND), run=long, launch="日" * 60, host="h" * 300)
    stream = stream_of(old, "stdout", "0")  # as an SDK of before announces it
    assert (stream.run, stream.launch) == (fitting(long), fitting("日" * 60))
    assert stream.host == fitting("h" * 300)
