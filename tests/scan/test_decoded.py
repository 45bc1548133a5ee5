"""What was unpacked is kept within its room, and a question that comes again unpacks nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ranklog.layout import order
from ranklog.plan.parse import parse_query
from ranklog.plan.tasks import Lines, Outcome
from ranklog.scan import columns, direct
from ranklog.scan.decoded import ENTRY_BYTES, Decoded
from ranklog.scan.engine import shared_engine
from ranklog.scan.evaluate import opened
from ranklog.store.disk import DiskStore
from ranklog.store.memory import MemoryStore
from tests.corpus_lines import random_corpus
from tests.ingest.frames import T0
from tests.scan.test_evaluate import planned

EIGHT = pa.array([7])  # eight bytes
ROOM = 8 * (8 + ENTRY_BYTES)


def kept(decoded: Decoded, keys: str) -> str:
    return "".join(key for key in keys if decoded.get(key) is not None)


def test_the_least_recently_used_goes_first() -> None:
    decoded = Decoded(bytes_max=ROOM)
    for key in "abcdefgh":
        decoded.put(key, EIGHT)
    assert kept(decoded, "abcdefgh") == "abcdefgh"
    assert decoded.get("a") is EIGHT
    decoded.put("i", EIGHT)
    assert kept(decoded, "bcdefghai") == "cdefghai"


def test_what_is_put_again_counts_once() -> None:
    decoded = Decoded(bytes_max=ROOM)
    for key in "aabbccddeeffgghh":
        decoded.put(key, EIGHT)
    assert kept(decoded, "abcdefgh") == "abcdefgh"


def test_what_would_take_much_of_the_room_is_not_kept() -> None:
    decoded = Decoded(bytes_max=ROOM)
    decoded.put("large", pa.array([7, 8]))
    assert decoded.get("large") is None


@pytest.mark.parametrize("small", [True, False])
def test_a_question_that_comes_again_unpacks_nothing(
    small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(order, "ROW_GROUP_ROWS", 9)
    if not small:
        monkeypatch.setattr(direct, "_WHOLE_ROWS_MAX", 0)
    fresh, parts, read = Decoded(), [], columns.Columns._read
    for module in (columns, direct):
        monkeypatch.setattr(module, "DECODED", fresh)
    unpack = direct._Reading._unpack

    def counted(self: Any, pages: Any) -> Any:
        parts.extend(pages)
        return unpack(self, pages)

    def counted_columns(self: Any, names: Any) -> Any:
        parts.extend(names)
        return read(self, names)

    monkeypatch.setattr(direct._Reading, "_unpack", counted)
    monkeypatch.setattr(columns.Columns, "_read", counted_columns)
    store = MemoryStore()
    random_corpus(5, batches=1, rows=60).ingest(store)
    task = planned(store, Lines(limit=None), parse_query("level>=INFO", now_ns=T0).expr)
    (scan, *_) = task.segments
    answers = []
    for _ in range(2):
        parts.clear()
        with opened(scan, store, shared_engine(), Outcome()) as (_, item):
            assert item is not None
            answers.append(direct.read_few(task, scan, item))
        answers.append(len(parts))
    first, unpacked, again, unpacked_again = answers
    assert repr(first) == repr(again) and first
    assert unpacked and not unpacked_again


def test_what_is_kept_whole_needs_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = DiskStore(tmp_path / "store")
    random_corpus(6, batches=1, rows=60).ingest(store)
    task = planned(store, Lines(limit=None), parse_query("level>=INFO", now_ns=T0).expr)
    (scan, *_) = task.segments
    path = str(store.local_path(scan.key))
    first = direct.read_few(task, scan, path)

    def refuse(source: str) -> None:
        raise AssertionError(f"{source} is opened once more")

    monkeypatch.setattr(pa, "OSFile", refuse)
    assert first and repr(direct.read_few(task, scan, path)) == repr(first)
