"""Children of multiprocessing, however they are started: logged, told apart, and never in the way."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.produce.test_capture import Job

METHODS = ("spawn", "fork", "forkserver")
SCRIPT = """import logging, multiprocessing, os, sys, ranklog
ranklog.init(run='r', capture='fd')  # at module level: children of spawn run it too

def work(n):
    logging.getLogger('lib').info('worker %d', n)
    print('printed by', n)
    if n == 1:
        raise ValueError('a worker fails')

if __name__ == '__main__':
    logging.info('parent')
    context = multiprocessing.get_context({method!r})
    children = [context.Process(target=work, args=(n,)) for n in range(3)]
    [child.start() for child in children]
    [child.join() for child in children]
    print([child.exitcode for child in children])
"""


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def run_script(job: Job, tmp_path: Path, text: str, **environ: str) -> str:
    script = tmp_path / "script.py"
    script.write_text(text)
    done = subprocess.run(
        [sys.executable, str(script)],
        env=job.environ | environ,
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    job.wait_delivered()
    return done.stdout


@pytest.mark.parametrize("method", METHODS)
def test_children_are_logged_as_workers_of_their_rank(
    job: Job, tmp_path: Path, method: str
) -> None:
    shown = run_script(job, tmp_path, SCRIPT.format(method=method), RANK="2", WORLD_SIZE="4")

    assert "[0, 1, 0]" in shown
    logged = {line.text: line for line in job.lines("logging") if line.text.startswith("worker")}
    assert sorted(logged) == ["worker 0", "worker 1", "worker 2"]
    assert len({line.incarnation for line in logged.values()}) == 3
    assert {(line.rank, dict(line.metadata).get("role")) for line in logged.values()} == {
        (2, "worker")
    }
    parent = [line for line in job.lines("logging") if line.text == "parent"]
    assert [dict(line.metadata).get("role") for line in parent] == [None]
    printed = sorted(text for text in job.texts() if text.startswith("printed"))
    assert printed == ["printed by 0", "printed by 1", "printed by 2"]
    failed = job.texts("stderr") + job.texts("logging")
    assert any("ValueError: a worker fails" in text for text in failed)


@pytest.mark.parametrize("method", METHODS)
def test_a_pool_of_workers_that_is_ended_early_hangs_nothing(
    job: Job, tmp_path: Path, method: str
) -> None:
    text = (
        "import logging, multiprocessing, ranklog\n"
        "ranklog.init(run='r')\n"
        "def work(n):\n    logging.info('item %d', n); return n\n"
        "if __name__ == '__main__':\n"
        f"    with multiprocessing.get_context({method!r}).Pool(2) as pool:\n"
        "        assert sum(pool.imap_unordered(work, range(100))) == 4950\n"
        "    print('trained')\n"  # leaving the pool ends workers with SIGTERM
    )

    assert run_script(job, tmp_path, text) == "trained\n"
    assert sorted(job.texts("logging")) == sorted(f"item {n}" for n in range(100))


@pytest.mark.torch
@pytest.mark.parametrize("method", METHODS)
def test_workers_of_a_data_loader_are_workers(job: Job, tmp_path: Path, method: str) -> None:
    """As the guide has it: a function of the module as `worker_init_fn`, which a fork does not need."""
    pytest.importorskip("torch")
    text = (
        "import logging, ranklog, torch.utils.data\n"
        "def start(worker): ranklog.init(run='r')\n"
        "class Data(torch.utils.data.Dataset):\n"
        "    def __len__(self): return 8\n"
        "    def __getitem__(self, n):\n"
        "        logging.getLogger('data').info('item %d', n); return n\n"
        "if __name__ == '__main__':\n"
        "    ranklog.init(run='r')\n"
        "    loader = torch.utils.data.DataLoader(Data(), num_workers=2, worker_init_fn=start,\n"
        f"        multiprocessing_context={method!r})\n"
        "    print(sum(int(batch) for batch in loader))\n"
    )

    assert run_script(job, tmp_path, text, RANK="1") == "28\n"
    lines = job.lines("logging")
    assert sorted(line.text for line in lines) == [f"item {n}" for n in range(8)]
    assert {(line.rank, dict(line.metadata)["role"]) for line in lines} == {(1, "worker")}
    assert len({line.incarnation for line in lines}) == 2


def test_a_test_s_caplog_sees_what_it_saw(job: Job, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import logging, ranklog\n"
        "def test_logs(caplog, capfd):\n"
        "    ranklog.init(run='r')\n"
        "    with caplog.at_level(logging.INFO):\n"
        "        logging.getLogger('lib').info('seen %d', 1)\n"
        "        print('printed')\n"
        "    assert [r.getMessage() for r in caplog.records] == ['seen 1']\n"
        "    assert caplog.text.count('seen 1') == 1\n"
        "    assert capfd.readouterr().out == 'printed\\n'\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        env=job.environ,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    job.wait_delivered()

    assert done.returncode == 0, done.stdout
    assert "seen 1" in job.texts("logging")
