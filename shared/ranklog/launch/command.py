"""What a command line starts: torchrun, whose workers are the ranks, or a program of its own. Pure.

torchrun takes a plugin that tells its ranks apart, but only by an option: no variable selects it. So
`ranklog run` writes the option into a command that starts with torchrun, and changes no other word.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

PLUGIN = "ranklog"
_MODULES = ("torch.distributed.run", "torch.distributed.launch")
_OPTION = "--logs-specs"


@dataclass(frozen=True, slots=True)
class Torchrun:
    """A command that is torchrun's. `options_at` is where its own words begin."""

    words: tuple[str, ...]
    options_at: int

    @property
    def interpreter(self) -> str | None:
        """The Python that is named, for `python -m torch.distributed.run`."""
        return self.words[0] if self.options_at > 1 else None

    def option(self, *names: str) -> str | None:
        """The value of an option before the script, dashes and underscores alike."""
        wanted = {name.replace("_", "-") for name in names}
        words = self.words[self.options_at :]
        for at, word in enumerate(words):
            name, equals, value = word.partition("=")
            if name.endswith(".py") and not name.startswith("-"):
                return None  # what follows is the script's
            if name.replace("_", "-") in wanted:
                return value if equals else next(iter(words[at + 1 : at + 2]), None)
        return None

    def with_plugin(self) -> list[str]:
        """The command with our plugin, unless it names one."""
        if self.option(_OPTION) is not None:
            return list(self.words)
        at = self.options_at
        return [*self.words[:at], f"{_OPTION}={PLUGIN}", *self.words[at:]]


def torchrun_of(words: Sequence[str]) -> Torchrun | None:
    """`torchrun …`, `python [-options] -m torch.distributed.run …`; None for anything else."""
    if not words:
        return None
    name = PurePath(words[0]).name
    if name == "torchrun":
        return Torchrun(tuple(words), 1)
    if not name.startswith("python"):
        return None
    for at, word in enumerate(words[1:], 1):
        if word == "-m":
            module = words[at + 1] if at + 1 < len(words) else ""
            return Torchrun(tuple(words), at + 2) if module in _MODULES else None
        if not word.startswith("-"):
            return None
    return None


def launch_id(words: Sequence[str], environ: Mapping[str, str]) -> str | None:
    """What all nodes of a torchrun launch were given alike; None where nothing tells launches apart.

    The id, else, of several nodes, a hash of where they meet: a later launch that meets there too,
    without an id, is told apart only by the id that `--launch` gives.
    """
    torchrun = torchrun_of(words)
    if torchrun is None:
        return None
    given = torchrun.option("--rdzv-id") or environ.get("PET_RDZV_ID")
    if given and given != "none":
        return given
    nodes = torchrun.option("--nnodes") or environ.get("PET_NNODES") or "1"
    if nodes in ("1", "1:1"):
        return None
    names = ("--rdzv-endpoint", "--master-addr", "--master-port")
    meet = [torchrun.option(name) or environ.get(_variable(name), "") for name in names]
    return hashlib.blake2b("\n".join(meet).encode(), digest_size=6).hexdigest()


def _variable(option: str) -> str:
    return "PET_" + option[2:].replace("-", "_").upper()


def run_name(words: Sequence[str]) -> str:
    """What people call it: the script's name, else the module's, else the program's."""
    for at, word in enumerate(words):
        if word.endswith((".py", ".sh")) and not word.startswith("-"):
            return PurePath(word).stem or "run"
        if word == "-m" and at + 1 < len(words) and words[at + 1] not in _MODULES:
            return words[at + 1]
    return (PurePath(words[0]).stem if words else "") or "run"
