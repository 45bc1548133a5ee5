"""`ranklog configure`: from here on commands mean this stack, or this API."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ranklog.cli.config import Config, config_path, forget_config, read_config, write_config
from ranklog.cli.console import Console
from ranklog.errors import BadInput

STANDARD_INPUT = "-"


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Look the stack up and keep where it is; 1 where --show or --forget finds nothing."""
    modes = [bool(arguments.show), bool(arguments.forget), bool(arguments.stack or arguments.api)]
    if sum(modes) != 1 or (arguments.stack and arguments.api):
        raise BadInput("configure what?", hint="--stack NAME or --api URL; --show; --forget")
    if arguments.show:
        return _show(read_config(), console)
    if arguments.forget:
        there = forget_config()
        console.note(f"{config_path()} is {'gone' if there else 'not there'}")
        return 0 if there else 1
    config = _of_stack(arguments) if arguments.stack else _of_api(arguments)
    path = write_config(config)
    _show(config, console)
    console.note(f"kept in {path}")
    if not config.key:
        console.note(_NO_KEY if config.store else "this API may need a key: --key-file")
    return 0


_NO_KEY = (
    "commands read the bucket with your AWS credentials; with a key they ask the API: "
    "ranklog keys create --scope read,write --name me | ranklog configure --stack … --key-file -"
)


def _of_stack(arguments: argparse.Namespace) -> Config:
    from ranklog.store.stack import read_stack

    found = read_stack(arguments.stack, region=arguments.region, profile=arguments.profile)
    return Config(
        api=found.api,
        store=found.store,
        stream=found.stream,
        stack=arguments.stack,
        region=found.region,
        profile=arguments.profile or "",
        key=_key(arguments.key_file),
    )


def _of_api(arguments: argparse.Namespace) -> Config:
    from urllib.parse import urlsplit

    if urlsplit(arguments.api).scheme not in ("http", "https"):
        raise BadInput(f"{arguments.api} is no address of an API", hint="https://host[:port]")
    if arguments.region or arguments.profile:
        raise BadInput("an API needs neither --region nor --profile", hint="they go with --stack")
    return Config(api=arguments.api.rstrip("/"), key=_key(arguments.key_file))


def _key(file: str | None) -> str:
    """The API's key in a file; it is nowhere on the command line, where others could see it."""
    if file is None:
        return ""
    try:
        text = sys.stdin.read() if file == STANDARD_INPUT else Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"can't read a key from {file}: {error}") from error
    key = text.strip()
    if not key or len(key.split()) != 1:
        raise BadInput("no key there", hint="what `ranklog keys create` printed, and nothing else")
    if key.startswith("rli_"):
        raise BadInput(
            "that is an ingest key, which seals frames", hint="RANKLOG_INGEST_KEY is for it"
        )
    return key


def _show(config: Config | None, console: Console) -> int:
    if config is None:
        console.note("nothing is configured; ranklog configure --stack NAME")
        return 1
    said = config.to_json()
    if console.json:
        console.object(said)
        return 0
    for name, value in said.items():
        if value is not None:
            console.line(f"{name:<8} {value if name != 'key' else f'(id {value})'}")
    return 0
