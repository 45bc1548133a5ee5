"""Frames are sealed as they are sent, with the key that is there then."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ranklog.access.key_text import INGEST, new_key
from ranklog.agent.sealing import sealed
from ranklog.agent.sinks import TAKEN, Frame, Outcome, open_sink
from ranklog.errors import BadInput, Unavailable
from ranklog.stream.disk import DiskStream
from ranklog.stream.frames import encode_frame, frame_is_sealed_by
from tests.ingest.frames import Row, make_frame, stream

FRAME = encode_frame(make_frame([Row("a")]))


class Kept:
    """A sink that keeps what it is given."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []

    def put_all(self, frames: Sequence[Frame]) -> list[Outcome]:
        self.frames += frames
        return [TAKEN] * len(frames)


def test_without_a_key_frames_go_as_they_are() -> None:
    sink = Kept()
    assert sealed(sink, {}) is sink


def test_with_a_key_each_frame_has_its_mac() -> None:
    key, sink = new_key(INGEST, "acme"), Kept()
    assert sealed(sink, {"RANKLOG_INGEST_KEY": key.render()}).put_all([("p", FRAME)]) == [TAKEN]
    [(name, data)] = sink.frames
    assert name == "p"
    assert frame_is_sealed_by(data, key.secret)


def test_a_key_in_a_file_can_be_replaced_under_a_running_agent(tmp_path: Path) -> None:
    first, second, sink = new_key(INGEST, "acme"), new_key(INGEST, "acme"), Kept()
    path = tmp_path / "key"
    path.write_text(first.render() + "\n")
    sealing = sealed(sink, {"RANKLOG_INGEST_KEY_FILE": str(path)})
    sealing.put_all([("p", FRAME)])
    other = tmp_path / "new"
    other.write_text(second.render() + "\n")
    other.replace(path)
    sealing.put_all([("p", FRAME)])
    assert frame_is_sealed_by(sink.frames[0][1], first.secret)
    assert frame_is_sealed_by(sink.frames[1][1], second.secret)


def test_while_the_file_is_away_frames_wait_and_none_goes_without_a_mac(tmp_path: Path) -> None:
    path, sink = tmp_path / "key", Kept()
    path.write_text(new_key(INGEST, "acme").render())
    sealing = sealed(sink, {"RANKLOG_INGEST_KEY_FILE": str(path)})
    path.unlink()
    [outcome] = sealing.put_all([("p", FRAME)])
    assert isinstance(outcome.error, Unavailable)
    assert sink.frames == []


def test_a_frame_that_was_damaged_on_the_disk_goes_as_it_is() -> None:
    sink = Kept()
    key = new_key(INGEST, "acme").render()
    sealed(sink, {"RANKLOG_INGEST_KEY": key}).put_all([("p", b"junk")])
    assert sink.frames == [("p", b"junk")]


def test_a_frame_of_another_tenant_is_refused_with_the_reason_and_holds_up_nobody() -> None:
    key, sink = new_key(INGEST, "acme"), Kept()
    other = encode_frame(
        make_frame([Row("b", stream=stream(tenant="umbrella"))], tenant="umbrella")
    )
    sealing = sealed(sink, {"RANKLOG_INGEST_KEY": key.render()})
    first, refused, last = sealing.put_all([("p", FRAME), ("q", other), ("r", FRAME)])
    assert (first, last) == (TAKEN, TAKEN)
    assert isinstance(refused.error, BadInput)
    assert refused.error.message == "a frame of tenant 'umbrella', and the ingest key is of 'acme'"
    assert refused.error.hint == (
        "it stays of 'umbrella': `ranklog replay` with a key of that tenant, or without a key where it requires "
        "none; RANKLOG_TENANT=acme is for lines that are still to come"
    )
    assert [name for name, _ in sink.frames] == ["p", "r"]


def test_an_api_is_told_by_its_own_key_whose_a_frame_is() -> None:
    key, sink = new_key(INGEST, "umbrella"), Kept()
    sealing = sealed(sink, {"RANKLOG_INGEST_KEY": key.render()}, proves=False)
    assert sealing.put_all([("p", FRAME)]) == [TAKEN]


@pytest.mark.parametrize(
    "environ",
    [
        {"RANKLOG_INGEST_KEY": "secret"},
        {"RANKLOG_INGEST_KEY_FILE": "/nowhere"},
        {"RANKLOG_INGEST_KEY": "a", "RANKLOG_INGEST_KEY_FILE": "b"},
    ],
)
def test_a_key_that_is_none_is_an_error_at_the_start(environ: dict[str, str]) -> None:
    with pytest.raises(BadInput):
        sealed(Kept(), environ)


def test_a_stream_on_disk_gets_sealed_frames(tmp_path: Path) -> None:
    key = new_key(INGEST, "acme")
    sink = open_sink(str(tmp_path / "s"), {"RANKLOG_INGEST_KEY": key.render()})
    assert sink.put_all([("p", FRAME)]) == [TAKEN]
    [record] = DiskStream(tmp_path / "s").read("")
    assert frame_is_sealed_by(record.data, key.secret)
