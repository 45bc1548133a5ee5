"""template.yaml: valid, closed by default, safe to lose a function in, each role as small as its function."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import tomllib
import yaml

from ranklog import limits
from ranklog.api.scopes import PUBLIC, SCOPE_OF
from ranklog.layout import keys
from ranklog.objectives import names
from tests.aws.stack import (
    ROOT,
    TEMPLATE,
    Template,
    functions,
    grains,
    read_template,
    resources,
    routes,
)

# What may be said of any resource, and why.
ANY_RESOURCE = {
    "xray:PutTraceSegments": "X-Ray knows no resources",
    "xray:PutTelemetryRecords": "X-Ray knows no resources",
}


@pytest.fixture(scope="module")
def template() -> Template:
    return read_template()


def test_it_has_no_yaml_alias_which_cloudformation_does_not_take() -> None:
    tokens = yaml.scan(TEMPLATE.read_text())
    assert not [t for t in tokens if isinstance(t, yaml.AnchorToken | yaml.AliasToken)]


# --- functions ----------------------------------------------------------------------------------
def test_each_function_has_its_folder_its_docstring_its_role_and_its_log(
    template: Template,
) -> None:
    found = functions(template)
    folders = {ROOT / properties["CodeUri"] for properties in found.values()}
    assert folders == {path.parent for path in (ROOT / "functions").glob("*/app.py")}
    logs = resources(template, "AWS::Logs::LogGroup")
    for name, properties in found.items():
        source = (ROOT / properties["CodeUri"] / "app.py").read_text()
        for word in ("Trigger:", "Reads:", "Writes:", "Retries:"):
            assert f"\n{word}" in source, f"{name}: {word}"
        assert properties["Role"] == {"GetAtt": f"{name}Role.Arn"}
        assert properties["LoggingConfig"]["LogGroup"] == {"Ref": f"{name}Log"}
    assert all(log["RetentionInDays"] == {"Ref": "LogRetentionDays"} for log in logs.values())
    assert set(logs) == {f"{name}Log" for name in found} | {"HttpApiLog"}


def test_a_function_sets_what_it_reads(template: Template) -> None:
    shared = set(template["Globals"]["Function"]["Environment"]["Variables"])
    for name, properties in functions(template).items():
        own = set(properties.get("Environment", {}).get("Variables", {}))
        source = (ROOT / properties["CodeUri"] / "app.py").read_text()
        needed = set()
        found = re.search(r"read_settings\(\s*os\.environ(?:,\s*([A-Z_,\s]+))?\)", source)
        if found is not None:
            needed = {
                f"RANKLOG_{word.strip()}" for word in (found[1] or "").split(",") if word.strip()
            }
        assert needed <= own | shared, name


def test_all_is_built_for_one_architecture(template: Template) -> None:
    assert template["Parameters"]["Architecture"]["AllowedValues"] == ["x86_64", "arm64"]
    chosen = [{"Ref": "Architecture"}]
    assert template["Globals"]["Function"]["Architectures"] == chosen
    for layer in resources(template, "AWS::Serverless::LayerVersion").values():
        assert layer["CompatibleArchitectures"] == chosen


def test_a_scan_is_stopped_by_its_deadline_and_not_by_lambda(template: Template) -> None:
    timeout = {name: properties["Timeout"] for name, properties in functions(template).items()}
    assert timeout["Scan"] > limits.LAMBDA_TASK_SECONDS_MAX
    assert timeout["Api"] > 2 * limits.LAMBDA_ANSWER_SECONDS
    assert timeout["Compact"] > 2 * limits.UPKEEP_RESERVE_S
    assert timeout["Compact"] <= limits.COMPACT_LEASE_S


def test_every_parameter_has_a_default_and_a_place_in_the_console(template: Template) -> None:
    assert not [name for name, each in template["Parameters"].items() if "Default" not in each]
    groups = template["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
    assert {name for group in groups for name in group["Parameters"]} == set(template["Parameters"])
    text = TEMPLATE.read_text()
    unused = [
        name
        for name in template["Parameters"]
        if not re.search(rf"!Ref {name}\b|\$\{{{name}\}}", text)
    ]
    assert unused == []


# --- the stream ---------------------------------------------------------------------------------
def test_a_failing_batch_is_repeated_until_the_stream_lets_it_go_and_then_kept(
    template: Template,
) -> None:
    mapping = functions(template)["Ingest"]["Events"]["Frames"]["Properties"]
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert mapping["BisectBatchOnFunctionError"] is True
    assert mapping["MaximumRetryAttempts"] == -1
    place = "Retention, !Ref StreamRetentionHours, RecordAgeSeconds"
    assert f"MaximumRecordAgeInSeconds: !FindInMap [{place}]" in TEMPLATE.read_text()
    destination = mapping["DestinationConfig"]["OnFailure"]
    assert destination == {"Type": "S3", "Destination": {"GetAtt": "GivenUpBucket.Arn"}}


def test_a_record_is_given_up_before_the_stream_loses_it(template: Template) -> None:
    parameter = template["Parameters"]["StreamRetentionHours"]
    table = template["Mappings"]["Retention"]
    assert list(table) == parameter["AllowedValues"] and parameter["Default"] in table
    week_s = 7 * 24 * 3_600  # the longest that Lambda takes
    for hours, row in table.items():
        assert int(hours) >= 72
        assert row["RecordAgeSeconds"] == min(week_s, int(hours) * 3_600 - 3_600)


def test_the_stream_is_encrypted_and_grows_by_itself_unless_shards_are_asked_for(
    template: Template,
) -> None:
    [stream] = resources(template, "AWS::Kinesis::Stream").values()
    assert template["Parameters"]["StreamShards"]["Default"] == 0
    asked_for = {"Not": [{"Equals": [{"Ref": "StreamShards"}, 0]}]}
    assert template["Conditions"]["HasShards"] == asked_for
    mode = {"If": ["HasShards", "PROVISIONED", "ON_DEMAND"]}
    assert stream["StreamModeDetails"] == {"StreamMode": mode}
    shards = {"If": ["HasShards", {"Ref": "StreamShards"}, {"Ref": "AWS::NoValue"}]}
    assert stream["ShardCount"] == shards
    assert stream["StreamEncryption"]["EncryptionType"] == "KMS"


# --- the bucket ---------------------------------------------------------------------------------
def test_buckets_are_private_kept_encrypted_and_spoken_to_over_tls(template: Template) -> None:
    buckets = {n: r for n, r in template["Resources"].items() if r["Type"] == "AWS::S3::Bucket"}
    assert set(buckets) == {"StoreBucket", "GivenUpBucket"}
    policies = resources(template, "AWS::S3::BucketPolicy").values()
    denied = {policy["Bucket"]["Ref"]: policy["PolicyDocument"]["Statement"] for policy in policies}
    for name, bucket in buckets.items():
        assert bucket["DeletionPolicy"] == bucket["UpdateReplacePolicy"] == "Retain"
        properties = bucket["Properties"]
        assert set(properties["PublicAccessBlockConfiguration"].values()) == {True}
        [rule] = properties["BucketEncryption"]["ServerSideEncryptionConfiguration"]
        assert rule["ServerSideEncryptionByDefault"]["SSEAlgorithm"] == "aws:kms"
        assert rule["BucketKeyEnabled"] is True
        [deny] = denied[name]
        assert (deny["Effect"], deny["Principal"], deny["Action"]) == ("Deny", "*", "s3:*")
        assert deny["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_by_age_go_only_uploads_and_temporary_results(template: Template) -> None:
    bucket = resources(template, "AWS::S3::Bucket")["StoreBucket"]
    rules = {rule["Id"]: rule for rule in bucket["LifecycleConfiguration"]["Rules"]}
    expiring = {name: rule["Prefix"] for name, rule in rules.items() if "ExpirationInDays" in rule}
    assert expiring == {"temporary-results": "_tmp/"}
    assert set(rules) == {*expiring, "abort-uploads"}
    for tenant in ("acme", "_tmp", "_odd", "tmp"):
        assert keys.tmp_key(tenant, "x").startswith("_tmp/")
        assert not keys.tenant_prefix(tenant).startswith("_tmp/")


# --- the API ------------------------------------------------------------------------------------
def test_every_route_but_the_public_ones_asks_the_authorizer(template: Template) -> None:
    auth = template["Resources"]["HttpApi"]["Properties"]["Auth"]
    assert auth["DefaultAuthorizer"] in auth["Authorizers"]
    authorizer = auth["Authorizers"][auth["DefaultAuthorizer"]]
    assert authorizer["FunctionArn"] == {"GetAtt": "AuthorizerFunction.Arn"}
    assert authorizer["EnableSimpleResponses"] is True
    assert authorizer["AuthorizerPayloadFormatVersion"] == "2.0"
    assert authorizer["Identity"]["Headers"] == ["Authorization"]
    seconds = authorizer["Identity"]["ReauthorizeEvery"]
    assert seconds * limits.SECOND_NS <= limits.API_KEY_AGE_NS_MAX
    known = routes(template)
    assert {route.key for route in known if route.public} == {f"{m} {p}" for m, p in PUBLIC}
    for method, path in SCOPE_OF:
        asked = path.replace("<", "x").replace(">", "x")
        taken = next((route for route in known if route.takes(method, asked)), None)
        assert taken is not None and not taken.public, (method, path)


def test_every_route_has_a_limit_of_its_own(template: Template) -> None:
    api = template["Resources"]["HttpApi"]["Properties"]
    limited = {route.key for route in routes(template)}
    assert set(api["RouteSettings"]) == limited
    for settings in (*api["RouteSettings"].values(), api["DefaultRouteSettings"]):
        assert set(settings) == {"ThrottlingBurstLimit", "ThrottlingRateLimit"}


def test_access_logs_hold_no_question_and_no_key(template: Template) -> None:
    text = template["Resources"]["HttpApi"]["Properties"]["AccessLogSettings"]["Format"]
    shown = set(re.findall(r"\$context\.([\w.]+)", text))
    assert not [name for name in shown if "header" in name.lower() or "query" in name.lower()]
    assert "path" not in shown
    json.loads(text)


# --- upkeep -------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["Compact", "Retention"])
def test_tasks_of_a_tenant_are_done_one_after_the_other(template: Template, name: str) -> None:
    queue = resources(template, "AWS::SQS::Queue")[f"{name}Tasks"]
    properties = functions(template)[name]
    assert queue["FifoQueue"] is True and queue["ContentBasedDeduplication"] is True
    assert queue["VisibilityTimeout"] >= 2 * properties["Timeout"]
    assert queue["RedrivePolicy"]["deadLetterTargetArn"] == {"GetAtt": "TaskFailures.Arn"}
    mapping = properties["Events"]["Tasks"]["Properties"]
    assert mapping["Queue"] == {"GetAtt": f"{name}Tasks.Arn"}
    assert mapping["BatchSize"] == 1
    assert mapping["ScalingConfig"] == {"MaximumConcurrency": {"Ref": "UpkeepConcurrency"}}


def test_what_a_schedule_invokes_has_somewhere_to_fail_to(template: Template) -> None:
    for name, properties in functions(template).items():
        kinds = {event["Type"] for event in properties.get("Events", {}).values()}
        if "Schedule" not in kinds:
            continue
        config = properties["EventInvokeConfig"]
        failure = config["DestinationConfig"]["OnFailure"]
        assert failure["Destination"] == {"GetAtt": "InvocationFailures.Arn"}, name
        assert config["MaximumRetryAttempts"] <= 1


# --- roles --------------------------------------------------------------------------------------
def roles() -> list[str]:
    kinds = ("AWS::IAM::Role", "AWS::IAM::ManagedPolicy")
    return sorted(name for kind in kinds for name in resources(read_template(), kind))


def policies_of(template: Template, name: str) -> list[dict[str, Any]]:
    properties = template["Resources"][name]["Properties"]
    documents = [policy["PolicyDocument"] for policy in properties.get("Policies", ())]
    found = properties.get("PolicyDocument") or documents[0]
    return [item["If"][1] if "If" in item else item for item in found["Statement"]]


@pytest.mark.parametrize("name", roles())
def test_no_policy_allows_any_action_or_any_resource(template: Template, name: str) -> None:
    for statement in policies_of(template, name):
        assert set(statement) <= {"Sid", "Effect", "Action", "Resource"}, (
            "no NotAction, no NotResource"
        )
        action, resource = statement["Action"], statement["Resource"]
        actions = action if isinstance(action, list) else [action]
        assert not [one for one in actions if "*" in one]
        every = "*" in (resource if isinstance(resource, list) else [resource])
        assert not every or set(actions) <= set(ANY_RESOURCE), statement["Sid"]
        # a whole bucket is listed, and written by Lambda itself, but never read or written by us
        whole = {"Sub": "${StoreBucket.Arn}/*"}
        assert whole not in (resource if isinstance(resource, list) else [resource])


def test_only_lambda_takes_on_a_functions_role(template: Template) -> None:
    trusted = {
        name: r["AssumeRolePolicyDocument"]
        for name, r in resources(template, "AWS::IAM::Role").items()
    }
    assert set(trusted) == {f"{name}Role" for name in functions(template)}
    for document in trusted.values():
        [statement] = document["Statement"]
        assert statement["Principal"] == {"Service": "lambda.amazonaws.com"}


def test_who_may_delete_is_who_tends_the_store(template: Template) -> None:
    deleting = {
        name
        for name in functions(template)
        for grain in grains(template, f"{name}Role")
        if grain.action == "s3:DeleteObject" and "/_tmp/" not in grain.resource
    }
    assert deleting == {"Compact", "Retention", "Metrics"}
    allowed = {g.resource for g in grains(template, "MetricsRole") if g.action == "s3:DeleteObject"}
    assert allowed == {"StoreBucket/*/measures/*"}


# --- watching -----------------------------------------------------------------------------------
def metric_names(alarm: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    """(namespace, metric, dimensions) that an alarm looks at."""
    found = [alarm] if "MetricName" in alarm else []
    found += [
        item["MetricStat"]["Metric"] for item in alarm.get("Metrics", ()) if "MetricStat" in item
    ]
    return [
        (one["Namespace"], one["MetricName"], {d["Name"]: d["Value"] for d in one["Dimensions"]})
        for one in found
    ]


def test_errors_and_throttles_of_every_function_sound_an_alarm(template: Template) -> None:
    alarms = resources(template, "AWS::CloudWatch::Alarm")
    looked = {
        (metric, dimensions["FunctionName"]["Ref"])
        for alarm in alarms.values()
        for space, metric, dimensions in metric_names(alarm)
        if space == "AWS/Lambda" and "FunctionName" in dimensions
    }
    wanted = {
        (m, f"{name}Function") for name in functions(template) for m in ("Errors", "Throttles")
    }
    assert looked == wanted | {("IteratorAge", "IngestFunction")}
    action = {"If": ["HasAlarmTopic", [{"Ref": "AlarmTopicArn"}], {"Ref": "AWS::NoValue"}]}
    assert all(str(alarm["AlarmActions"]["If"][0]) == action["If"][0] for alarm in alarms.values())


def test_alarms_and_dashboard_look_at_metrics_that_functions_tell(template: Template) -> None:
    told = set(names.BY_NAME)
    alarms = resources(template, "AWS::CloudWatch::Alarm").values()
    own = {
        metric for alarm in alarms for space, metric, _ in metric_names(alarm) if space == "ranklog"
    }
    for wanted in ("quarantined_frames", "completeness_percent", "freshness_ms", "canary_missing"):
        assert wanted in own
    body = template["Resources"]["Dashboard"]["Properties"]["DashboardBody"]["Sub"]
    shown = {
        metric[1]
        for widget in json.loads(body)["widgets"]
        for metric in widget["properties"]["metrics"]
        if metric[0] == "ranklog"
    }
    assert own | shown <= told


def test_the_cli_finds_what_it_reads_among_the_outputs(template: Template) -> None:
    from ranklog.store import stack

    assert {stack.API, stack.STORE, stack.STREAM} <= set(template["Outputs"])


# --- layers -------------------------------------------------------------------------------------
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
