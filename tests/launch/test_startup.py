"""What Pythons inside `ranklog run` do first: only a torchrun is another one after it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ranklog.launch import plugin
from ranklog.launch.job import STARTUP

FAKE = {
    "torch/__init__.py": "",
    "torch/distributed/__init__.py": "",
    "torch/distributed/run.py": (
        "import sys\n"
        "def _get_logs_specs_class(name): return name\n"
        "def main(): print(sys.argv[1:], _get_logs_specs_class(None))\n"
        "if __name__ == '__main__': main()\n"
    ),
    "bin/torchrun": "from torch.distributed.run import main\nmain()\n",
    "accelerate.py": (
        "import torch.distributed.run as run\n"
        "print(run._get_logs_specs_class(None), run._get_logs_specs_class('mine'))\n"
    ),
}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    for name, text in FAKE.items():
        path = tmp_path / "site" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "site"


def said(site: Path, *words: str, **environ: str) -> str:
    """What a Python prints that begins as in a job."""
    given = {"PYTHONPATH": str(site), "RANKLOG_LAUNCHED": "1", **environ}
    plugin._announce_entry_point(site, given)
    given["PYTHONPATH"] = f"{STARTUP}{os.pathsep}{given['PYTHONPATH']}"
    done = subprocess.run(
        [sys.executable, *words],
        env=given,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.strip()


def test_torchrun_is_given_the_plugin_however_it_is_started(site: Path) -> None:
    script = str(site / "bin" / "torchrun")

    assert said(site, script, "a.py") == "['--logs-specs=ranklog', 'a.py'] None"
    by_module = said(site, "-u", "-m", "torch.distributed.run", "a.py")
    assert by_module == "['--logs-specs=ranklog', 'a.py'] None"


def test_a_plugin_that_is_named_stays(site: Path) -> None:
    script = str(site / "bin" / "torchrun")

    assert said(site, script, "--logs_specs=x", "a.py") == "['--logs_specs=x', 'a.py'] None"


def test_a_launcher_that_has_torchrun_inside_takes_it_by_default(site: Path) -> None:
    assert said(site, str(site / "accelerate.py")) == "ranklog mine"


def test_outside_a_job_and_when_told_so_nothing_changes(site: Path) -> None:
    script = str(site / "bin" / "torchrun")

    assert said(site, script, "a.py", RANKLOG_LAUNCHED="0") == "['a.py'] None"
    assert said(site, script, "a.py", RANKLOG_STARTUP="0") == "['a.py'] None"
