"""What a deployed stack says of itself: the outputs of template.yaml, read from CloudFormation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ranklog.errors import BadInput, NotFound
from ranklog.store.aws import aws_client, translate

API, STORE, STREAM = "ApiUrl", "StoreUrl", "StreamName"
_NEEDED = (API, STORE, STREAM)


@dataclass(frozen=True, slots=True)
class StackOutputs:
    """Where a stack's API, bucket and stream are, and the region it is in."""

    api: str
    store: str
    stream: str
    region: str


def read_stack(name: str, *, region: str | None = None, profile: str | None = None) -> StackOutputs:
    """The outputs of a stack that is there.

    Raises NotFound (no such stack), BadInput (no credentials or region; another stack than
    ranklog's; one that is not deployed whole), Unavailable.
    """
    client = aws_client("cloudformation", region=region, profile=profile)
    where = f"the stack {name!r} in {client.meta.region_name}"
    try:
        [stack] = client.describe_stacks(StackName=name)["Stacks"]
    except Exception as error:
        if "does not exist" in str(error):
            raise NotFound(
                f"{where} does not exist",
                hint="sam deploy makes one; --region names another region",
            ) from error
        raise translate(error, where) from error
    outputs = {item["OutputKey"]: item["OutputValue"] for item in stack.get("Outputs") or ()}
    missing = [output for output in _NEEDED if not outputs.get(output)]
    if missing:
        raise BadInput(
            f"{where} ({stack['StackStatus']}) has no output {missing[0]}", hint=_hint(stack)
        )
    return StackOutputs(outputs[API], outputs[STORE], outputs[STREAM], str(client.meta.region_name))


def _hint(stack: dict[str, Any]) -> str:
    if stack["StackStatus"].endswith("_COMPLETE") and "ROLLBACK" not in stack["StackStatus"]:
        return "it is another stack than ranklog's, or of an older one: deploy template.yaml"
    return "it is not deployed whole: see its events in CloudFormation, and deploy again"
