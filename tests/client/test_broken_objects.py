"""Segments and indexes that are cut, gone, exchanged or at odds with themselves: never an error, never
another answer that claims to be whole."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ranklog.client import Client
from ranklog.layout import build, filters, order
from ranklog.layout.index import SegmentIndex
from ranklog.store.memory import MemoryStore
from tests.corpus_lines import BOUNDS, TENANT, random_corpus

SECTIONS = [
    b"head",
    b"tmpl",
    b"site",
    b"blom",
    b"sums",
    b"gram",
    b"vars",
    b"fram",
]
HEAD, SECTION = struct.Struct("<4sHHI"), struct.Struct("<4sIII")

Ask = Callable[[Client], tuple[Any, list[dict[str, Any]]]]


def told(answer: Any) -> tuple[Any, list[dict[str, Any]]]:
    """What an answer says, and what it could not read."""
    lines, rows = getattr(answer, "lines", None), getattr(answer, "rows", None)
    said = repr([lines, rows, getattr(answer, "count", None)])
    return said, answer.completeness.skipped_tasks


QUESTIONS: list[Ask] = [
    lambda c: told(c.search("", limit=None, order="oldest", **BOUNDS)),
    lambda c: told(c.search("4fa1c07", limit=None, **BOUNDS)),
    lambda c: told(c.search(r"/\b4fa1c07b92de\b/", limit=None, **BOUNDS)),
    lambda c: told(c.search("1234567", explain=True, **BOUNDS)),
    lambda c: told(c.search(r"/\d{5} \w+/", limit=3, context=1, **BOUNDS)),
    lambda c: told(c.search("loss OR rank:1", limit=4, full_scan=True, **BOUNDS)),
    lambda c: told(c.count("", by=["rank", "level"], **BOUNDS)),
    lambda c: told(c.count("level>=INFO", by=["call_site"], every="10m", **BOUNDS)),
    lambda c: told(c.callsites("", **BOUNDS)),
    lambda c: told(c.patterns("", **BOUNDS)),
]


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryStore]:
    """Several segments of several row groups, with every section that an index may have."""
    monkeypatch.setattr(order, "ROW_GROUP_ROWS", 8)
    monkeypatch.setattr(order, "RARE_ROWS_MAX", 2)
    for module in (build, filters):
        monkeypatch.setattr(module, "GRAMS_TEXT_BYTES_MIN", 0)
    found = MemoryStore()
    random_corpus(11, batches=3, rows=60, ids=True).ingest(found)
    yield found


def keys(store: MemoryStore, kind: str) -> list[str]:
    return [item.key for item in store.list(f"{TENANT}/{kind}/")]


def write(store: MemoryStore, key: str, data: bytes | None) -> None:
    """Other bytes under the same name, or none, as a bucket that fails would give."""
    if data is None:
        store.delete(key)
    else:
        store._objects[key] = (data, store._objects[key][1])


def ask_all(store: MemoryStore) -> list[tuple[Any, list[dict[str, Any]]]]:
    """Each of a client that remembers nothing."""
    return [ask(Client(store=store, tenant=TENANT)) for ask in QUESTIONS]


def assert_told(
    store: MemoryStore, key: str, whole: list[tuple[Any, list[dict[str, Any]]]], *, always: bool
) -> None:
    """Each answer is the whole one, or names the key; `always`: all of them do."""
    for (said, skipped), (wanted, _) in zip(ask_all(store), whole, strict=True):
        if skipped:
            assert [item["segment"] for item in skipped] == [key]
            assert skipped[0]["reason"]
        else:
            assert said == wanted and not always


@pytest.mark.parametrize("kind", ["data", "index"])
def test_what_is_cut_is_named(store: MemoryStore, kind: str) -> None:
    whole, rng = ask_all(store), random.Random(3)
    assert not any(skipped for _, skipped in whole)
    for key in keys(store, kind):
        data = store.get(key)
        for size in (0, 3, rng.randrange(12, len(data)), len(data) - 9, len(data) - 1):
            write(store, key, data[:size])
            assert_told(store, key, whole, always=kind == "index")
        write(store, key, data)
    assert ask_all(store) == whole


def test_a_segment_that_is_gone_or_another_one_is_named(store: MemoryStore) -> None:
    whole, segments = ask_all(store), keys(store, "data")
    for key, other in zip(segments, [*segments[1:], segments[0]], strict=True):
        data = store.get(key)
        for instead in (None, store.get(other), b"PAR1" + bytes(len(data) - 8) + b"PAR1"):
            write(store, key, instead) if instead is not None else write(store, key, None)
            assert_told(store, key, whole, always=False)
            store.put(key, data)
    assert ask_all(store) == whole


def sections_of(data: bytes) -> dict[bytes, bytes]:
    _, _, count, _ = HEAD.unpack_from(data)
    table = SECTION.iter_unpack(data[HEAD.size : HEAD.size + count * SECTION.size])
    return {tag: data[at : at + length] for tag, at, length, _ in table}


def joined(sections: dict[bytes, bytes], version: int) -> bytes:
    """An index of these sections, whose sums are right."""
    at, table = HEAD.size + SECTION.size * len(sections), b""
    for tag, data in sections.items():
        table += SECTION.pack(tag, at, len(data), zlib.crc32(data))
        at += len(data)
    check = zlib.crc32(struct.pack("<HH", version, len(sections)) + table)
    return b"".join([HEAD.pack(b"RLIX", version, len(sections), check), table, *sections.values()])


@pytest.mark.parametrize("tag", SECTIONS)
def test_a_flipped_bit_in_any_section_of_an_index_is_named(store: MemoryStore, tag: bytes) -> None:
    whole = ask_all(store)
    key = next(key for key in keys(store, "index") if tag in sections_of(store.get(key)))
    data = store.get(key)
    section = sections_of(data)[tag]
    at = data.index(section) + len(section) // 2
    write(store, key, data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :])
    assert_told(store, key, whole, always=True)


@pytest.mark.parametrize("tag", SECTIONS[1:])
def test_an_index_at_odds_with_itself_raises_nothing(store: MemoryStore, tag: bytes) -> None:
    """A section of another index, or junk, written as if it belonged there: sums can't tell."""
    found = {key: sections_of(store.get(key)) for key in keys(store, "index")}
    found = {key: sections for key, sections in found.items() if tag in sections}
    by_templates = sorted(found, key=lambda key: len(found[key][b"tmpl"]))
    key, other = by_templates[0], by_templates[-1]
    version = SegmentIndex.open(store.get(key), key).version
    short = min(found.values(), key=lambda sections: len(sections[tag]))[tag]
    for instead in (found[other][tag], short, b"", b"\x00" * 40, found[key][b"head"]):
        write(store, key, joined(found[key] | {tag: instead}, version))
        for _, skipped in ask_all(store):
            assert {item["segment"] for item in skipped} <= {key, *keys(store, "data")}
