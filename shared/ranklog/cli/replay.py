"""`ranklog replay DIR`: what a spool holds that no agent works on any more, to where it belongs; or, with
`s3://…`, batches that ingest on AWS gave up, back into the stream."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from ranklog.cli.config import read_config
from ranklog.cli.console import Console
from ranklog.cli.scope import FOUND
from ranklog.cli.tables import shown_bytes
from ranklog.errors import BadInput

NOT_ALL = 1
_BUCKET, _STREAM = "s3://", "kinesis://"


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Send it all; 1 where some is left, and why."""
    if arguments.dir_words.startswith(_BUCKET):
        return _return_given_up(arguments, console)
    from ranklog.agent.replay import replay

    destination = arguments.destination or os.environ.get("RANKLOG_DESTINATION")
    if not destination:
        raise BadInput("send where?", hint="--destination, or $RANKLOG_DESTINATION")
    done = replay(
        Path(arguments.dir_words).absolute(), destination, os.environ, timeout_s=arguments.timeout
    )
    if console.json:
        console.object(
            {
                "report": {
                    "frames": done.frames,
                    "bytes": done.bytes,
                    "refused": done.refused,
                    "left": done.left,
                    "error": done.error or None,
                }
            }
        )
    else:
        console.line(f"{done.frames:,} frames sent ({shown_bytes(done.bytes)})")
    if done.left or done.refused:
        console.note(f"{done.left:,} frames left, {done.refused:,} refused: {done.error}")
    return NOT_ALL if done.left or done.refused else FOUND


def _return_given_up(arguments: argparse.Namespace, console: Console) -> int:
    from ranklog.store.aws import aws_client
    from ranklog.store.open import open_store
    from ranklog.stream.given_up import return_given_up

    config = read_config()
    if config is not None:
        config.use()
    destination = arguments.destination or os.environ.get("RANKLOG_DESTINATION") or ""
    if not destination and config is not None and config.stream:
        destination = _STREAM + config.stream
    stream = destination.removeprefix(_STREAM)
    if not destination.startswith(_STREAM) or not stream:
        raise BadInput(
            f"into which stream? {destination}".rstrip(),
            hint="--destination kinesis://STREAM, or ranklog configure --stack NAME",
        )
    done = return_given_up(open_store(arguments.dir_words), aws_client("kinesis"), stream)
    if console.json:
        report = {"batches": done.batches, "frames": done.frames, "bytes": done.bytes}
        console.object({"report": report | {"failed": done.failed}})
    else:
        sent = f"{done.frames:,} frames of {done.batches:,} batches"
        console.line(f"{sent} are in {stream} again ({shown_bytes(done.bytes)})")
    for key, reason in done.failed.items():
        console.note(f"left as it is: {key}: {reason}")
    return NOT_ALL if done.failed else FOUND
