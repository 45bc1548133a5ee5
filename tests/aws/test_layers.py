"""Each function works with what its layers carry, and with nothing else that happens to be here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ranklog.client import Client
from ranklog.scan import arrow_regex
from ranklog.scan.engine import shared_engine
from ranklog.store import DiskStore
from tests.aws.events import put_key
from tests.aws.stack import functions, read_template

ROOT = Path(__file__).parents[2]
# Loads a function without the modules that its layers lack; a root's scans run in other processes.
PROGRAM = """
import importlib.abc, importlib.util, json, os, subprocess, sys

paths, name, absent, scan_absent, store = sys.argv[1:]
sys.path[:0] = paths.split(os.pathsep)

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname, path=None, target=None):
        if fullname.partition(".")[0] in absent.split():
            raise ModuleNotFoundError(f"{fullname} is in no layer of {name}", name=fullname)

sys.meta_path.insert(0, Absent())
os.environ.update(
    RANKLOG_STORE=store,
    RANKLOG_SCAN_FUNCTION="scan",
    RANKLOG_STREAM="frames",
    RANKLOG_TASKS="tasks",
    AWS_DEFAULT_REGION="eu-central-1",
)

def scan(task):
    words = [sys.executable, "-c", sys.orig_argv[2], paths, "scan", scan_absent, "", store]
    done = subprocess.run(words, input=json.dumps([task]), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])[0]

from tests.aws.conftest import Context
from tests.aws.lambda_client import LambdaClient

context = Context(name, 60_000)
spec = importlib.util.spec_from_file_location(f"function_{name}", f"functions/{name}/app.py")
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
if name in ("query", "api"):
    import ranklog.scan.lambda_invoke
    lambdas = LambdaClient(scan=scan)
    ranklog.scan.lambda_invoke.aws_client = lambda *_, **__: lambdas
print(json.dumps([module.handler(event, context) for event in json.load(sys.stdin)]))
"""
# What a layer lacks though it is installed here. tests.aws.conftest needs pytest.
SCAN_LACKS = "numpy pyarrow pydantic s3fs aiobotocore pandas polars matplotlib moto"
ARROW_LACKS = "duckdb fsspec s3fs aiobotocore pandas polars matplotlib moto"


def run(name: str, store: DiskStore, *events: dict[str, Any]) -> list[Any]:
    """The function's answers to events, without the modules that its layers lack."""
    layer = functions(read_template())[name.capitalize()]["Layers"][1]["Ref"]
    lacks = SCAN_LACKS if layer == "ScanLayer" else ARROW_LACKS
    paths = f"{ROOT / 'shared'}:{ROOT}"
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, paths, name, lacks, SCAN_LACKS, store.url],
        input=json.dumps(events),
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    answers: list[Any] = json.loads(result.stdout.splitlines()[-1])
    return answers


def event(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "events" / f"{name}.json").read_text())
    return found


def asked(path: str, query: str, **body: Any) -> dict[str, Any]:
    return {"tenant": "acme", "path": path, "body": {"query": query, "run": "llama", **body}}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> DiskStore:
    """A store that the ingest function has filled with lines; and points, and lines about them."""
    from tests.client.test_search import put
    from tests.client.test_series import metric, put_points, record

    made = DiskStore(tmp_path_factory.mktemp("layers") / "store")
    assert run("ingest", made, event("ingest")) == [{"batchItemFailures": []}]
    put(made, "1", [metric(0, i, lm_loss=3 - i / 10) for i in range(20)])  # type: ignore[arg-type]
    norms = [9.0 if i == 15 else 1 + i % 3 / 100 for i in range(20)]
    records = [record(0, i, {"grad_norm": norm}, layer="h.7") for i, norm in enumerate(norms)]
    put_points(made, "2", records)  # type: ignore[arg-type]
    return made


@pytest.mark.parametrize(("name", "asks"), [("query", "query"), ("api", "api-search")])
def test_a_root_answers_with_its_layers_alone(name: str, asks: str, store: DiskStore) -> None:
    assert "illegal memory access" in json.dumps(run(name, store, event(asks)))


