"""What changed in the manifests of two launches, as rows of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ranklog.answer.manifest_diff import Told, manifest_changes, missing_manifests
from ranklog.answer.runs import run_rows
from ranklog.client.manifests import load_manifests
from ranklog.client.search import Search


def manifest_rows(runs: Sequence[Search]) -> list[dict[str, Any]]:
    """One row per fact that differs. Notes of the first search say which run has no manifest."""
    told = [_told(run, runs[0]) for run in runs]
    runs[0].report.notes += missing_manifests(told)
    return [change.to_json() for change in manifest_changes(*told)]


def _told(run: Search, first: Search) -> Told:
    """The launch as a whole, whatever bounds the query has."""
    reader = run.reader
    [launch] = run.scope.launches or []
    loaded = load_manifests(reader.store, reader.tenant, [(launch.run, launch.launch)], whole=True)
    first.report.warnings += loaded.warnings
    first.report.bytes_read += loaded.bytes_read
    found = loaded.told[launch.run_id]
    [row] = run_rows(reader.catalog.entries(launch), reader.now_ns(), told={launch.run_id: found})
    return Told(row, found.manifest)
