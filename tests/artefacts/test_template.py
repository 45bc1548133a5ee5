"""The template's own values: what a function of it is told, whatever CloudFormation makes of names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.artefacts.build import ROOT
from tests.artefacts.mapping import Terms
from tests.artefacts.template import Template

TEXT = """
Parameters:
  Size: { Type: Number, Default: 3 }
  Topic: { Type: String, Default: "" }
Mappings:
  Table: { "3": { Seconds: 30 } }
Conditions:
  HasTopic: !Not [!Equals [!Ref Topic, ""]]
  Both: !And [!Condition HasTopic, !Equals [!Ref Size, "3"]]
Globals:
  Function: { Handler: app.handler, Environment: { Variables: { SHARED: "1" } } }
Resources:
  Layer: { Type: "AWS::Serverless::LayerVersion", Properties: { ContentUri: Layer } }
  Queue: { Type: "AWS::SQS::Queue" }
  Bucket: { Type: "AWS::S3::Bucket", Condition: HasTopic }
  OneFunction:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: OneFunction
      Layers: [!Ref Layer]
      Timeout: !FindInMap [Table, !Ref Size, Seconds]
      Environment:
        Variables:
          STORE: !Sub "s3://${Bucket}/${AWS::Region}/${!Literal}/${Size}"
          ARN: !GetAtt Queue.Arn
          URL: !Ref Queue
          JOINED: !Join [",", [!Ref Size, "b"]]
          TOPIC: !If [HasTopic, !Ref Topic, !Ref "AWS::NoValue"]
          BOTH: !If [Both, "yes", "no"]
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "template.yaml").write_text(TEXT)
    return tmp_path / "template.yaml"


def test_a_functions_values_are_those_of_the_template(path: Path) -> None:
    template = Template(path, {}, {"Bucket": "mine", "Queue": "q1"}, {"Queue": "http://q1"})
    [one] = template.functions().values()
    assert (one.folder, one.layers, one.timeout_s) == (
        path.parent / "OneFunction",
        (path.parent / "Layer",),
        30.0,
    )
    assert one.environment == {
        "SHARED": "1",
        "STORE": "s3://mine/eu-central-1/${Literal}/3",
        "ARN": "arn:aws:sqs:eu-central-1:123456789012:q1",
        "URL": "http://q1",
        "JOINED": "3,b",
        "BOTH": "no",
    }


def test_parameters_decide_what_there_is(path: Path) -> None:
    template = Template(path, {"Topic": "arn"})
    [one] = template.functions().values()
    assert (one.environment["TOPIC"], one.environment["BOTH"]) == ("arn", "yes")
    assert [list(t.resources("AWS::S3::Bucket")) for t in (Template(path), template)] == [
        [],
        ["Bucket"],
    ]


def test_every_function_of_ours_can_be_read() -> None:
    functions = Template(ROOT / "template.yaml").functions()
    assert {one.folder.name for one in functions.values()} == {
        folder.parent.name for folder in (ROOT / "functions").glob("*/app.py")
    }
    for one in functions.values():
        assert one.environment["RANKLOG_STORE"] == "s3://StoreBucket"
        assert one.timeout_s > 0 and len(one.layers) == 2


def test_our_mapping_keeps_records_until_the_stream_lets_them_go() -> None:
    ingest = Template(ROOT / "template.yaml").functions()["IngestFunction"]
    [event] = [each for each in ingest.events.values() if each["Type"] == "Kinesis"]
    terms = Terms.read(event["Properties"])
    assert (terms.bisect, terms.partial, terms.retries) == (True, True, -1)
    assert 0 < terms.record_age_s < 72 * 3600 and terms.destination.startswith("arn:aws:s3:::")
