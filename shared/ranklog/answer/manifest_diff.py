"""What changed between two runs, by what their manifests and streams say of them. Pure.

Facts are those that runs can be asked for (answer/facts), flat, and files by their hash. What every
launch says anew (job ids, ports, when it began) is no change.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ranklog.answer.facts import run_facts
from ranklog.answer.manifests import Scalar
from ranklog.answer.render import json_number

Value = Scalar | tuple[Scalar, ...] | None

# Section -> heads of keys, in the order of the answer.
_SECTIONS = {
    "config": ("config",),
    "code": ("git", "files"),
    "data": ("datasets",),
    "command": ("command", "cwd"),
    "packages": ("packages", "python"),
    "libraries": ("libraries", "imported"),
    "topology": ("topology", "world_size"),
    "drivers": ("drivers", "accelerator"),
    "container": ("container",),
    "machine": ("machine",),
    "environment": ("environment",),
    "tags": ("tags", "owner"),
}
_SECTION_OF = {head: name for name, heads in _SECTIONS.items() for head in heads}
_ORDER = {name: at for at, name in enumerate(_SECTIONS)}
# Variables and facts that name one launch, process or moment.
_OF_A_LAUNCH = re.compile(
    r"""environment\.(?:.*(?:JOB_?ID|JOB_?NAME|JOBID|STEP_?ID|TASK_?PID|RUN_ID|RDZV_ID|_UID|UUID
        |HOSTNAME|NODELIST|NODE_?NAME|_ADDR|_PORT|_PORTS|RANK|LAUNCH|PROCID|LOCALID|NODEID|GTIDS
        |TMPDIR|JOB_START_TIME|JOB_END_TIME|RESTART_COUNT|SUBMIT_DIR|_COOKIE|_FD)
        |RANKLOG_.*|PMIX?_.*|PRTE_.*|OMPI_(?:COMM|MCA_ess|MCA_orte).*)
      | container\.id | machine\.(?:boot|uptime|started).*
    """,
    re.VERBOSE | re.IGNORECASE,
)
# What streams alone tell, of imported runs, too.
_OF_STREAMS = frozenset(["world_size", "topology.hosts", "topology.ranks_per_host"])


@dataclass(frozen=True, slots=True)
class ManifestChange:
    """One fact that two runs have otherwise. `values`: run_id -> value; a run without it has None.

    `distance` is between numbers, else None.
    """

    section: str
    key: str
    values: Mapping[str, Value]
    distance: float | None = None

    @property
    def change(self) -> str:
        """added | removed | changed, from the first run to the second."""
        first, second = self.values.values()
        if first is None:
            return "added"
        return "removed" if second is None else "changed"

    def to_json(self) -> dict[str, Any]:
        """The object of a comparison with `op` manifest."""
        return {
            "op": "manifest",
            "section": self.section,
            "key": self.key,
            "change": self.change,
            "values": {run: _shown(value) for run, value in self.values.items()},
            "distance": self.distance,
        }


def _shown(value: Value) -> Any:
    return list(value) if isinstance(value, tuple) else json_number(value)


@dataclass(frozen=True, slots=True)
class Told:
    """A run: its row (answer/runs) and its manifest, {} where nobody gave one."""

    row: Mapping[str, Any]
    manifest: Mapping[str, Any]

    @property
    def run_id(self) -> str:
        return str(self.row["run_id"])


def manifest_changes(first: Told, second: Told) -> list[ManifestChange]:
    """By section and key. Where a run has no manifest, only what both runs' streams tell."""
    whole = bool(first.manifest) and bool(second.manifest)
    a, b = _facts(first), _facts(second)
    found = []
    for key in sorted(a.keys() | b.keys(), key=_place):
        if key.partition(".")[0] not in _SECTION_OF or _OF_A_LAUNCH.fullmatch(key):
            continue
        if not whole and (key not in _OF_STREAMS or key not in a or key not in b):
            continue
        one, other = a.get(key), b.get(key)
        if not _equal(one, other):
            values = {first.run_id: one, second.run_id: other}
            section = _SECTION_OF[key.partition(".")[0]]
            found.append(ManifestChange(section, key, values, _distance(one, other)))
    return found


def missing_manifests(told: Iterable[Told]) -> list[str]:
    """Notes about runs that have none."""
    return [
        f"{one.run_id} has no manifest (imported logs have none): of configuration, code, packages "
        "and data nothing is known, only hosts and ranks are compared"
        for one in told
        if not one.manifest
    ]


def _facts(told: Told) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for key, values in run_facts(told.row, told.manifest).items():
        distinct = tuple(sorted(set(values), key=lambda value: (str(type(value)), value)))
        found[key] = distinct[0] if len(distinct) == 1 else distinct
    found.pop("file", None)
    for file in told.manifest.get("files", ()):
        path = str(file.get("path", ""))
        name = f"files.{path.rpartition('/')[2]}"
        found[name] = str(file.get("blake2b") or file.get("bytes") or file.get("error"))
    return found


def _place(key: str) -> tuple[int, str]:
    return _ORDER.get(_SECTION_OF.get(key.partition(".")[0], ""), len(_ORDER)), key


def _equal(one: Value, other: Value) -> bool:
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _distance(one: Value, other: Value) -> float | None:
    if isinstance(one, bool) or isinstance(other, bool):
        return None
    if not isinstance(one, int | float) or not isinstance(other, int | float):
        return None
    return abs(other - one) if math.isfinite(one) and math.isfinite(other) else None