def test_a_root_answers_what_is_asked_of_points(store: DiskStore) -> None:
    answers = run(
        "query",
        store,
        asked("/v1/series", "loss OR grad_norm", columns=True),
        asked("/v1/series", "series:/grad.n/ layer:h.*", columns=True, detect=True),
        asked("/v1/search", "kind:point grad_norm>5"),
        asked("/v1/count", "kind:point", by=["series"]),
        asked("/v1/search", "near(spike(grad_norm layer:h.7, 8), iteration, before 1)"),
    )
    assert [answer["status"] for answer in answers] == [200] * 5, answers
    series, spikes, points, count, near = (answer["body"] for answer in answers)
    assert {one["series"]: len(one["values"]) for one in series["series"]} == {
        "grad_norm": 20,
        "loss": 20,
    }
    assert [(e["kind"], e["first_iteration"]) for e in spikes["events"]] == [("spike", 15)]
    assert [point["iteration"] for point in points["points"]] == [15]
    assert count["groups"] == [{"series": "grad_norm", "count": 20}]
    assert [line["text"] for line in near["lines"]] == ["it 14", "it 15"]
    for body in (series, spikes, points, count, near):
        assert body["completeness"]["skipped_tasks"] == []


def test_a_root_compares_ranks_with_what_scans_elsewhere_read(store: DiskStore) -> None:
    outliers, compared = run(
        "query",
        store,
        {"tenant": "acme", "path": "/v1/outliers", "body": {"run": "llama-8b"}},
        {"tenant": "acme", "path": "/v1/compare", "body": {"run": "llama-8b", "ranks": "0,3"}},
    )
    here = Client(store=store, tenant="acme")
    assert (outliers["status"], compared["status"]) == (200, 200), (outliers, compared)
    assert outliers["body"]["outliers"] == here.outliers(run="llama-8b").to_json()["outliers"]
    hunks = here.compare(run="llama-8b", ranks="0,3").to_json("hunks")["hunks"]
    assert compared["body"]["hunks"] == json.loads(json.dumps(hunks))


def test_every_question_has_an_answer_without_duckdb(store: DiskStore) -> None:
    of_run = {"run": "llama-8b"}
    bodies = {
        "triage": of_run,
        "stacks": of_run,
        "export": of_run | {"format": "jsonl"},
        "search": of_run | {"query": "/loss .*\\d/", "pin": True},
        "count": of_run | {"query": "loss", "by": ["rank"]},
    }
    paths = ["runs", "runs/llama-8b/streams", "callsites", "patterns", "tail"]
    events = [
        *({"tenant": "acme", "path": f"/v1/{name}", "body": body} for name, body in bodies.items()),
        *({"tenant": "acme", "path": f"/v1/{path}"} for path in paths),
    ]
    answers = run("query", store, *events)
    assert [answer["status"] for answer in answers] == [200] * len(events), answers


def test_the_authorizer_knows_a_key_with_its_layers_alone(tmp_path: Path) -> None:
    made = DiskStore(tmp_path / "store")
    put_key(made)
    (answer,) = run("authorizer", made, event("authorizer"))
    assert answer["context"]["tenant"] == "acme"


@pytest.mark.parametrize("name", ["compact", "retention"])
def test_upkeep_does_a_task_with_its_layers_alone(name: str, store: DiskStore) -> None:
    assert run(name, store, event(f"{name}-task")) == [{"done": 1}]


def test_gauges_are_told_with_layers_alone(store: DiskStore) -> None:
    (told,) = run("metrics", store, event("metrics"))
    assert told["looked"] == told["tenants"] > told["failed"] == 0


def test_a_scan_of_what_is_not_there_names_it(store: DiskStore) -> None:
    from ranklog.plan.tasks import decode_outcome
    from ranklog.scan.lambda_invoke import unpack_outcome

    (answer,) = run("scan", store, event("scan"))
    outcome = decode_outcome(unpack_outcome(json.dumps(answer).encode()))
    [failed] = outcome.failed
    assert (outcome.tag, failed.number, failed.key.startswith("acme/data/")) == ("failed", 0, True)


TEXTS = [
    "",
    "a",
    "A\n",
    "a\nb",
    "straße",
    "٣ 3",
    "\u212aelvin",
    "end\r",
    "a.b",
    "a\u00a0b",
    "x\x00y",
]


@pytest.mark.parametrize("flags", ["", "i", "s", "is"])
@pytest.mark.parametrize(
    "pattern",
    [r"a", r"^a$", r"a.b", r"\d", r"\w+$", r"kelvin", r"\bb", r"\pL", r"[[:alpha:]]{2}", r"\x00", r"\Qa.b\E", ""],
)  # fmt: skip
def test_a_root_without_duckdb_has_the_same_regexes(pattern: str, flags: str) -> None:
    assert arrow_regex.matches(pattern, flags, TEXTS) == shared_engine().matches(
        pattern, flags, TEXTS
    )
