"""Real logs plot at once: what frameworks print is found under one name and in one unit."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranklog.client import Client
from ranklog.importer import import_paths
from ranklog.store.memory import MemoryStore

NOW_NS = 1_795_000_000 * 10**9


@pytest.mark.data
@pytest.mark.parametrize(
    ("file", "names", "low", "high"),
    [
        ("megatron/bigscience_meg_ds_3d_on.out", {"lm_loss"}, 5, 50),
        ("megatron/bigscience_meg_gpt2_n16_dp1_tp4_pp16-1809577.out", {"lm_loss"}, 5, 50),
        ("nanogpt/track_1_short__2024-10-13_llmc__main.log", {"train_loss"}, 2, 12),
        ("text/nvidia_gnmt_train_lines.txt", {"loss_per_token"}, 2, 12),
        ("perrank/oscar_paddle/workerlog.0", {"batch_loss"}, 0, 1),
    ],
)
def test_a_loss_is_a_loss(
    data_dir: Path, file: str, names: set[str], low: float, high: float
) -> None:
    store = MemoryStore()
    path = str(data_dir / "logs" / file)
    import_paths([path], store=store, tenant="default", run="job", now_ns=NOW_NS)
    client = Client(store=store)
    found = [one for one in client.series("loss", run="job", max_points=0) if one.name == "loss"]
    numbers = [value for one in found for value in one.numbers]
    assert {name for one in found for name in one.written} == names
    assert len(numbers) > 3 and all(low <= value <= high for value in numbers)
    for one in client.series("iteration_time_ms", run="job"):
        assert all(1 < value < 10**6 for value in one.numbers)


@pytest.mark.data
def test_timers_of_megatron_have_the_iteration_of_the_line_before(data_dir: Path) -> None:
    store = MemoryStore()
    path = str(data_dir / "logs/megatron/bigscience_meg_gpt2_n16_dp1_tp4_pp16-1809577.out")
    import_paths([path], store=store, tenant="default", run="job", now_ns=NOW_NS)
    client = Client(store=store)
    (timer,) = client.series("forward_ms", run="job")
    (whole,) = client.series("iteration_time_ms", run="job")
    assert timer.iterations is not None and whole.iterations is not None
    assert timer.iterations.tolist() == whole.iterations.tolist()
    assert (timer.values < whole.values).all()
