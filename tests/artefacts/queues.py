"""Lambda's event source mapping over an SQS queue: a batch a call, deleted when it went well.

What went wrong stays in the queue and is seen again after the queue's visibility timeout; the queue's own
redrive policy moves it to its dead letters.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.artefacts.lambdas import Throttled
from tests.artefacts.worker import Invoked

_POLL_S = 0.2


@dataclass
class QueueMapping:
    """Polls from `start` to `close`."""

    sqs: Any
    queue_url: str
    queue_arn: str
    invoke: Callable[[bytes], Invoked]
    batch_size: int = 10
    taken: list[str] = field(default_factory=list)
    _closed: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """In a thread of its own."""
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """After the batch that is under way."""
        self._closed.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._closed.wait(_POLL_S):
            while self.poll() and not self._closed.is_set():
                pass

    def poll(self) -> int:
        """One batch; returns the number of its messages."""
        found = self.sqs.receive_message(
            QueueUrl=self.queue_url, MaxNumberOfMessages=self.batch_size, AttributeNames=["All"]
        ).get("Messages", [])
        if not found:
            return 0
        try:
            done = self.invoke(
                json.dumps({"Records": [self._record(one) for one in found]}).encode()
            )
        except Throttled:
            return 0
        failed = {one["MessageId"] for one in found} if done.error else _failed(done.payload)
        for one in found:
            if one["MessageId"] not in failed:
                self.sqs.delete_message(QueueUrl=self.queue_url, ReceiptHandle=one["ReceiptHandle"])
                self.taken.append(one["Body"])
        return len(found)

    def _record(self, message: dict[str, Any]) -> dict[str, Any]:
        return {
            "messageId": message["MessageId"],
            "receiptHandle": message["ReceiptHandle"],
            "body": message["Body"],
            "attributes": message.get("Attributes", {}),
            "messageAttributes": {},
            "md5OfBody": message["MD5OfBody"],
            "eventSource": "aws:sqs",
            "eventSourceARN": self.queue_arn,
            "awsRegion": "eu-central-1",
        }


def _failed(payload: bytes) -> set[str]:
    """Messages that a response of ReportBatchItemFailures names."""
    answer = json.loads(payload)
    if not isinstance(answer, dict):
        return set()
    return {item["itemIdentifier"] for item in answer.get("batchItemFailures") or ()}
