"""What surrounds a process, with real children and a real process group's store."""

from __future__ import annotations

import multiprocessing
import os
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import ranklog
from ranklog.produce import session, surroundings
from ranklog.produce.identity import identify
from ranklog.produce.surroundings import agreed_launch, here


class FakeStore:
    """As torch's: the first value of a key stays."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    def compare_set(self, key: str, expected: str, desired: str) -> bytes:
        if self.values.get(key, "") == expected:
            self.values[key] = desired
        return self.values[key].encode()


def group(store: Any, initialized: bool = True) -> Any:
    return SimpleNamespace(
        is_available=lambda: True,
        is_initialized=lambda: initialized,
        distributed_c10d=SimpleNamespace(_get_default_store=lambda: store),
    )


def test_ranks_of_a_group_agree_on_one_launch_whoever_comes_first() -> None:
    store = FakeStore()

    first, second = agreed_launch(group(store)), agreed_launch(group(store))
    assert first == second != agreed_launch(group(FakeStore()))
    assert len(first) == 12


@pytest.mark.parametrize("distributed", [None, group(FakeStore(), initialized=False), object()])
def test_without_a_group_nothing_is_agreed(distributed: Any) -> None:
    assert agreed_launch(distributed) == ""


def test_a_real_store_does_as_the_fake() -> None:
    distributed = pytest.importorskip("torch.distributed")
    store = distributed.HashStore()

    assert agreed_launch(group(store)) == agreed_launch(group(store)) != ""


def test_nothing_is_agreed_where_a_variable_names_the_launch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "torch.distributed", group(FakeStore()))

    assert here({"SLURM_JOB_ID": "8"}).agreed == ""
    assert here({"TORCHELASTIC_RUN_ID": "none"}).agreed != ""


def _role(queue: Any) -> None:
    queue.put(identify(os.environ, here()).role)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("rank", ["3", None])
def test_a_data_loaders_child_is_a_worker_of_its_rank(method: str, rank: str | None) -> None:
    program = f"""
import multiprocessing, os
from tests.produce.test_surroundings import _role
if __name__ == "__main__":
    context = multiprocessing.get_context({method!r})
    queue = context.SimpleQueue()
    child = context.Process(target=_role, args=(queue,))
    child.start()
    print(queue.get())
    child.join()
"""
    environ = {key: value for key, value in os.environ.items() if key != "RANK"}
    environ |= {"RANK": rank} if rank else {}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)

    assert done.stdout.strip() == ("worker" if rank else "None")


def _launch(queue: Any) -> None:
    ranklog.init()
    queue.put(session._session.producer.process.identity.launch)  # type: ignore[union-attr]
    ranklog.close(0)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_children_that_init_are_of_their_parents_launch(method: str, tmp_path: Path) -> None:
    program = f"""
import multiprocessing, ranklog
from ranklog.produce import session
from tests.produce.test_surroundings import _launch
if __name__ == "__main__":
    ranklog.init()
    context = multiprocessing.get_context({method!r})
    queue = context.SimpleQueue()
    child = context.Process(target=_launch, args=(queue,))
    child.start()
    print(queue.get() == session._session.producer.process.identity.launch)
    child.join()
"""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("RANK", "SLURM"))}
    environ = kept | {"RANKLOG_SPOOL": str(tmp_path), "RANKLOG_LAUNCHED": "1", "RANK": "0"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)

    assert done.stdout == "True\n"


@pytest.mark.parametrize(
    ("environ", "told"),
    [
        ({"RANK": "8", "LOCAL_RANK": "0", "WORLD_SIZE": "16", "LOCAL_WORLD_SIZE": "8"}, 1),
        ({"RANK": "9", "LOCAL_RANK": "1", "WORLD_SIZE": "16", "LOCAL_WORLD_SIZE": "8"}, 0),
        ({"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "8"}, 0),
        ({"RANK": "8", "LOCAL_RANK": "0", "WORLD_SIZE": "16", "RANKLOG_LAUNCH": "1"}, 0),
        ({"PMI_RANK": "8", "PMI_SIZE": "16", "MPI_LOCALNRANKS": "8"}, 1),
    ],
)
def test_a_host_that_is_a_launch_of_its_own_says_so_once(
    environ: dict[str, str], told: int, capfd: pytest.CaptureFixture[str]
) -> None:
    surroundings.trouble.counts.clear()
    for _ in range(2):
        surroundings.tell_if_alone(environ, here(environ))
    surroundings.trouble.counts.clear()

    assert capfd.readouterr().err.count("set RANKLOG_LAUNCH") == told


def test_the_first_process_is_nobodys_worker() -> None:
    assert multiprocessing.parent_process() is None
    assert surroundings.here({}).started_with is None


FORKING = """
import os, sys, ranklog
from ranklog.produce import session
def launch():
    ranklog.init()
    return session._session.producer.process.identity.launch
