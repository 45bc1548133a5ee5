"""template.yaml: valid, closed by default, each role as small as its function's docstring says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tomllib
import yaml

from ranklog import limits

ROOT = Path(__file__).parents[2]
TEMPLATE = ROOT / "template.yaml"


class _Loader(yaml.SafeLoader):
    """Reads `!Sub x` as {"Sub": x}."""


def _tagged(loader: _Loader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    if isinstance(node, yaml.ScalarNode):
        return {suffix: loader.construct_scalar(node)}
    if isinstance(node, yaml.SequenceNode):
        return {suffix: loader.construct_sequence(node, deep=True)}
    raise AssertionError(f"!{suffix} over a mapping")


_Loader.add_multi_constructor("!", _tagged)


@pytest.fixture(scope="module")
def template() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.load(TEMPLATE.read_text(), Loader=_Loader)
    return loaded


def resources(template: dict[str, Any], kind: str) -> dict[str, dict[str, Any]]:
    """Name -> properties of the resources of a kind."""
    return {
        name: resource.get("Properties", {})
        for name, resource in template["Resources"].items()
        if resource["Type"] == kind
    }


def test_cfn_lint_finds_nothing() -> None:
    program = Path(sys.executable).parent / "cfn-lint"
    if not program.exists():
        pytest.skip("cfn-lint is not installed")
    run = subprocess.run([program, TEMPLATE], capture_output=True, text=True)
    assert (run.stdout, run.returncode) == ("", 0)


def test_it_has_no_yaml_alias_which_cloudformation_does_not_take() -> None:
    tokens = yaml.scan(TEMPLATE.read_text())
    assert not [t for t in tokens if isinstance(t, yaml.AnchorToken | yaml.AliasToken)]


def test_each_function_has_its_folder_its_docstring_and_its_role(template: dict[str, Any]) -> None:
    functions = resources(template, "AWS::Serverless::Function")
    folders = {ROOT / properties["CodeUri"] for properties in functions.values()}
    assert folders == {path.parent for path in (ROOT / "functions").glob("*/app.py")}
    for name, properties in functions.items():
        source = (ROOT / properties["CodeUri"] / "app.py").read_text()
        for word in ("Trigger:", "Reads:", "Writes:", "Retries:"):
            assert f"\n{word}" in source, f"{name}: {word}"
        assert properties["Role"] == {"GetAtt": f"{name.removesuffix('Function')}Role.Arn"}


def test_a_function_sets_what_it_reads(template: dict[str, Any]) -> None:
    shared = set(template["Globals"]["Function"]["Environment"]["Variables"])
    for properties in resources(template, "AWS::Serverless::Function").values():
        own = set(properties.get("Environment", {}).get("Variables", {}))
        source = (ROOT / properties["CodeUri"] / "app.py").read_text()
        names = re.search(r"read_settings\(\s*os\.environ(?:,\s*([A-Z_,\s]+))?\)", source)
        assert names is not None
        needed = {f"RANKLOG_{name.strip()}" for name in (names[1] or "").split(",") if name.strip()}
        assert needed <= own | shared


def test_the_api_is_never_open(template: dict[str, Any]) -> None:
    key = template["Parameters"]["ApiKeyHash"]
    assert "Default" not in key and key["NoEcho"] is True
    assert not re.fullmatch(key["AllowedPattern"], "")
    api = resources(template, "AWS::Serverless::Function")["ApiFunction"]
    keys = api["Environment"]["Variables"]["RANKLOG_API_KEYS"]
    assert keys == {"Sub": '{"${ApiTenant}": ["${ApiKeyHash}"]}'}


def test_every_other_parameter_has_a_default(template: dict[str, Any]) -> None:
    without = [name for name, each in template["Parameters"].items() if "Default" not in each]
    assert without == ["ApiKeyHash"]
    groups = template["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
    assert {name for group in groups for name in group["Parameters"]} == set(template["Parameters"])


def test_a_batch_comes_again_in_parts_and_ends_in_the_queue(template: dict[str, Any]) -> None:
    ingest = resources(template, "AWS::Serverless::Function")["IngestFunction"]
    mapping = ingest["Events"]["Frames"]["Properties"]
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert mapping["BisectBatchOnFunctionError"] is True
    assert mapping["MaximumRetryAttempts"] >= 11  # log2 of the batch, and then some
    assert mapping["DestinationConfig"]["OnFailure"]["Type"] == "SQS"


def statements(template: dict[str, Any], role: str) -> list[dict[str, Any]]:
    """What a role may do, its managed policies included."""
    properties = template["Resources"][role]["Properties"]
    policies = [policy["PolicyDocument"] for policy in properties["Policies"]]
    for reference in properties.get("ManagedPolicyArns", ()):
        policies.append(template["Resources"][reference["Ref"]]["Properties"]["PolicyDocument"])
    return [statement for policy in policies for statement in policy["Statement"]]


@pytest.mark.parametrize(
    ("role", "actions"),
    [
        (
            "IngestRole",
            {"s3:GetObject", "s3:PutObject", "s3:ListBucket", "sqs:SendMessage"}
            | {"kinesis:GetRecords", "kinesis:GetShardIterator", "kinesis:ListShards"}
            | {"kinesis:DescribeStream", "kinesis:DescribeStreamSummary"},
        ),
        ("ScanRole", {"s3:GetObject", "s3:PutObject", "s3:ListBucket"}),
        (
            "QueryRole",
            {"s3:GetObject", "s3:PutObject", "s3:ListBucket", "s3:DeleteObject"}
            | {"lambda:InvokeFunction"},
        ),
        (
            "ApiRole",
            {"s3:GetObject", "s3:PutObject", "s3:ListBucket", "s3:DeleteObject"}
            | {"lambda:InvokeFunction", "kinesis:PutRecords"},
        ),
    ],
)
def test_a_role_may_do_what_its_function_does(
    template: dict[str, Any], role: str, actions: set[str]
) -> None:
    allowed: set[str] = set()
    for statement in statements(template, role):
        if statement["Effect"] == "Deny":
            continue  # takes away, whatever it says
        assert statement["Effect"] == "Allow"
        action = statement["Action"]
        allowed |= set(action if isinstance(action, list) else [action])
        assert "*" not in str(action)
        assert statement["Resource"] != "*"
    assert allowed - {"logs:CreateLogStream", "logs:PutLogEvents"} == actions


def test_a_scan_is_stopped_by_its_deadline_and_not_by_lambda(template: dict[str, Any]) -> None:
    functions = {name: template["Resources"][f"{name}Function"] for name in ("Scan", "Api")}
    timeout = {name: item["Properties"]["Timeout"] for name, item in functions.items()}
    assert timeout["Scan"] > limits.LAMBDA_TASK_SECONDS_MAX
    assert timeout["Api"] > 2 * limits.LAMBDA_ANSWER_SECONDS


def test_the_bucket_is_private_kept_and_spoken_to_over_tls(template: dict[str, Any]) -> None:
    bucket = template["Resources"]["StoreBucket"]
    assert bucket["DeletionPolicy"] == bucket["UpdateReplacePolicy"] == "Retain"
    assert set(bucket["Properties"]["PublicAccessBlockConfiguration"].values()) == {True}
    [policy] = resources(template, "AWS::S3::BucketPolicy").values()
    [deny] = policy["PolicyDocument"]["Statement"]
    assert deny["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_layers_take_the_versions_of_the_distribution() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    ours = {}
    for text in [*project["dependencies"], *(item for group in extras.values() for item in group)]:
        name, _, version = text.partition(">=")
        ours[name.partition("[")[0]] = version.split(",")[0]
    for path in (ROOT / "layers").glob("*/requirements.txt"):
        for line in path.read_text().splitlines():
            name, _, version = line.partition(">=")
            if version and not line.startswith("#"):
                assert (
                    ours.get(name.partition("[")[0], version.split(",")[0]) == version.split(",")[0]
                )


@pytest.mark.parametrize(
    ("layer", "absent"), [("scan", {"numpy", "pyarrow"}), ("arrow", {"duckdb"})]
)
def test_no_layer_carries_what_does_not_fit(layer: str, absent: set[str]) -> None:
    text = (ROOT / "layers" / layer / "requirements.txt").read_text()
    assert not absent & set(re.findall(r"^[a-z0-9-]+", text, re.MULTILINE))
