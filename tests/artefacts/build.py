"""`sam build` without a container: what it needs beside Python 3.13 and make is made below `build/`.

build/artefacts/sam        a virtual environment with SAM, where none is on the PATH
build/artefacts/runtime    one with Lambda's runtime client
build/artefacts/x86_64/    what was built: a folder for each function and layer, template.yaml
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path

from tests.artefacts.template import read_template
from tests.aws import tools

ROOT = Path(__file__).parents[2]
WORK = ROOT / "build" / "artefacts"
ARCHITECTURES = ("x86_64", "arm64")
# What they are tried with; pip takes minutes to choose among all there are of SAM.
SAM = "aws-sam-cli==1.170.*"
RUNTIME_CLIENT = "awslambdaric==4.2.*"


class NotHere(RuntimeError):
    """Something that can't be made here is missing; says what."""


def find_python() -> Path:
    """Python 3.13. Raises NotHere."""
    found = tools.runtime_python()
    if found is None:
        raise NotHere("no python3.13, the functions' runtime: install it, or put it on PATH")
    return Path(found)


def find_sam(python: Path) -> Path:
    """SAM of tests.aws.tools or the PATH, else of an environment of its own, which is made once."""
    installed, on_path = tools.program("sam"), shutil.which("sam")
    if installed is not None:
        return installed
    return Path(on_path) if on_path else _environment(WORK / "sam", python, SAM) / "sam"


def runtime_python(python: Path) -> Path:
    """Python 3.13 that has Lambda's runtime client and nothing else."""
    return _environment(WORK / "runtime", python, RUNTIME_CLIENT) / "python"


def _environment(folder: Path, python: Path, requirement: str) -> Path:
    """The `bin` of a virtual environment; one that was left half made is made again."""
    done = folder / "installed.txt"
    if not done.is_file() or done.read_text() != requirement:
        shutil.rmtree(folder, ignore_errors=True)
        _run([python, "-m", "venv", folder])
        _run(
            [
                folder / "bin" / "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                requirement,
            ]
        )
        done.write_text(requirement)
    return folder / "bin"


def build(architecture: str = "") -> Path:
    """Build for an architecture (this machine's by default); returns the folder.

    Raises NotHere, CalledProcessError. What did not change since the last build is taken from its cache.
    """
    architecture = architecture or native()
    if architecture not in ARCHITECTURES:
        raise ValueError(f"{architecture}: {' or '.join(ARCHITECTURES)}")
    if shutil.which("make") is None:
        raise NotHere("no make, which SAM builds the layers with")
    python = find_python()
    folder = WORK / architecture
    command: list[str | Path] = [
        *(find_sam(python), "build", "--template", ROOT / "template.yaml"),
        *("--build-dir", folder, "--cached", "--cache-dir", WORK / f"cache-{architecture}"),
    ]
    if "Architecture" in read_template(ROOT / "template.yaml").get("Parameters", {}):
        command += ["--parameter-overrides", f"Architecture={architecture}"]
    environment = os.environ | {
        "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHON": str(python),
        "RANKLOG_ARCHITECTURE": architecture,
        "SAM_CLI_TELEMETRY": "0",
        "PIP_ROOT_USER_ACTION": "ignore",
    }
    environment.pop("PYTHONPATH", None)
    _run(command, environment)
    return folder


def native() -> str:
    """This machine's architecture in Lambda's words."""
    return "arm64" if platform.machine() in ("aarch64", "arm64") else "x86_64"


def _run(command: list[str | Path], environment: dict[str, str] | None = None) -> None:
    """Quietly; raises CalledProcessError with what it said."""
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        print(done.stdout)
        done.check_returncode()
