"""The arrows of docs/architecture.md, held by reading every import statement of the package."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "shared" / "ranklog"

# package -> packages of ranklog it may import, beside itself and the leaf modules
LEAVES = {"errors", "limits", "_version"}
ARROWS = {
    "model": set(),
    # the text of keys, lazily: who sends to an API is who its key is of
    "produce": {"model", "access"},
    # ingest and what it needs only where the destination is a store, lazily
    "agent": {"model", "produce", "stream", "store", "rules", "ingest", "importer", "access"},
    "launch": {"model", "produce", "agent", "stream"},
    "frameworks": {"produce"},
    "hardware": {"model", "produce"},
    "mirrors": {"model", "produce"},
    "doctor": {"model", "produce", "agent", "launch", "store"},
    "stream": {"model", "store"},
    "store": set(),
    "objectives": {"layout", "store"},
    # writes as a job and its agent do, reads as a user does
    "canary": {"model", "objectives", "client", "agent", "stream", "layout"},
    "access": {"model", "layout", "store", "stream", "objectives"},
    "layout": {"model"},
    "rules": {"model", "layout", "store"},
    "ingest": {"delete", "model", "layout", "rules", "store", "stream", "access", "objectives"},
    "importer": {"model", "layout", "rules", "store", "stream", "ingest"},
    "plan": {"model", "layout"},
    "merge": {"model", "layout", "plan"},
    "scan": {"model", "layout", "plan", "store", "merge"},
    "spmd": {"model", "layout"},
    "telemetry": {"model", "layout"},
    "answer": {"model", "layout", "plan", "merge"},
    "compact": {"model", "layout", "plan", "store", "ingest", "delete"},
    "delete": {"model", "layout", "store", "plan", "answer"},
    "server": {"client", "ingest", "objectives", "store", "stream", "upkeep"},
    "upkeep": {"access", "client", "compact", "delete", "ingest", "layout", "store"},
    "client": {
        # an audit reads segments as a merge does
        "compact",
        "model",
        "objectives",
        "layout",
        "plan",
        "scan",
        "merge",
        "answer",
        "delete",
        "spmd",
        "telemetry",
        "store",
    },
    "admin": {"access", "answer", "client", "delete", "ingest", "model", "store", "stream"},
    "tensorboard": {"model", "plan", "telemetry", "client"},
    "demo": {"model", "produce", "launch", "stream", "ingest", "rules", "store"},
    "serverless": {
        "admin",
        "api",
        "client",
        "scan",
        "store",
        "access",
        "ingest",
        "objectives",
        "layout",
    },
    "api": {
        "access",
        "admin",
        "objectives",
        "model",
        "client",
        "answer",
        "ingest",
        "rules",
        "store",
        "stream",
        "plan",
        "spmd",
        "layout",
    },
    "cli": {
        "access",
        "canary",
        "admin",
        "objectives",
        "model",
        "delete",
        "client",
        "tensorboard",
        "answer",
        "api",
        "server",
        "upkeep",
        "demo",
        "importer",
        "ingest",
        "compact",
        "rules",
        "store",
        "stream",
        "plan",
        "spmd",
        "produce",
        "agent",
        "launch",
        "doctor",
        "layout",
    },
}
# heavy dependency -> packages that may import it anywhere in their code
OWNERS = {
    "duckdb": {"scan", "client"},
    "pyarrow": {"layout", "ingest", "compact", "importer", "rules", "scan", "client"},
    "numpy": {
        "layout",
        "ingest",
        "compact",
        "importer",
        "rules",
        "scan",
        "spmd",
        "telemetry",
        "client",
        "mirrors",
        "tensorboard",
    },
    "boto3": {"store", "stream", "scan", "agent"},
    "botocore": {"store", "stream", "scan"},
    "pydantic": {"api"},
    "aws_lambda_powertools": {"api", "serverless"},
    "tensorboard": {"tensorboard", "importer"},
    "grpc": {"tensorboard"},
    "fsspec": {"scan"},
    "s3fs": {"client"},
    "matplotlib": {"client"},
}


def _imports(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            yield node.lineno, node.module or ""
            if node.module == "ranklog":
                yield from ((node.lineno, f"ranklog.{alias.name}") for alias in node.names)


@pytest.mark.parametrize(
    "package", sorted(p.name for p in PACKAGE.iterdir() if p.is_dir() and p.name != "__pycache__")
)
def test_a_package_imports_only_along_the_arrows(package: str) -> None:
    allowed = ARROWS[package] | LEAVES | {package}
    wrong = []
    for path in sorted((PACKAGE / package).rglob("*.py")):
        for line, name in _imports(path):
            parts = name.split(".")
            if parts[0] == "ranklog" and len(parts) > 1 and parts[1] not in allowed:
                wrong.append(f"{path.relative_to(PACKAGE)}:{line} imports {name}")
            if package not in OWNERS.get(parts[0], {package}):
                wrong.append(
                    f"{path.relative_to(PACKAGE)}:{line} imports {name}, owned by {sorted(OWNERS[parts[0]])}"
                )
    assert wrong == []


LIGHT = {
    "ranklog": {"boto3", "pyarrow", "duckdb", "pydantic", "numpy"},
    "ranklog.plan.parse": {"boto3", "pyarrow", "duckdb", "pydantic", "numpy"},
    "ranklog.plan.prune": {"boto3", "pyarrow", "duckdb", "pydantic", "numpy"},
    "ranklog.layout.index": {"boto3", "pyarrow", "duckdb", "pydantic", "numpy"},
    "ranklog.stream.frames": {"boto3", "pyarrow", "duckdb", "pydantic", "numpy"},
    "ranklog.ingest.batch": {"duckdb", "pydantic"},
}


@pytest.mark.parametrize("module", sorted(LIGHT))
def test_importing_a_module_pulls_in_no_heavy_dependency(module: str) -> None:
    code = f"import sys, {module}; print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert LIGHT[module] & set(out.stdout.split()) == set()
