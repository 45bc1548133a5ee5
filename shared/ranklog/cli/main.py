"""The program: find the command, parse its words, run it, turn errors into one line and a code."""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import sys
import traceback
from collections.abc import Sequence

from ranklog._version import VERSION
from ranklog.cli.arguments import command_of, main_help, parse
from ranklog.cli.console import Console
from ranklog.errors import BadInput, RanklogError

_GARBAGE_THRESHOLDS = (200_000, 20, 100)
ERROR = 2
INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    if argv is None:
        # Indexes are hundreds of thousands of objects without cycles: looking through them again and
        # again takes an eighth of a search.
        gc.set_threshold(*_GARBAGE_THRESHOLDS)
    words = list(sys.argv[1:] if argv is None else argv)
    console = Console(json="--json" in words[: words.index("--") if "--" in words else None])
    try:
        code = _run(words, console)
        console.close()
        return code
    except RanklogError as error:
        console.error(error)
        return ERROR
    except KeyboardInterrupt:
        console.close()
        return INTERRUPTED
    except BrokenPipeError:
        console.abandon()
        return 0
    except OSError as error:
        if os.environ.get("RANKLOG_DEBUG") == "1":
            traceback.print_exc()
        console.error(_refused(error))
        return ERROR
    except Exception as error:
        if os.environ.get("RANKLOG_DEBUG") == "1":
            traceback.print_exc()
        console.error(_internal(error))
        return ERROR


def _run(words: list[str], console: Console) -> int:
    if len(words) > 1 and words[0] == "help":
        words = [words[1], "--help"]
    if not words or words[0] in ("-h", "--help", "help"):
        console.write(main_help())
        return 0 if words else ERROR
    if words[0] == "--version":
        console.write(f"ranklog {VERSION}\n")
        return 0
    command = command_of(words[0])
    try:
        arguments: argparse.Namespace = parse(command, words[1:])
    except SystemExit as stop:  # argparse has printed the help
        return int(stop.code or 0)
    code: int = importlib.import_module(command.module).run(arguments, console)
    return code


def _refused(error: OSError) -> RanklogError:
    """What the operating system would not do: no bug of ours."""
    where = f"{error.filename}: " if error.filename else ""
    return BadInput(f"{where}{(error.strerror or str(error)).lower()}")


def _internal(error: Exception) -> RanklogError:
    """Our bug, or a dependency that is not installed: one line either way."""
    if isinstance(error, ModuleNotFoundError) and not (error.name or "").startswith("ranklog"):
        return BadInput(
            f"this command needs {error.name}, which is not installed",
            hint="pip install 'ranklog[all]'",
        )
    text = " ".join(str(error).split()) or "no message"
    return RanklogError(
        f"internal error: {type(error).__name__}: {text}",
        hint="RANKLOG_DEBUG=1 shows where; please report it",
    )


if __name__ == "__main__":
    sys.exit(main())
