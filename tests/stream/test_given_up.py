"""Batches that were given up go back into the stream, whole, once each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ranklog.errors import Corrupt
from ranklog.store.memory import MemoryStore
from ranklog.stream.frames import decode_frame
from ranklog.stream.given_up import PREFIX, frames_of_record, return_given_up

EVENT = (Path(__file__).parents[2] / "events" / "ingest-given-up.json").read_bytes()
KEY = f"{PREFIX}0b1f/shardId-000000000006/2026-01-05T02.05.00-x"


class Kinesis:
    """Takes records, but those of a partition key."""

    def __init__(self, refuses: str = "") -> None:
        self.taken: list[tuple[str, bytes]] = []
        self._refuses = refuses

    def put_records(self, StreamName: str, Records: list[dict[str, Any]]) -> dict[str, Any]:
        assert StreamName == "frames"
        answers = []
        for record in Records:
            if record["PartitionKey"] == self._refuses:
                answers.append({"ErrorCode": "InternalFailure"})
                continue
            self.taken.append((record["PartitionKey"], record["Data"]))
            answers.append({"SequenceNumber": "1"})
        return {"Records": answers}


def test_all_frames_of_all_batches_are_put_and_the_objects_deleted() -> None:
    kept, kinesis = MemoryStore(), Kinesis()
    for number in range(3):
        kept.put(f"{KEY}{number}", EVENT)
    kept.put("something/else", b"of somebody")
    result = return_given_up(kept, kinesis, "frames")
    assert (result.batches, result.frames, result.failed) == (3, 6, {})
    assert [key for key, _ in kinesis.taken[:2]] == ["acme/llama-8b/gpu-00", "acme/llama-8b/gpu-03"]
    assert [decode_frame(data).tenant for _, data in kinesis.taken] == ["acme"] * 6
    assert [info.key for info in kept.list("")] == ["something/else"]
    assert return_given_up(kept, kinesis, "frames").batches == 0


def test_a_batch_of_which_a_frame_is_refused_stays_and_goes_whole_the_next_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ranklog.stream.kinesis._WAIT_S", 0.0)
    kept = MemoryStore()
    kept.put(KEY, EVENT)
    result = return_given_up(kept, Kinesis(refuses="acme/llama-8b/gpu-03"), "frames")
    assert result.batches == 0 and "1 of 2 frames" in result.failed[KEY]
    assert return_given_up(kept, Kinesis(), "frames").frames == 2


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b'{"payload": "x"}', b'{"payload": "{}"}', json.dumps({"payload": 3}).encode()],
)
def test_another_object_is_named_and_left(data: bytes) -> None:
    kept, kinesis = MemoryStore(), Kinesis()
    kept.put(KEY, data)
    kept.put(KEY + "2", EVENT)
    result = return_given_up(kept, kinesis, "frames")
    assert (result.batches, list(result.failed)) == (1, [KEY])
    with pytest.raises(Corrupt):
        list(frames_of_record(data, KEY))
