"""What processes say of their run lies beside its hours, once, whatever came with it."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence

import pytest

from ranklog.ingest.batch import Record, ingest_batch
from ranklog.model.frame import FrameStream
from ranklog.model.manifest import encode_piece
from ranklog.store.memory import MemoryStore
from ranklog.stream.frames import encode_frame
from tests.ingest.frames import T0, Row, make_frame, stream

PIECE = {"owner": "ada", "config": {"lr": 0.1}}


def put(store: MemoryStore, sequence: str, rows: Sequence[Row], *named: FrameStream) -> int:
    """Ingest one frame; how many frames went to quarantine."""
    record = Record(encode_frame(make_frame(rows, streams=named)), T0, sequence)
    places = {"source": "s", "first": sequence, "last": sequence}
    return len(ingest_batch([record], store=store, **places).bad)


def manifests(store: MemoryStore) -> dict[str, dict[str, object]]:
    found = store.list("acme/runs/llama/17/manifests/")
    names = [item.key for item in found]
    return {name.rpartition("/")[2]: json.loads(store.get(name)) for name in names}


def test_a_piece_is_stored_under_its_rank_attempt_and_hash() -> None:
    store = MemoryStore()
    with_piece = FrameStream(stream(3), 0, 0, manifests=(encode_piece(PIECE),))

    assert put(store, "1", [Row("step 1")], with_piece) == 0
    [(name, piece)] = manifests(store).items()
    assert piece == PIECE
    assert name.startswith("0.3.")


def test_a_piece_that_comes_twice_is_stored_once() -> None:
    store = MemoryStore()
    with_piece = FrameStream(stream(3), 0, 0, manifests=(encode_piece(PIECE),))

    put(store, "1", [Row("step 1")], with_piece)
    put(store, "2", [], with_piece)
    assert len(manifests(store)) == 1


def test_a_process_without_a_rank_is_named_by_its_host() -> None:
    store = MemoryStore()

    put(store, "1", [], FrameStream(stream(None), 0, 0, manifests=(encode_piece(PIECE),)))
    assert [name.split(".")[:2] for name in manifests(store)] == [["0", "gpu-1"]]


@pytest.mark.parametrize("piece", [b"no zlib", zlib.compress(b"[1]")])
def test_a_frame_with_a_broken_piece_is_set_aside_whole(piece: bytes) -> None:
    store = MemoryStore()

    assert put(store, "1", [Row("x")], FrameStream(stream(3), 0, 0, manifests=(piece,))) == 1
    assert list(store.list("acme/index/")) == []
    assert manifests(store) == {}
