from __future__ import annotations

import io
from pathlib import Path

from ranklog.demo.run import DemoResult, run_demo, train_job
from ranklog.model.frame import StreamEnd
from ranklog.produce.identity import Identity
from ranklog.store.memory import MemoryStore
from tests.agent.reading import lines_in, streams_in

IDENTITY = Identity("default", "demo", "l1", 0, "n0", None, None, None)


def test_a_damaged_shard_stops_its_rank_and_breaks_the_others_collective(tmp_path: Path) -> None:
    codes = train_job(tmp_path, IDENTITY, 4, fault=True)
    lines = lines_in(tmp_path / "stream")

    assert codes == {0: 1, 1: 1, 2: 1, 3: 1}
    errors = {(x.rank, x.text) for x in lines if (x.level or 0) >= 40 and x.group == x.seq}
    assert errors == {
        (2, "uncaught exception: FloatingPointError: loss is nan at iteration 73"),
        (0, "training stopped: a collective failed"),
        (1, "training stopped: a collective failed"),
        (3, "training stopped: a collective failed"),
    }
    [warning] = [x for x in lines if x.level == 30]
    assert (warning.rank, warning.logger) == (2, "dataloader")
    first = min((x for x in lines if (x.level or 0) >= 40), key=lambda x: x.ts_ns)
    assert (first.rank, first.iteration) == (2, 73)


def test_every_stream_of_every_rank_is_ended_with_its_exit_code(tmp_path: Path) -> None:
    codes = train_job(tmp_path, IDENTITY, 3, fault=False)

    assert codes == {0: 0, 1: 0, 2: 0}
    streams = streams_in(tmp_path / "stream")
    ends = {(s.stream.rank, s.stream.channel): s.end for s in streams if s.end}
    channels = ("agent", "logging", "stderr", "stdout")
    of_all = [(rank, channel) for rank in range(3) for channel in channels]
    assert sorted(ends) == sorted([*of_all, (0, "telemetry")])  # rank 0 times its checkpoints
    for key, end in ends.items():
        rows = sum(s.rows for s in streams if (s.stream.rank, s.stream.channel) == key)
        assert end == StreamEnd(rows, 0)
    texts = [x.text for x in lines_in(tmp_path / "stream")]
    assert texts.count("training finished") == 3
    assert "epoch 1 done after 200 iterations" in texts


def test_a_healthy_job_learns(tmp_path: Path) -> None:
    train_job(tmp_path, IDENTITY, 2, fault=False)
    losses = [
        dict(x.metadata)["loss"]
        for x in lines_in(tmp_path / "stream")
        if x.rank == 0 and x.text.startswith("iteration ")
    ]

    assert len(losses) == 200
    assert float(str(losses[-1])) < 0.5 * float(str(losses[0]))


def test_the_demo_is_ingested_into_the_store() -> None:
    store = MemoryStore()
    result = run_demo(store, ranks=2, out=io.StringIO())

    assert isinstance(result, DemoResult)
    assert result.exit_codes == {0: 1, 1: 1}
    assert result.lines > 100
    keys = [item.key for item in store.list("default/")]
    assert any(key.endswith(".idx") for key in keys)
    assert any(key.endswith(".parquet") for key in keys)
