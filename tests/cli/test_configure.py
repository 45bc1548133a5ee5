"""`ranklog configure`: from a stack's outputs to commands that need no --store and no --api."""

from __future__ import annotations

import argparse
import io
import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from ranklog.access.manage import create_api_key
from ranklog.cli.config import Config, config_path, read_config, write_config
from ranklog.cli.main import main
from ranklog.cli.run import _destination
from ranklog.cli.source import Source, open_client, source_of
from ranklog.errors import BadInput
from ranklog.store.memory import MemoryStore

KEY, RECORD = create_api_key(MemoryStore(), "acme", ["read", "write"], now_ns=1)
OUTPUTS = {
    "ApiUrl": "https://abc123.execute-api.eu-central-1.amazonaws.com",
    "StoreUrl": "s3://logs-storebucket-1",
    "StreamName": "logs-framesstream-1",
    "QueryFunctionArn": "arn:aws:lambda:eu-central-1:1:function:query",
}
STACK = Config(
    api=OUTPUTS["ApiUrl"],
    store=OUTPUTS["StoreUrl"],
    stream=OUTPUTS["StreamName"],
    stack="logs",
    region="eu-central-1",
)


@pytest.fixture(autouse=True)
def private_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    names = ("RANKLOG_STORE", "RANKLOG_API", "RANKLOG_API_KEY", "RANKLOG_DESTINATION")
    for name in (*names, "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    with mock_aws():
        yield


def make_stack(name: str, outputs: dict[str, str]) -> None:
    template: dict[str, Any] = {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Resources": {"Queue": {"Type": "AWS::SQS::Queue"}},
        "Outputs": {key: {"Value": value} for key, value in outputs.items()},
    }
    client = boto3.client("cloudformation", region_name="eu-central-1")
    client.create_stack(StackName=name, TemplateBody=json.dumps(template))


def configure(*words: str) -> int:
    return main(["configure", *words])


def test_a_stacks_outputs_are_kept_for_its_user_alone(aws: None) -> None:
    make_stack("logs", OUTPUTS)
    assert configure("--stack", "logs", "--region", "eu-central-1") == 0
    assert read_config() == STACK
    assert stat.S_IMODE(config_path().stat().st_mode) == 0o600
    assert stat.S_IMODE(config_path().parent.stat().st_mode) == 0o700


def test_a_key_comes_from_a_file_or_from_standard_input_and_is_not_shown(
    aws: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    make_stack("logs", OUTPUTS)
    (tmp_path / "key").write_text(KEY + "\n")
    stack = ("--stack", "logs", "--region", "eu-central-1")
    assert configure(*stack, "--key-file", str(tmp_path / "key")) == 0
    kept = read_config()
    monkeypatch.setattr("sys.stdin", io.StringIO(KEY))
    assert configure(*stack, "--key-file", "-") == 0
    assert kept == read_config() and kept is not None and kept.key == KEY
    assert configure("--show") == 0
    assert configure("--show", "--json") == 0
    shown = capsys.readouterr()
    assert RECORD.key_id in shown.out and OUTPUTS["StoreUrl"] in shown.out
    assert KEY not in shown.out + shown.err and KEY.split(".")[2] not in shown.out + repr(kept)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--stack", "none", "--region", "eu-central-1"), "does not exist"),
        (("--stack", "other", "--region", "eu-central-1"), "has no output ApiUrl"),
        (("--stack", "logs"), "region"),
        (("--stack", "logs", "--region", "eu-central-1", "--profile", "nobody"), "nobody"),
        ((), "configure what?"),
        (("--stack", "logs", "--api", "https://x"), "configure what?"),
        (("--show", "--forget"), "configure what?"),
        (("--api", "logs.example.com"), "no address of an API"),
        (("--api", "https://x", "--region", "eu-central-1"), "neither --region nor --profile"),
        (("--api", "https://x", "--key-file", "/nowhere"), "can't read a key"),
    ],
)
def test_what_can_not_be_configured_is_said_and_nothing_is_kept(
    aws: None,
    words: tuple[str, ...],
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    make_stack("logs", OUTPUTS)
    make_stack("other", {"Something": "else"})
    assert configure(*words) == 2
    assert said in capsys.readouterr().err
    assert read_config() is None


def test_without_credentials_it_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/nowhere")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    assert configure("--stack", "logs", "--region", "eu-central-1") == 2
    assert "credentials" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "two words", "rli_YWNtZQ.0123456789ab.x"])
def test_other_text_is_no_key(tmp_path: Path, text: str) -> None:
    (tmp_path / "key").write_text(text)
    assert configure("--api", "https://x", "--key-file", str(tmp_path / "key")) == 2
    assert read_config() is None


