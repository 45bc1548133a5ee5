"""The helper: finds out what takes time, appends it to the defs file, and ends.

`python -m ranklog.produce.describe DEFS ORDER DONE_FD`; ORDER is JSON. Who started it sees the end of
DONE_FD's pipe when it has ended.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ranklog.produce import devices, inventory
from ranklog.produce.manifest import VERSION, append_piece
from ranklog.produce.plain import plain

# Suffixes of what PyYAML reads.
YAML = (".yaml", ".yml")


def second_piece(order: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, Any]:
    """All that can be found out; a part that fails is left out, and its error said."""
    paths = order.get("paths") or None
    cwd = Path(order.get("cwd") or ".")
    found: dict[str, Any] = {"version": VERSION}
    errors: dict[str, str] = {}

    def find(name: str, look: Callable[[], Any]) -> None:
        try:
            value = look()
        except Exception as error:
            errors[name] = f"{error!r:.200}"
        else:
            if value:
                found[name] = value

    config_files = [str(name) for name in order.get("config_files", ())]
    files = [*order.get("files", ()), *config_files]
    find("git", lambda: inventory.git_state(_code_folder(order, cwd)))
    find("packages", lambda: inventory.packages(paths))
    find("libraries", lambda: inventory.libraries(found.get("packages", {}), paths))
    find("container", lambda: inventory.container(environ))
    find("files", lambda: inventory.submitted(files))
    find("machine", devices.host_facts)
    find("accelerators", devices.accelerators)
    find("drivers", devices.drivers)
    find("networks", devices.networks)
    if order.get("config") and config_files:
        find("config", lambda: read_configs(config_files))
    if errors:
        found["errors"] = errors
    return found


def _code_folder(order: Mapping[str, Any], cwd: Path) -> Path:
    """Where the code is: the script's folder, else where the job was started."""
    scripts = [Path(name) for name in order.get("files", ()) if str(name).endswith(".py")]
    return (cwd / scripts[0]).parent if scripts else cwd


def read_configs(names: Sequence[str]) -> dict[str, Any]:
    """The configuration in these files; a later file's keys win. Raises ValueError, OSError."""
    merged: dict[str, Any] = {}
    for name in names:
        content = read_config(Path(name))
        if isinstance(content, Mapping):
            _merge(merged, content)
    return merged


def read_config(path: Path) -> Any:
    """A file of JSON, TOML or YAML (where PyYAML is installed) as plain values.

    None for a kind that can't be read here. Raises ValueError, OSError.
    """
    text = path.read_text()
    if path.suffix == ".json":
        return plain(json.loads(text))
    if path.suffix == ".toml":
        with contextlib.suppress(ImportError):  # Python 3.10 has none
            return plain(importlib.import_module("tomllib").loads(text))
    if path.suffix in YAML:
        with contextlib.suppress(ImportError):
            return plain(importlib.import_module("yaml").safe_load(text))
    return None


def _merge(into: dict[str, Any], more: Mapping[str, Any]) -> None:
    for key, value in more.items():
        known = into.get(key)
        if isinstance(known, dict) and isinstance(value, Mapping):
            _merge(known, value)
        else:
            into[key] = value


def main(words: Sequence[str] | None = None) -> int:
    """Describe, append, end."""
    defs, order, done_fd = words if words is not None else sys.argv[1:4]
    os.nice(10)  # the job's cores are the job's
    piece = second_piece(json.loads(order), os.environ)
    if Path(defs).exists():  # else the process ended, and all it left is delivered
        append_piece(Path(defs), piece)
    with contextlib.suppress(OSError, ValueError):
        os.close(int(done_fd))
    return 0


if __name__ == "__main__":
    sys.exit(main())
