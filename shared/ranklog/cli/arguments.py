"""From the words of a command line to values; help and docs/cli.md come from the same table."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Sequence
from typing import NoReturn

from ranklog.cli.commands import BY_NAME, COMMANDS, Command
from ranklog.errors import BadInput

_WIDTH = 98
EXIT_CODES = """exit codes:
  0  found, or the analysis ran
  1  nothing found, and the answer is complete
  2  error
  3  nothing found, but the answer is not complete
  4  with --exit-code: there is a difference"""

ENVIRONMENT = """environment:
  RANKLOG_STORE    the store, where neither --store nor --api is given
  RANKLOG_API      the API likewise; RANKLOG_API_KEY is its key
  XDG_CONFIG_HOME  where `ranklog configure` keeps its file: $XDG_CONFIG_HOME/ranklog, else ~/.config/ranklog
  XDG_DATA_HOME    where the local store is: $XDG_DATA_HOME/ranklog, else ~/.local/share/ranklog
  XDG_CACHE_HOME   where indexes of S3 stores are kept: $XDG_CACHE_HOME/ranklog, else ~/.cache/ranklog
  NO_COLOR         set: no colours
  RANKLOG_DEBUG    1: internal errors with their traceback"""


class _Parser(argparse.ArgumentParser):
    """Raises BadInput where argparse would print a usage and exit."""

    def error(self, message: str) -> NoReturn:
        raise BadInput(message, hint=f"{self.prog} --help lists the options")


def command_of(name: str) -> Command:
    """The command of that name; BadInput names the nearest."""
    found = BY_NAME.get(name)
    if found is not None:
        return found
    near = difflib.get_close_matches(name, BY_NAME, n=1)
    hint = f"did you mean {near[0]}?" if near else "ranklog --help lists the commands"
    raise BadInput(f"no command {name!r}", hint=hint)


def parser_of(command: Command) -> argparse.ArgumentParser:
    """One command's parser."""
    parser = _Parser(
        prog=f"ranklog {command.name}",
        description=f"{command.summary[0].upper()}{command.summary[1:]}.",
        epilog=f"example:\n  {command.example}" if command.example else None,
        formatter_class=_formatter,
        allow_abbrev=False,
    )
    for flag in command.flags:
        parser.add_argument(flag.name, **flag.settings)
    for word in command.words:
        many = {"nargs": "*"} if word.many else {}
        parser.add_argument(_destination(word.name), metavar=word.name, help=word.help, **many)  # type: ignore[arg-type]
    return parser


def _formatter(prog: str) -> argparse.HelpFormatter:
    # A fixed width: the help that is printed is the help in the docs.
    return argparse.RawDescriptionHelpFormatter(prog, max_help_position=26, width=_WIDTH)


def _destination(name: str) -> str:
    return f"{name.lower()}_words"


def parse(command: Command, words: Sequence[str]) -> argparse.Namespace:
    """Values by option name; words without dashes as `<name>_words`. Raises BadInput."""
    parser = parser_of(command)
    if command.query:
        return parser.parse_args(_sort(command, words))
    if "--" in words:  # parse_intermixed_args loses it
        return parser.parse_args(list(words))
    return parser.parse_intermixed_args(list(words))


def _sort(command: Command, words: Sequence[str]) -> list[str]:
    """Known options first, then `--`, then everything else: query text, in its order.

    argparse takes `-call_site:x` for an option; here only what is one in full is one.
    """
    known = {flag.name: flag for flag in command.flags}
    options: list[str] = []
    text: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            text.extend(rest)
            break
        name, equals, _ = word.partition("=")
        if word in ("-h", "--help"):
            options.append(word)
        elif name not in known or (equals and not known[name].takes_value):
            text.append(word)
        elif equals or not known[name].takes_value:
            options.append(word)
        elif known[name].optional is not None:
            given = bool(rest) and re.fullmatch(known[name].optional or "", rest[0])
            options.append(f"{word}={rest.pop(0)}" if given else word)
        elif not rest:
            raise BadInput(f"{word} needs a value", hint=f"for a query, write -- {word}")
        else:
            options.append(f"{word}={rest.pop(0)}")
    return [*options, "--", *text]


def names_of(text: str | None) -> list[str]:
    """Names that commas stand between."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def query_text(arguments: argparse.Namespace) -> str:
    """The query's words joined by blanks."""
    return " ".join(arguments.query_words)


def main_help() -> str:
    """What `ranklog --help` prints."""
    width = max(len(command.name) for command in COMMANDS)
    lines = [
        "usage: ranklog COMMAND [options]",
        "",
        "A serverless, multitenant logging engine for distributed AI training.",
        "",
        "commands:",
        *(f"  {command.name:<{width}}  {command.summary}" for command in COMMANDS),
        "",
        EXIT_CODES,
        "",
        ENVIRONMENT,
        "",
        "ranklog COMMAND --help lists a command's options.",
    ]
    return "\n".join(lines) + "\n"


def reference() -> str:
    """docs/cli.md, made from the help texts."""
    parts = [
        "# Command line",
        "",
        "Made from `--help` by `python -m ranklog.cli.reference`; a test keeps it up to date.",
        "",
        "```",
        main_help().rstrip(),
        "```",
    ]
    for command in COMMANDS:
        text = parser_of(command).format_help().rstrip()
        parts += ["", f"## ranklog {command.name}", "", "```", text, "```"]
    return "\n".join(parts) + "\n"
