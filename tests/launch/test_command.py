from __future__ import annotations

import pytest

from ranklog.launch.command import launch_id, run_name, torchrun_of


@pytest.mark.parametrize(
    ("command", "changed"),
    [
        ("torchrun train.py", "torchrun --logs-specs=ranklog train.py"),
        ("/opt/bin/torchrun -t 3 a.py", "/opt/bin/torchrun --logs-specs=ranklog -t 3 a.py"),
        (
            "python3 -u -m torch.distributed.run --nproc-per-node 2 a.py",
            "python3 -u -m torch.distributed.run --logs-specs=ranklog --nproc-per-node 2 a.py",
        ),
        ("torchrun --logs_specs mine a.py", "torchrun --logs_specs mine a.py"),
        ("torchrun a.py --logs-specs x", "torchrun --logs-specs=ranklog a.py --logs-specs x"),
    ],
)
def test_torchrun_gets_the_plugin_and_keeps_every_other_word(command: str, changed: str) -> None:
    torchrun = torchrun_of(command.split())

    assert torchrun is not None
    assert torchrun.with_plugin() == changed.split()


@pytest.mark.parametrize(
    "command", ["", "python train.py", "python -m trainer", "srun torchrun a.py", "bash torchrun"]
)
def test_other_commands_are_left_alone(command: str) -> None:
    assert torchrun_of(command.split()) is None


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("python -u src/train.py --lr 3", "train"),
        ("torchrun --nproc-per-node 2 pretrain_gpt.py", "pretrain_gpt"),
        ("python -m trainer.main", "trainer.main"),
        ("python -m torch.distributed.run x/train.py", "train"),
        ("/usr/bin/env", "env"),
    ],
)
def test_a_run_is_named_after_its_script(command: str, name: str) -> None:
    assert run_name(command.split()) == name


def test_a_launch_has_the_id_its_nodes_share() -> None:
    assert launch_id("torchrun --rdzv-id=job7 a.py".split(), {}) == "job7"
    assert launch_id("torchrun --rdzv_id job7 a.py".split(), {}) == "job7"
    assert launch_id("torchrun a.py --rdzv-id=no".split(), {"PET_RDZV_ID": "j"}) == "j"
    assert launch_id("torchrun --rdzv-id none a.py".split(), {}) is None
    assert launch_id("python a.py".split(), {"PET_RDZV_ID": "j"}) is None


def test_nodes_that_were_given_no_id_share_where_they_meet() -> None:
    command = "torchrun --nnodes 2 --node-rank {} --master-addr n0 --master-port 1 a.py"
    first, second = (launch_id(command.format(node).split(), {}) for node in (0, 1))

    assert first == second
    assert first not in (None, launch_id(command.replace("n0", "n1").format(0).split(), {}))
    assert launch_id("torchrun --nnodes 1 a.py".split(), {}) is None
