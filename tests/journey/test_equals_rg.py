"""Every real log, imported as one run: what a regular expression finds is what `rg -a` finds.

The expressions are ones on which RE2 and Rust's engine agree once `\\d`, `\\w`, `\\s` and `\\b` are spelled out as
ASCII for rg; docs/query-language.md lists where they differ. Lines are compared by file and line number, with the
index and without it.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ranklog.client import Client
from ranklog.importer.importing import import_paths
from ranklog.store.open import open_store

pytestmark = pytest.mark.data

RG = Path(sys.executable).with_name("rg")
NOW_NS = 1_790_000_000_000_000_000

PATTERNS = [
    r"NCCL WARN",
    r"Traceback",
    r"Error",
    r"error",
    r"(?i)cuda out of memory",
    r"(?i)warn",
    r"rank ?7",
    r"^ *\d+: ",
    r"\d+$",
    r"^$",
    r"^[^:]*$",
    r"loss[:=] *\d+\.\d+",
    r"iteration +\d+/",
    r"NCCL (INFO|WARN)",
    r"(Signal|signal) 1[15]",
    r"lr:\d\.\d+(e-\d+)?",
    r"\bstep\b",
    r"\bKeyError\b",
    r"[A-Z]\w+Error: ",
    r"File \".*\.py\", line \d+",
    r"via (P2P|SHM|NET|direct)",
    r"nan",
    r"0x[0-9a-f]{8,}",
    r"socket.*timed? ?out|Connection (refused|reset)",
    r"\[\d+\] NCCL",
    r"train_loss:\d\.\d{4}",
    r"\t",
    r"\r$",
    r"a.*b.*c.*d",
    r"[^\x00-\x7f]",
    r"torch/distributed/\S+:\d+",
    r"(foo|Init COMPLETE|bar)",
    r"\x1b\[[0-9;]*m",
]


@pytest.fixture(scope="module")
def logs(data_dir: Path) -> Path:
    """The folder that is searched."""
    return data_dir / "logs"


@pytest.fixture(scope="module")
def client(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A store that holds all files."""
    store = open_store(str(tmp_path_factory.mktemp("store") / "s"), create=True)
    report = import_paths([str(logs)], store=store, tenant="default", run="logs", now_ns=NOW_NS)
    assert [file.path for file in report.files if file.error] == []
    yield Client(store=store)


def rg_lines(pattern: str, logs: Path) -> set[tuple[str, int]]:
    """(path, 0-based line number) of every match."""
    ascii_only = (
        pattern.replace(r"\d", "[0-9]").replace(r"\w", "[0-9A-Za-z_]").replace(r"\b", r"(?-u:\b)")
    )
    ascii_only = ascii_only.replace(r"\S", r"[^ \t\n\v\f\r]")
    command = [
        str(RG),
        "-a",
        "-n",
        "--no-config",
        "--no-ignore",
        "--no-heading",
        "--null",
        "-e",
        ascii_only,
        str(logs),
    ]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    found = set()
    for line in done.stdout.split(b"\n")[:-1]:
        path, _, rest = line.partition(b"\0")
        found.add((path.decode(), int(rest.partition(b":")[0]) - 1))
    return found


def our_lines(client: Client, pattern: str, full_scan: bool) -> set[tuple[str, int]]:
    """The same from the store."""
    quoted = pattern.replace("/", r"\/")
    answer = client.search(f"/{quoted}/", run="logs", limit=0, full_scan=full_scan)
    return {(line.source or "", line.seq) for line in answer.lines if line.match}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_search_finds_the_lines_that_rg_finds(pattern: str, client: Client, logs: Path) -> None:
    expected = rg_lines(pattern, logs)
    assert our_lines(client, pattern, full_scan=False) == expected
    assert our_lines(client, pattern, full_scan=True) == expected


def test_the_expressions_find_something(logs: Path) -> None:
    assert sum(bool(rg_lines(pattern, logs)) for pattern in PATTERNS) >= 28
