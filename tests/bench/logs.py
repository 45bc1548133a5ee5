"""`python -m tests.bench.logs`: real logs imported as one run, against `zstd -3` of the bare files.

    python -m tests.bench.logs [--data ../shared/data/logs]

The store is in memory. The files are compressed as one stream, in the order of their names. Small segments pay
for their footers, indexes and templates with few lines: this is what the figure is for.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

import zstandard

from ranklog.importer import import_paths
from ranklog.layout import keys
from ranklog.store.memory import MemoryStore
from tests.bench.figures import Figure, show
from tests.conftest import DATA

LOGS = DATA / "logs"
_TENANT = "bench"
_NOW_NS = 4_102_444_800 * 10**9  # later than any line: 2100-01-01


def measure(folder: Path) -> list[Figure]:
    """Size of what an import of the folder stores."""
    store = MemoryStore()
    report = import_paths([str(folder)], store=store, tenant=_TENANT, run="logs", now_ns=_NOW_NS)
    segments = _stored(store, keys.tenant_prefix(_TENANT) + "data/")
    indexes = _stored(store, keys.index_prefix(_TENANT))
    bare = _zstd_bytes(path for path in sorted(folder.rglob("*")) if path.is_file())
    return [
        Figure("real logs, lines", report.lines),
        Figure(
            "real logs, stored against zstd -3 of the files", (segments + indexes) / bare, "", 1.25
        ),
        Figure("real logs, indexes against segments", indexes / segments, "", 0.12),
    ]


def _stored(store: MemoryStore, prefix: str) -> int:
    return sum(len(store.get(info.key)) for info in store.list(prefix))


def _zstd_bytes(paths: Iterable[Path]) -> int:
    compress = zstandard.ZstdCompressor(level=3).compressobj()
    parts = [len(compress.compress(path.read_bytes())) for path in paths]
    return sum(parts) + len(compress.flush())


def main() -> int:
    """Import, print, keep nothing."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=LOGS)
    show(measure(parser.parse_args().data))
    return 0


if __name__ == "__main__":
    sys.exit(main())
