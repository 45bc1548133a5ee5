"""Compaction of a tenant, folder by folder: merge, bundle, delete what has had its grace."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from ranklog.compact.bundles import bundle, bundles
from ranklog.compact.choose import merges
from ranklog.compact.cleanup import doomed
from ranklog.compact.contents import Folder, Known, folders, read_contents
from ranklog.compact.lease import lease, this_process
from ranklog.compact.merge import merge
from ranklog.compact.orphans import delete_orphan, old_pointers, old_usage, orphans
from ranklog.compact.pins import Pinned, read_pins
from ranklog.compact.streams import Hidden, nothing_hidden
from ranklog.errors import Corrupt
from ranklog.store.protocol import Store


@dataclass(slots=True)
class CompactReport:
    """Counts of objects; `merged` and `bundled`: indexes that went into `merges` and `bundles` new
    objects. `busy`: folders that somebody else is at. `failed`: what can't be read, and why.
    `stopped_after`: the last folder that was reached, where time was up; "" where all were."""

    folders: int = 0
    busy: int = 0
    merges: int = 0
    merged: int = 0
    bundles: int = 0
    bundled: int = 0
    rows: int = 0
    dropped: int = 0
    deleted: int = 0
    orphans: int = 0
    pinned: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    stopped_after: str = ""

    def to_json(self) -> dict[str, Any]:
        """As a program sees it."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True, slots=True)
class Compactor:
    """`hidden`: deleted rows of a stream, which merges leave out. `dry_run`: only count. `owner`: whose
    leases are."""

    store: Store
    tenant: str
    now_ns: int
    hidden: Hidden = nothing_hidden
    dry_run: bool = False
    owner: str = field(default_factory=this_process)

    def run(
        self,
        hours: Iterable[int] | None = None,
        *,
        after: str = "",
        has_time: Callable[[], bool] = lambda: True,
    ) -> CompactReport:
        """One pass over every folder, or over those of some event hours; `after` goes on where a pass
        stopped because there was no time for a folder more."""
        report = CompactReport()
        pinned = read_pins(self.store, self.tenant)
        wanted = None if hours is None else set(hours)
        for folder in self._folders(every=wanted is None):
            if folder.index_prefix <= after or not (wanted is None or folder.hour in wanted):
                continue
            if report.folders and not has_time():
                return report
            self._folder(folder, pinned, report)
            report.stopped_after = folder.index_prefix
        report.stopped_after = ""
        if wanted is None:
            self._old(report)
        return report

    def _folders(self, *, every: bool) -> list[Folder]:
        """Those that hold an index, and where `every` is asked for those that hold a segment alone, whose index
        was never put. In order of `index_prefix`."""
        found = set(folders(self.store, self.tenant))
        if every:
            found |= set(folders(self.store, self.tenant, kind="data"))
        return sorted(found, key=lambda folder: folder.index_prefix)

    def _folder(self, folder: Folder, pinned: Pinned, report: CompactReport) -> None:
        report.folders += 1
        if self.dry_run:
            self._work(folder, pinned, report)
            return
        with lease(self.store, folder, self.now_ns, self.owner) as taken:
            if taken:
                self._work(folder, pinned, report)
            else:
                report.busy += 1

    def _work(self, folder: Folder, pinned: Pinned, report: CompactReport) -> None:
        known: Known = {}
        self.merge(folder, report, known)
        self.bundle(folder, report, known)
        self.clean(folder, pinned, report, known)

    def merge(self, folder: Folder, report: CompactReport, known: Known | None = None) -> None:
        """Level 1. `known`: indexes that this pass has read."""
        for contents in read_contents(self.store, folder, known):
            report.failed |= contents.failed
            for group in merges(contents, self.now_ns, self.hidden):
                report.merges += 1
                report.merged += len(group)
                if self.dry_run:
                    continue
                try:
                    made = merge(self.store, contents, group, self.hidden)
                except Corrupt as error:
                    report.failed[group[0].key] = error.message
                    continue
                report.failed |= made.failed
                report.rows += made.rows
                report.dropped += made.hidden

    def bundle(self, folder: Folder, report: CompactReport, known: Known | None = None) -> None:
        """Level 0."""
        for contents in read_contents(self.store, folder, known):
            for group in bundles(contents, self.now_ns):
                report.bundles += 1
                report.bundled += sum(len(held.indexes) for held in group)
                if not self.dry_run:
                    bundle(self.store, contents, group)

    def clean(
        self, folder: Folder, pinned: Pinned, report: CompactReport, known: Known | None = None
    ) -> None:
        """Delete what has had its grace, and orphans by age."""
        listed = list(self.store.list(folder.data_prefix))
        contents = read_contents(self.store, folder, known)
        lengths = {info.key: info.length for info in listed}
        found = doomed(contents, lengths, pinned, self.now_ns)
        report.pinned += len(found.kept)
        lost = orphans(listed, contents, pinned.segments, self.now_ns)
        for key in (*found.indexes, *found.segments):
            report.deleted += self._delete(key)
        for key in lost:
            gone = self.dry_run or delete_orphan(self.store, folder, key, self.now_ns)
            report.orphans += gone

    def _old(self, report: CompactReport) -> None:
        for old in (old_pointers, old_usage):
            for key in old(self.store, self.tenant, self.now_ns):
                report.deleted += self._delete(key)

    def _delete(self, key: str) -> int:
        if not self.dry_run:
            self.store.delete(key)
        return 1
