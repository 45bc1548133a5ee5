"""Each function works with what its layers carry, and with nothing else that happens to be here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ranklog.store import DiskStore

ROOT = Path(__file__).parents[2]
PROGRAM = """
import importlib.abc, importlib.util, json, os, sys

paths, absent, name, store = sys.argv[1].split(os.pathsep), sys.argv[2].split(), *sys.argv[3:]
sys.path[:0] = paths

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname, path=None, target=None):
        if fullname.partition(".")[0] in absent:
            raise ModuleNotFoundError(f"{fullname} is in no layer of {name}", name=fullname)

sys.meta_path.insert(0, Absent())
os.environ.update(
    RANKLOG_STORE=store,
    RANKLOG_SCAN_FUNCTION="scan",
    RANKLOG_STREAM="frames",
    RANKLOG_API_KEYS='{"acme": ["' + "a" * 64 + '"]}',
    AWS_DEFAULT_REGION="eu-central-1",
)

def load(name):
    spec = importlib.util.spec_from_file_location(f"function_{name}", f"functions/{name}/app.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return lambda event: module.handler(event, context)

from tests.aws.conftest import Context
from tests.aws.lambda_client import LambdaClient

context = Context(name)
function = load(name)
if name in ("query", "api"):
    import ranklog.scan.lambda_invoke
    lambdas = LambdaClient(scan=load("scan"))
    ranklog.scan.lambda_invoke.aws_client = lambda *_, **__: lambdas
event = json.load(open("events/" + {"api": "api-search"}.get(name, name) + ".json"))
if name == "api":
    event["requestContext"]["authorizer"] = {"lambda": {"tenant": "acme"}}
print(json.dumps(function(event)))
"""
# What a layer lacks though it is installed here. tests.aws.conftest needs pytest.
SCAN_LACKS = "numpy pyarrow s3fs aiobotocore pandas polars matplotlib moto"
INGEST_LACKS = "duckdb pydantic fsspec s3fs aiobotocore pandas polars moto"


def run(name: str, lacks: str, store: DiskStore) -> str:
    """The function's answer to its event, without the modules that its layers lack."""
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, f"{ROOT / 'shared'}:{ROOT}", lacks, name, store.url],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> DiskStore:
    """A store that the ingest function has filled."""
    made = DiskStore(tmp_path_factory.mktemp("layers") / "store")
    assert run("ingest", INGEST_LACKS, made) == '{"batchItemFailures": []}'
    return made


@pytest.mark.parametrize("name", ["query", "api"])
def test_a_root_answers_with_its_layers_alone(name: str, store: DiskStore) -> None:
    assert "illegal memory access" in run(name, SCAN_LACKS, store)


def test_a_scan_of_what_is_not_there_names_it(store: DiskStore) -> None:
    from ranklog.plan.tasks import decode_outcome
    from ranklog.scan.lambda_invoke import unpack_outcome

    answer = run("scan", SCAN_LACKS, store)
    outcome = decode_outcome(unpack_outcome(answer.encode()))
    [failed] = outcome.failed
    assert (outcome.tag, failed.number, failed.key.startswith("acme/data/")) == ("failed", 0, True)
