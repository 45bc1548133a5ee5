"""Cold imports: a fresh process of Lambda's Python, the layers as /opt, `import app`, medians of several.

`import app` is what Lambda does before the first event. Beside it a bare `import boto3` from the same folder, so
that a busy machine shows: a ratio holds there, too. What the first event makes once beyond that (clients, routes,
what is imported when it is needed) `marks` tells, as CPU of a first event.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.artefacts.lambdas import lay_out
from tests.artefacts.template import Function, Template
from tests.bench.figures import Figure, show

MARKS_S = {"IngestFunction": 0.8, "QueryFunction": 0.6, "ScanFunction": 0.6}
REPEAT = 5
_PROGRAM = """
import json, sys, time
wall, cpu = time.perf_counter(), time.process_time()
import {module}
print(json.dumps([time.perf_counter() - wall, time.process_time() - cpu, len(sys.modules)]))
"""


@dataclass(frozen=True, slots=True)
class Import:
    """Medians of one import, in seconds of wall and CPU time; modules it left in memory."""

    wall_s: float
    cpu_s: float
    modules: int


def import_of(function: Function, opt: Path, python: Path, module: str) -> Import:
    """Import a module as the function would, `REPEAT` times, each in a process of its own. Raises
    RuntimeError where it can't be imported."""
    runs = []
    for _ in range(REPEAT):
        done = subprocess.run(
            [python, "-s", "-c", _PROGRAM.format(module=module)],
            cwd=function.folder,
            env=environment_of(function, opt),
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise RuntimeError(f"{function.name}: import {module}: {done.stderr}")
        runs.append(json.loads(done.stdout.splitlines()[-1]))
    wall, cpu, modules = (statistics.median(column) for column in zip(*runs, strict=True))
    return Import(wall, cpu, int(modules))


def environment_of(function: Function, opt: Path) -> dict[str, str]:
    """The variables of a cold start; nothing of ours leaks into it."""
    return {
        **function.environment,
        "PYTHONPATH": f"{function.folder}:{opt / 'python'}",
        "PATH": os.defpath,
        "AWS_REGION": "eu-central-1",
        "AWS_DEFAULT_REGION": "eu-central-1",
        "AWS_LAMBDA_FUNCTION_NAME": function.name,
        "LANG": "C.UTF-8",
    }


def importtime(
    function: Function, opt: Path, python: Path, most: int = 15
) -> list[tuple[str, int]]:
    """Modules that cost most by themselves, with microseconds: where to look."""
    done = subprocess.run(
        [python, "-s", "-X", "importtime", "-c", "import app"],
        cwd=function.folder,
        env=environment_of(function, opt),
        capture_output=True,
        text=True,
    )
    found = []
    for line in done.stderr.splitlines():
        parts = line.removeprefix("import time:").split("|")
        if line.startswith("import time:") and parts[0].strip().isdecimal():
            found.append((parts[2].strip(), int(parts[0])))
    return sorted(found, key=lambda item: -item[1])[:most]


def figures(built: Path, python: Path, *, verbose: bool = False) -> list[Figure]:
    """Of every function, beside a bare boto3."""
    found = []
    with tempfile.TemporaryDirectory(dir=built.parent) as work:
        for name, function in Template(built / "template.yaml").functions().items():
            opt = lay_out(function, Path(work) / name)
            bare = import_of(function, opt, python, "boto3")
            own = import_of(function, opt, python, "app")
            found += [
                Figure(f"{name}, import app, wall", own.wall_s, "s", MARKS_S.get(name)),
                Figure(f"{name}, import app, CPU", own.cpu_s, "s"),
                Figure(f"{name}, CPU by that of import boto3", own.cpu_s / bare.cpu_s, "x"),
                Figure(f"{name}, modules", own.modules),
            ]
            if verbose:
                for module, us in importtime(function, opt, python):
                    print(f"    {name:20} {module:50} {us / 1000:8.1f} ms")
    return found


def main(built: Path, python: Path, *, verbose: bool = False) -> int:
    """Print them; 1 where a mark is missed."""
    found = figures(built, python, verbose=verbose)
    show(found)
    return 0 if all(figure.ok for figure in found) else 1
