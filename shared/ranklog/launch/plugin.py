"""Whether a torchrun can use our plugin, and what it needs for that."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import MutableMapping
from importlib.metadata import entry_points
from pathlib import Path

from ranklog.launch.command import PLUGIN, Torchrun

GROUP = "torchrun.logs_specs"
ENTRY_POINT = "ranklog.launch.torchrun:RanklogLogsSpecs"
# Reading what is installed takes another interpreter a tenth of a second.
PROBE_S = 30.0
_PROBE = (
    "from importlib.metadata import entry_points as e;"
    f"print(len(e(group={GROUP!r}, name={PLUGIN!r})))"
)


def enabled(torchrun: Torchrun, environ: MutableMapping[str, str], folder: Path) -> list[str]:
    """The command with the plugin, where its interpreter has it; else as it is, and a line says so.

    Our own interpreter has it even where ranklog is not installed but found by PYTHONPATH: then
    `folder` is where torchrun is shown it.
    """
    interpreter = interpreter_of(torchrun, environ)
    if interpreter is not None and _same_file(interpreter, sys.executable):
        if not entry_points(group=GROUP, name=PLUGIN):
            _announce_entry_point(folder, environ)
        return torchrun.with_plugin()
    if interpreter is not None and _has_entry_point(interpreter):
        return torchrun.with_plugin()
    print(
        "ranklog: ranks are not told apart: ranklog is not installed where torchrun is "
        f"({interpreter or torchrun.words[0]})",
        file=sys.stderr,
    )
    return list(torchrun.words)


def interpreter_of(torchrun: Torchrun, environ: MutableMapping[str, str]) -> str | None:
    """The Python that will run it: as named, or as the first line of the script says."""
    path = shutil.which(torchrun.interpreter or torchrun.words[0], path=environ.get("PATH"))
    if path is None or torchrun.interpreter is not None:
        return path
    try:
        with open(path, "rb") as script:
            head = script.readline(1024)
    except OSError:
        return None
    words = head[2:].split() if head.startswith(b"#!") else []
    if len(words) > 1 and words[0].endswith(b"/env"):
        return shutil.which(os.fsdecode(words[-1]), path=environ.get("PATH"))
    return os.fsdecode(words[0]) if words else None


def _same_file(one: str, other: str) -> bool:
    """The same program in the same environment: a venv's links lead to one and the same file."""
    return os.path.samefile(Path(one).parent, Path(other).parent) and os.path.samefile(one, other)


def _has_entry_point(interpreter: str) -> bool:
    try:
        found = subprocess.run(
            [interpreter, "-c", _PROBE], capture_output=True, text=True, timeout=PROBE_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return found.stdout.strip().isdigit() and int(found.stdout) > 0


def _announce_entry_point(folder: Path, environ: MutableMapping[str, str]) -> None:
    """A folder with the metadata that an installation has, and ranklog itself, for the job to find."""
    metadata = folder / "plugin" / "ranklog_plugin-0.dist-info"
    metadata.mkdir(parents=True, exist_ok=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: ranklog-plugin\nVersion: 0\n")
    (metadata / "entry_points.txt").write_text(f"[{GROUP}]\n{PLUGIN} = {ENTRY_POINT}\n")
    paths = [str(metadata.parent), str(Path(__file__).parents[2])]
    paths += filter(None, [environ.get("PYTHONPATH")])
    environ["PYTHONPATH"] = os.pathsep.join(paths)
