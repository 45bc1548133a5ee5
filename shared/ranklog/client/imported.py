"""What imports of a launch have said is stored: a file whose every index is gone is in no index.

Producers tell each other apart by ranks and go on to speak; a file that was imported is named nowhere
else but in the record of its import.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ranklog.answer.completeness import Window
from ranklog.client.catalog import Launch
from ranklog.errors import NotFound, RanklogError
from ranklog.layout import keys
from ranklog.layout.import_record import DONE, Known, decode_record
from ranklog.layout.index import SegmentIndex
from ranklog.model.index import StreamEntry
from ranklog.store.protocol import Store

# The newest of a launch: each batch of an import writes one, which tells of all its files' rows so far.
# What older ones alone tell of is not missed.
_RECORDS_MAX = 64
_IMPORT = "import"
# The importer's channel of files of points.
_POINTS = "telemetry"


@dataclass(slots=True)
class Promised:
    """Streams with fences and without lines; records that can't be read, as {"segment", "reason"}."""

    entries: list[StreamEntry] = field(default_factory=list)
    failed: list[dict[str, str]] = field(default_factory=list)


def may_be_imported(indexes: Iterable[SegmentIndex]) -> bool:
    """Whether one of them is of an import, whose streams are all alike; or there is none at all."""
    firsts = [index.head.streams[0] for index in indexes if index.head.streams]
    return not firsts or any(entry.stream.certified == _IMPORT for entry in firsts)


def load_promised(
    store: Store, tenant: str, launches: Iterable[Launch], window: Window, *, points: bool
) -> Promised:
    """Of files that were imported into these launches and have lines in the window; `points`: of files of
    points as well."""
    found = Promised()
    files: dict[str, Known] = {}
    for launch in launches:
        prefix = keys.imports_prefix(tenant, launch.run, launch.launch)
        names = sorted(item.key for item in store.list(prefix))
        for name in [one for one in names if one.endswith(f".{DONE}.json")][-_RECORDS_MAX:]:
            try:
                known = list(decode_record(store.get(name), name))
            except NotFound:
                continue  # deleted since it was listed
            except RanklogError as error:
                found.failed.append({"segment": name, "reason": error.message})
                continue
            for one in known:
                before = files.get(one.stream.stream_id)
                if before is None or before.rows <= one.rows:
                    files[one.stream.stream_id] = one
    found.entries = [
        StreamEntry(one.stream, name, 0, 0, None, None, (), fences=one.fences)
        for name, one in files.items()
        if any(window.has(fence.hour) for fence in one.fences)
        and (points or one.stream.channel != _POINTS)
    ]
    return found