read, write = os.pipe()
os.environ["MASTER_ADDR"] = "127.0.0.1"
if os.fork() == 0:
    os.environ["MASTER_PORT"], os.environ["RANK"] = "29500", "1"  # as a rank that starts itself
    os.write(write, launch().encode())
    os._exit(0)
os.wait()
print(os.read(read, 100).decode() == launch())
"""
OWN_WORDS = """
import os, subprocess, sys, ranklog
from ranklog.produce import session
if "CHILD" not in os.environ:
    words = [sys.executable, *sys.argv]
    said = subprocess.run(words, env={**os.environ, "CHILD": "1"}, capture_output=True, text=True)
ranklog.init()
launch = session._session.producer.process.identity.launch
print(launch if "CHILD" in os.environ else said.stdout == launch + "\\n")
"""


def quiet_environment(tmp_path: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("RANK", "SLURM", "MASTER_"))}
    return kept | {"RANKLOG_SPOOL": str(tmp_path / "spool"), "RANKLOG_LAUNCHED": "1"}


@pytest.mark.parametrize("program", [FORKING, OWN_WORDS], ids=["fork", "own words"])
def test_a_child_that_inits_before_its_parent_is_of_the_same_launch(
    program: str, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(program)
    command = [sys.executable, str(tmp_path / "train.py")]
    environ = quiet_environment(tmp_path)
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)

    assert done.stdout == "True\n", done.stderr


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_children_of_multiprocessing_that_init_first_are_of_their_parent_s_launch(
    method: str, tmp_path: Path
) -> None:
    program = f"""
import multiprocessing, ranklog
from ranklog.produce import session
from tests.produce.test_surroundings import _launch
if __name__ == "__main__":
    context = multiprocessing.get_context({method!r})
    queue = context.SimpleQueue()
    children = [context.Process(target=_launch, args=(queue,)) for _ in range(2)]
    for child in children:
        child.start()
    seen = {{queue.get(), queue.get()}}
    ranklog.init()
    print(seen == {{session._session.producer.process.identity.launch}})
    for child in children:
        child.join()
"""
    command = [sys.executable, "-c", program]
    environ = quiet_environment(tmp_path)
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)

    assert done.stdout == "True\n", done.stderr


def test_two_jobs_of_one_shell_with_other_words_are_not_one_for_having_the_same_parent(
    tmp_path: Path,
) -> None:
    """A program that starts another is a launcher: what it starts is of it, not of its own job."""
    show = (
        "import ranklog; from ranklog.produce import session; ranklog.init(); "
        "print(session._session.producer.process.identity.launch)"
    )
    program = (
        "import os, subprocess, sys\n"
        f"one, two = (subprocess.run([sys.executable, '-c', {show!r}], capture_output=True,"
        " env={**os.environ, 'MASTER_PORT': port}).stdout for port in ('1', '2'))\n"
        "print(one == two, len(one) > 6)"
    )
    command = [sys.executable, "-c", program]
    environ = quiet_environment(tmp_path)
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)

    assert done.stdout == "False True\n", done.stderr


def test_what_a_launcher_said_of_another_host_is_forgotten() -> None:
    said = {
        "RANKLOG_LAUNCHED": "1",
        "RANKLOG_HOST": "login-node",
        "RANKLOG_CAPTURED": "/tmp/x",
        "RANKLOG_LAUNCH": "l",
        "RANKLOG_SPOOL": "/tmp/s",
    }
    here_too = {**said, "RANKLOG_LAUNCHED_ON": socket.gethostname()}
    elsewhere = {**said, "RANKLOG_LAUNCHED_ON": "login-node.cluster"}
    by_hand = dict(said)
    for environ in (here_too, elsewhere, by_hand):
        surroundings.forget_other_host(environ)

    assert here_too["RANKLOG_HOST"] == "login-node"
    assert elsewhere == {"RANKLOG_LAUNCH": "l", "RANKLOG_SPOOL": "/tmp/s"}
    assert by_hand == said
