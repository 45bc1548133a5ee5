"""What a run runs on, from folders made for the purpose."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ranklog.produce import devices, inventory
from ranklog.produce.describe import read_configs


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def git(folder: Path, *words: str) -> None:
    environ = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    names = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "-C", str(folder), *names, *words], check=True, env=environ)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    write(tmp_path, {"train.py": "print(1)\n"})
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "x")
    git(tmp_path, "remote", "add", "origin", "https://me:secret@host/repo.git")
    return tmp_path


def test_a_clean_repository_is_its_commit(repository: Path) -> None:
    state = inventory.git_state(repository)

    assert state is not None
    assert len(state["commit"]) == 40
    assert state["dirty"] == 0
    assert state["remote"] == "https://***@host/repo.git"
    assert "dirty_hash" not in state


def test_the_same_changes_have_the_same_hash_and_others_another(repository: Path) -> None:
    hashes = []
    for text in ("print(2)\n", "print(3)\n", "print(2)\n"):
        write(repository, {"train.py": text})
        state = inventory.git_state(repository)
        assert state is not None
        assert (state["dirty"], state["changed_files"]) == (1, ["train.py"])
        hashes.append(state["dirty_hash"])

    assert hashes[0] == hashes[2] != hashes[1]


def test_where_no_repository_is_there_is_no_state(tmp_path: Path) -> None:
    assert inventory.git_state(tmp_path) is None


def test_versions_of_torch_are_read_without_importing_it(tmp_path: Path) -> None:
    version = (
        "__version__ = '2.4.0+cu121'\ncuda: Optional[str] = '12.1'\nhip: Optional[str] = None\n"
    )
    write(
        tmp_path,
        {
            "torch/__init__.py": "raise ImportError\n",
            "torch/version.py": version,
            "torch-2.4.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: torch\nVersion: 2.4.0\n",
            "nvidia_nccl_cu12-2.20.5.dist-info/METADATA": (
                "Metadata-Version: 2.1\nName: nvidia-nccl-cu12\nVersion: 2.20.5\n"
            ),
            "pip-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: pip\nVersion: 1\n",
        },
    )
    found = inventory.packages([str(tmp_path)])

    assert found == {"nvidia-nccl-cu12": "2.20.5", "pip": "1", "torch": "2.4.0"}
    assert inventory.libraries(found, [str(tmp_path)]) == {
        "cuda": "12.1",
        "nccl": "2.20.5",
        "nvidia-nccl-cu12": "2.20.5",
        "torch": "2.4.0",
    }


def test_a_container_shows_its_image_and_id(tmp_path: Path) -> None:
    container = "ab" * 32
    mounts = f"1 2 0:3 /var/lib/docker/containers/{container}/hostname /etc/hostname rw\n"
    write(tmp_path, {"proc/self/mountinfo": mounts})
    image = "repo/train@sha256:" + "0" * 64

    assert inventory.container({"RANKLOG_IMAGE": image}, tmp_path) == {
        "image": image,
        "digest": "sha256:" + "0" * 64,
        "id": container,
    }
    assert inventory.container({}, tmp_path / "none") == {}


def test_submitted_files_have_a_hash_and_configuration_its_text(tmp_path: Path) -> None:
    write(tmp_path, {"a.yaml": "lr: 0.1\ndb: pg://u:p@h\n", "train.py": "x"})
    names = [str(tmp_path / name) for name in ("a.yaml", "train.py", "missing.py")]
    config, script, missing = inventory.submitted([*names, names[0]])

    assert config["text"] == "lr: 0.1\ndb: pg://***@h\n"
    assert (script["bytes"], len(script["blake2b"]), "text" in script) == (1, 32, False)
    assert missing == {"path": names[2], "error": "No such file or directory"}


def test_configurations_of_several_files_are_merged_the_later_wins(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"base.json": '{"optimizer": {"lr": 0.1, "name": "adam"}}', "own.json": '{"optimizer": {"lr": 0.2}}'},
    )  # fmt: skip
    merged = read_configs([str(tmp_path / "base.json"), str(tmp_path / "own.json")])

    assert merged == {"optimizer": {"lr": 0.2, "name": "adam"}}


def test_a_host_is_what_its_files_say(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "proc/cpuinfo": "processor : 0\nmodel name : EPYC 9654\n",
            "proc/meminfo": "MemTotal:       1024 kB\n",
            "etc/os-release": 'PRETTY_NAME="Ubuntu 24.04"\n',
            "sys/devices/system/node/node0/x": "",
            "sys/devices/system/node/node1/x": "",
            "sys/devices/system/node/possible": "0-1",
            "proc/driver/nvidia/gpus/0000:18:00.0/information": (
                "Model: \t\t NVIDIA H100 80GB HBM3\nGPU UUID: \t GPU-1234\n"
            ),
            "sys/bus/pci/devices/0000:18:00.0/numa_node": "1\n",
            "proc/driver/nvidia/version": (
                "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue\nGCC version: 12\n"
            ),
            "sys/module/mlx5_core/version": "24.01\n",
            "sys/class/infiniband/mlx5_0/ports/1/state": "4: ACTIVE\n",
            "sys/class/infiniband/mlx5_0/ports/1/rate": "400 Gb/sec (4X NDR)\n",
            "sys/class/net/eth0/operstate": "up\n",
            "sys/class/net/eth0/speed": "100000\n",
            "sys/class/net/eth1/operstate": "down\n",
            "sys/class/net/lo/operstate": "unknown\n",
        },
    )
    facts = devices.host_facts(tmp_path)

    assert (facts["cpu"], facts["memory_bytes"], facts["numa_nodes"], facts["system"]) == (
        "EPYC 9654",
        1024 * 1024,
        2,
        "Ubuntu 24.04",
    )
    assert devices.accelerators(tmp_path) == [
        {
            "name": "NVIDIA H100 80GB HBM3",
            "uuid": "GPU-1234",
            "bus": "0000:18:00.0",
            "numa_node": 1,
        }
    ]
    assert devices.drivers(tmp_path) == {"nvidia": "550.54.15", "mlx5_core": "24.01"}
    assert devices.networks(tmp_path) == [
        {"name": "mlx5_0:1", "state": "ACTIVE", "rate": "400 Gb/sec (4X NDR)"},
        {"name": "eth0", "state": "up", "rate": "100000 Mb/s"},
    ]


def test_a_host_that_says_nothing_is_no_error(tmp_path: Path) -> None:
    assert devices.drivers(tmp_path) == {}
    assert devices.networks(tmp_path) == []
    assert devices.host_facts(tmp_path)["kernel"] == os.uname().release
