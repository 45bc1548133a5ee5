"""What each function asks of AWS: every call of its boto3 clients, as IAM would see it.

A client belongs to the function in whose call it was made. moto answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import boto3
import pytest

Function = Callable[[dict[str, Any]], Any]
current: ContextVar[str] = ContextVar("function", default="")
# The action of IAM behind an operation, and the argument that names the resource.
_ACTIONS = {
    "PutObject": ("s3:PutObject", "Key"),
    "GetObject": ("s3:GetObject", "Key"),
    "DeleteObject": ("s3:DeleteObject", "Key"),
    "ListObjectsV2": ("s3:ListBucket", ""),
    "PutRecords": ("kinesis:PutRecords", ""),
    "SendMessageBatch": ("sqs:SendMessage", ""),
    "Invoke": ("lambda:InvokeFunction", ""),
}


@dataclass(frozen=True, slots=True)
class Call:
    """`resource`: logical name in template.yaml, and the key of an object."""

    function: str
    action: str
    resource: str


@dataclass
class Recorder:
    """`resources`: what a queue's URL, a function's name and so on are in template.yaml."""

    resources: dict[str, str]
    calls: set[Call] = field(default_factory=set)

    def within(self, name: str, function: Function) -> Function:
        """The function, known by its name while it runs."""

        def call(event: dict[str, Any]) -> Any:
            token = current.set(name)
            try:
                return function(event)
            finally:
                current.reset(token)

        return call

    def note(self, name: str, operation: str, params: dict[str, Any]) -> None:
        action, key = _ACTIONS[operation]  # KeyError: a call that no role knows of yet
        place = next(value for value in params.values() if str(value) in self.resources)
        resource = self.resources[str(place)]
        self.calls.add(Call(name, action, f"{resource}/{params[key]}" if key else resource))


@contextmanager
def recording(patch: pytest.MonkeyPatch, recorder: Recorder) -> Iterator[None]:
    """Every client that is made meanwhile tells what it is asked."""
    make = boto3.session.Session.client

    def client(self: Any, service: str, *words: Any, **options: Any) -> Any:
        made, name = make(self, service, *words, **options), current.get()

        def note(params: dict[str, Any], model: Any, **_: Any) -> None:
            recorder.note(name, model.name, params)

        if name:
            made.meta.events.register("provide-client-params.*.*", note)
        return made

    with patch.context() as patched:
        patched.setattr(boto3.session.Session, "client", client)
        yield
