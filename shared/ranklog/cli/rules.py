"""`ranklog rules check FILE`: are the rules good, and what do they extract?"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ranklog.cli.console import Console
from ranklog.errors import BadInput

if TYPE_CHECKING:
    from ranklog.rules.checks import RuleReport

# Lines of a sample file that are tried.
SAMPLE_LINES_MAX = 10_000


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Validate, try on sample lines, print. A rule that is refused is an error."""
    if arguments.check_words != "check":
        raise BadInput(f"no action {arguments.check_words!r}", hint="ranklog rules check FILE")
    from ranklog.rules import check, load_rules

    rules = load_rules(Path(arguments.file_words))
    samples = None if arguments.sample is None else _samples(Path(arguments.sample))
    report = check(rules, samples)
    if console.json:
        found = report.to_json()
        for line in found.pop("lines"):
            console.object(line)
        console.object({"report": found})
    else:
        _show(console, report)
    return 0


def _samples(path: Path) -> list[str]:
    try:
        text = path.read_text("utf-8", errors="replace")
    except OSError as error:
        raise BadInput(f"can't read samples from {path}: {error.strerror}") from error
    return text.removesuffix("\n").split("\n")[:SAMPLE_LINES_MAX]


def _show(console: Console, report: RuleReport) -> None:
    for line in report.lines:
        console.line(console.paint(console.safe(line.text), None if line.rules else "dim"))
        for name, value in line.values.items():
            kind, _, key = name.partition(":")
            console.line(f"    {key} = {console.safe(str(value))} ({kind})")
        if line.rules:
            console.line(console.paint(f"    by {', '.join(line.rules)}", "dim"))
    matched = sum(bool(line.rules) for line in report.lines)
    console.line(f"{report.rules} rules are good; {matched} of {len(report.lines)} lines matched")
    if report.unused:
        console.note(f"no sample matches {', '.join(report.unused)}")
    for name, at in report.hidden.items():
        console.note(f"{name}: its literals hide sample line {at + 1}, which its pattern matches")
    for name, reason in report.failed.items():
        console.note(f"{name}: {reason}")
