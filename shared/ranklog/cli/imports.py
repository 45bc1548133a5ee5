"""`ranklog import`: existing log files into a store."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ranklog.answer.render import render_time
from ranklog.cli.console import Console
from ranklog.cli.progress import Progress
from ranklog.cli.scope import FOUND
from ranklog.cli.source import open_store_of, refuse_empty, refuse_names
from ranklog.cli.tables import print_table, shown_bytes, shown_ranks
from ranklog.errors import BadInput

if TYPE_CHECKING:
    from ranklog.importer.report import FileReport, ImportReport

FAILED = 2
_REMARKS_SHOWN = 20


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Import, say what each file was taken for. 2 if a file could not be imported."""
    if not arguments.path_words:
        raise BadInput("import what?", hint="name files, folders, or - for standard input")
    refuse_empty(arguments, "run", "launch")
    if arguments.run is None:
        lacking = [path for path in arguments.path_words if path != "-" and not Path(path).exists()]
        also = f"; and there is no {lacking[0]}" if lacking else ""
        raise BadInput(f"an import needs the name of its run{also}", hint="--run NAME")
    refuse_names(arguments)
    if arguments.rank is not None and arguments.rank_from is not None:
        raise BadInput("--rank and --rank-from both name the rank", hint="give one of them")
    store, tenant = open_store_of(arguments, create=True)
    from ranklog.importer import import_paths

    progress = Progress(quiet=console.json)
    try:
        report = import_paths(
            arguments.path_words,
            store=store,
            tenant=tenant,
            run=arguments.run,
            launch=arguments.launch,
            rank=arguments.rank,
            rank_from=arguments.rank_from,
            preset=arguments.preset,
            tz=arguments.tz,
            date=arguments.date,
            stdin=sys.stdin.buffer if sys.stdin else None,
            progress=lambda file: progress.show(f"{file.path}: {file.lines:,} lines"),
            now_ns=time.time_ns(),
        )
    finally:
        progress.close()
    if console.json:
        _print_objects(console, report)
    else:
        _show(console, report)
    return FAILED if report.errors else FOUND


def _print_objects(console: Console, report: ImportReport) -> None:
    shown = report.to_json()
    for file in shown.pop("files", []):
        times = {name: file[f"{name}_ns"] for name in ("first", "last")}
        console.object(
            file | {k: None if ns is None else render_time(ns) for k, ns in times.items()}
        )
    console.object({"report": shown})


def _show(console: Console, report: ImportReport) -> None:
    rows = [
        [
            file.path,
            file.lines,
            file.stored,
            _ranks(file),
            file.channel,
            file.attempt,
            ", ".join(file.presets[:3]) or None,
            "copy" if file.copy else "",
        ]
        for file in report.files
        if not file.error or file.lines
    ]
    if rows:
        heads = ["file", "lines", "new", "rank", "channel", "attempt", "format", ""]
        print_table(console, heads, rows, wide=0, keep_end=True)
    # What a file was taken for is news where it brought some.
    remarks = [
        f"{file.path}: {text}"
        for file in report.files
        if file.stored + file.refused
        for text in file.notes
    ]
    for remark in (remarks + report.notes)[:_REMARKS_SHOWN]:
        console.note(remark)
    if (more := len(remarks) + len(report.notes) - _REMARKS_SHOWN) > 0:
        console.note(f"{more} more remarks: --json has all, in the files' notes")
    refused = f", {report.refused:,} refused: older than is kept" if report.refused else ""
    known = f", {report.known:,} known before" if report.known else ""
    console.line(
        f"{report.run_id}: {report.stored:,} lines stored{refused}{known} "
        f"({shown_bytes(report.bytes)} in {_files(len(report.files) - len(report.errors))})"
    )
    for file in report.errors:
        console.note(f"not imported: {file.error}")


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count} files"


def _ranks(file: FileReport) -> str | None:
    if file.rank is not None:
        return str(file.rank)
    return shown_ranks(file.ranks) if file.ranks else None
