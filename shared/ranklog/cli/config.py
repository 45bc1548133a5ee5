"""What `ranklog configure` keeps: `$XDG_CONFIG_HOME/ranklog/config.json`, else `~/.config/ranklog/config.json`.

It may hold a key, so the file is its user's alone (0600, in a folder of 0700) and is replaced as a whole.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, MutableMapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from ranklog.errors import BadInput

VERSION = 1


@dataclass(frozen=True, slots=True)
class Config:
    """A deployed stack; "" where nothing is known. `key` is of its API, and is never printed."""

    api: str = ""
    store: str = ""
    stream: str = ""
    stack: str = ""
    region: str = ""
    profile: str = ""
    key: str = field(default="", repr=False)

    @property
    def destination(self) -> str:
        """Where a job's lines go: with a key to the API, else into the stream."""
        if self.api and self.key:
            return self.api
        return f"kinesis://{self.stream}" if self.stream else ""

    def use(self, environ: MutableMapping[str, str] = os.environ) -> None:
        """Let clients of this process, and its children, find the key, the account and the region, where
        nothing else is said."""
        if self.key and not environ.get("RANKLOG_API_KEY"):
            environ["RANKLOG_API_KEY"] = self.key
        if self.profile:
            environ.setdefault("AWS_PROFILE", self.profile)
        if self.region and not environ.get("AWS_DEFAULT_REGION"):
            environ.setdefault("AWS_REGION", self.region)
            environ.setdefault("AWS_DEFAULT_REGION", environ["AWS_REGION"])

    def to_json(self) -> dict[str, Any]:
        """What people may see: of the key that there is one, and its id."""
        said = {name: value or None for name, value in asdict(self).items()}
        parts = self.key.split(".")
        said["key"] = None if not self.key else parts[1] if len(parts) == 3 else "…"
        return said


def config_path(environ: Mapping[str, str] = os.environ) -> Path:
    """Where it is, or would be."""
    named = environ.get("XDG_CONFIG_HOME")
    base = Path(named) if named and Path(named).is_absolute() else Path.home() / ".config"
    return base / "ranklog" / "config.json"


def read_config(environ: Mapping[str, str] = os.environ) -> Config | None:
    """What is configured, None where nothing is. Raises BadInput for a file that is not ours."""
    path = config_path(environ)
    try:
        said = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise BadInput(f"can't read {path}: {error}", hint=_HINT) from error
    names = {item.name for item in fields(Config)}
    if not isinstance(said, dict) or said.get("version") != VERSION:
        raise BadInput(f"{path} is of another version of ranklog", hint=_HINT)
    found = {name: value for name, value in said.items() if name in names}
    if not all(isinstance(value, str) for value in found.values()):
        raise BadInput(f"{path} holds something else than text", hint=_HINT)
    config = Config(**found)
    if not config.api and not config.store:
        raise BadInput(f"{path} names neither an API nor a store", hint=_HINT)
    return config


_HINT = "ranklog configure writes it anew, ranklog configure --forget removes it"


def write_config(config: Config, environ: Mapping[str, str] = os.environ) -> Path:
    """In place of what was configured before; where it is."""
    path = config_path(environ)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    text = json.dumps({"version": VERSION, **asdict(config)}, indent=1) + "\n"
    handle, name = tempfile.mkstemp(dir=path.parent)  # of mode 0600
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return path


def forget_config(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether there was one; there is none now."""
    path = config_path(environ)
    there = path.exists()
    path.unlink(missing_ok=True)
    return there