def reading(**given: str) -> argparse.Namespace:
    return argparse.Namespace(**({"store": None, "api": None, "tenant": None} | given))


def writing(**given: str) -> argparse.Namespace:
    return argparse.Namespace(**({"store": None, "tenant": None} | given))


WITH_KEY = Config(**{**{n: getattr(STACK, n) for n in STACK.__slots__}, "key": KEY})
ONLY_API = Config(api="https://x", key=KEY)


@pytest.mark.parametrize(
    ("config", "arguments", "store", "api"),
    [
        (WITH_KEY, reading(), None, STACK.api),
        (WITH_KEY, reading(tenant="other"), STACK.store, None),
        (WITH_KEY, writing(), STACK.store, None),
        (STACK, reading(), STACK.store, None),
        (STACK, writing(), STACK.store, None),
        (ONLY_API, reading(), None, "https://x"),
    ],
)
def test_who_has_a_key_asks_the_api_and_others_the_bucket(
    config: Config, arguments: argparse.Namespace, store: str | None, api: str | None
) -> None:
    write_config(config)
    tenant = getattr(arguments, "tenant", None) or "default"
    assert source_of(arguments) == Source(store, api, tenant, configured=config)


def test_options_and_environment_go_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    write_config(WITH_KEY)
    assert source_of(reading(store="/a")) == Source("/a", None, "default")
    assert source_of(reading(api="http://b")) == Source(None, "http://b", "default")
    monkeypatch.setenv("RANKLOG_STORE", "/env")
    assert source_of(reading()) == Source("/env", None, "default")


def test_the_key_of_the_environment_goes_before_the_configured_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("RANKLOG_API_KEY", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.setenv(name, "")  # so that what is set is taken back
    write_config(WITH_KEY)
    assert open_client(reading())._backend._key == KEY  # type: ignore[attr-defined]
    monkeypatch.setenv("RANKLOG_API_KEY", "another")
    assert open_client(reading())._backend._key == "another"  # type: ignore[attr-defined]


def test_the_account_is_used_where_nothing_else_is_said() -> None:
    config = Config(store="s3://x", region="eu-central-1", profile="logs", key="k")
    environ: dict[str, str] = {}
    config.use(environ)
    assert environ == {
        "RANKLOG_API_KEY": "k",
        "AWS_PROFILE": "logs",
        "AWS_REGION": "eu-central-1",
        "AWS_DEFAULT_REGION": "eu-central-1",
    }
    said = {"AWS_PROFILE": "mine", "AWS_DEFAULT_REGION": "us-east-1", "RANKLOG_API_KEY": "mine"}
    environ = dict(said)
    config.use(environ)
    assert environ == said


@pytest.mark.parametrize(
    ("config", "destination"),
    [(WITH_KEY, STACK.api), (STACK, f"kinesis://{STACK.stream}")],
)
def test_a_job_sends_its_lines_there(
    config: Config, destination: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("RANKLOG_API_KEY", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.setenv(name, "x")  # so that what is set is taken back
        monkeypatch.delenv(name)
    write_config(config)
    arguments = argparse.Namespace(store=None, destination=None)
    assert _destination(arguments) == (destination, None)


def test_it_can_be_forgotten() -> None:
    assert configure("--forget") == 1
    write_config(STACK)
    assert configure("--show") == 0
    assert configure("--forget") == 0
    assert configure("--show") == 1


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"version": 2, "api": "x"}', '{"version": 1}', '{"version": 1, "api": 3}'],
)
def test_a_file_that_is_not_ours_is_refused(text: str) -> None:
    config_path().parent.mkdir(parents=True)
    config_path().write_text(text)
    with pytest.raises(BadInput):
        read_config()


def test_what_ingest_gave_up_goes_into_the_configured_stream(
    aws: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    where = {"LocationConstraint": "eu-central-1"}
    s3, kinesis = boto3.client("s3"), boto3.client("kinesis")
    s3.create_bucket(Bucket="given-up", CreateBucketConfiguration=where)
    event = (Path(__file__).parents[2] / "events" / "ingest-given-up.json").read_bytes()
    s3.put_object(Bucket="given-up", Key="aws/lambda/1/shard/batch", Body=event)
    kinesis.create_stream(StreamName=STACK.stream, ShardCount=1)
    assert main(["replay", "s3://given-up"]) == 2
    assert "into which stream?" in capsys.readouterr().err
    write_config(STACK)
    assert main(["replay", "s3://given-up", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)["report"]
    assert (report["batches"], report["frames"], report["failed"]) == (1, 2, {})
    assert "Contents" not in s3.list_objects_v2(Bucket="given-up")
