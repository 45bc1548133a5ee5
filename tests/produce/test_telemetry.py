"""`ranklog.telemetry` through ring and agent: every value, with its words, whatever it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.reading import Seen, frames_in
from tests.point_frames import points_of
from tests.produce.test_session import Job


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def _points(job: Job) -> list[Seen]:
    return [line for line in job.collect() if line.channel == "telemetry"]


def test_values_are_lines_of_their_own_channel_with_what_lines_carry(job: Job) -> None:
    done = job.run(
        "import ranklog\n"
        "ranklog.init(run='r', metadata={'config': 'c4'})\n"
        "for step in range(3):\n"
        "    ranklog.iteration(step)\n"
        "    ranklog.telemetry({'loss': 2.5 - step})\n"
        "with ranklog.context(rank=5, phase='eval'):\n"
        "    ranklog.telemetry({'loss': 1.0, 'tokens': 7}, layer='h.3', shard=2)\n"
        "    ranklog.telemetry({'loss': 1.25})\n"
        "    ranklog.telemetry({'loss': 1.5})",
        RANK="3",
    )

    assert (done.returncode, done.stderr) == (0, "")
    points = _points(job)
    assert [(x.text, x.rank, x.iteration) for x in points] == [
        ("loss=2.5", 3, 0),
        ("loss=1.5", 3, 1),
        ("loss=0.5", 3, 2),
        ("loss=1 tokens=7 layer=h.3 shard=2", 5, 2),
        ("loss=1.25", 5, 2),
        ("loss=1.5", 5, 2),
    ]
    assert points[0].metadata == (("config", "c4"), ("loss", 2.5))
    assert points[3].metadata == (
        ("config", "c4"),
        ("layer", "h.3"),
        ("loss", 1.0),
        ("phase", "eval"),
        ("shard", 2),
        ("tokens", 7),
    )


def test_a_value_without_a_name_is_left_out_and_told_once(job: Job) -> None:
    done = job.run(
        "import ranklog\n"
        "ranklog.init(run='r')\n"
        "for _ in range(2):\n"
        "    ranklog.telemetry({'': 1.5})\n"
        "    ranklog.telemetry({'': None, 'loss': 2.5}, layer='h.3')"
    )

    assert done.stderr == "ranklog: telemetry: a value without a name is left out\n"
    assert [x.text for x in _points(job)] == ["loss=2.5 layer=h.3"] * 2


def test_what_is_no_plain_number_is_cleaned_as_metadata_is(job: Job) -> None:
    done = job.run(
        "import ranklog\n"
        "class Tensor:\n"
        "    def __init__(self, device, value): self.device, self.dtype, self.shape = device, 'f', ()\n"
        "    def item(self): assert self.device == 'cpu'; return 2.5\n"
        "    def __float__(self): raise AssertionError('synchronised')\n"
        "    def __eq__(self, other): raise AssertionError('compared')\n"
        "    def __hash__(self): return 1\n"
        "ranklog.init(run='r')\n"
        "ranklog.telemetry({'loss': Tensor('cpu', 1), 'gone': Tensor('cuda:0', 1)})\n"
        "ranklog.telemetry({'loss': Tensor('cpu', 1)})\n"
        "ranklog.telemetry({'ok': True, 'none': None, 'big': 2**70, 'name': 'x'})\n"
        "ranklog.telemetry({'a': 1.5}, where=Tensor('cpu', 1))\n"
        "ranklog.telemetry({'a': 1.5}, where=Tensor('cpu', 1))\n"
        "ranklog.telemetry({'a': float('nan'), 'b': [1, 2]})\n"
        "ranklog.telemetry({}); ranklog.telemetry({3: 4})\n"
        "ranklog.telemetry(None)"
    )

    assert done.returncode == 0
    assert done.stderr.count("ranklog: ") == 2  # of the device's tensor, and of None
    assert [x.text for x in _points(job)] == [
        "loss=2.5",
        "loss=2.5",
        "ok=1 big=1.180591621e+21",
        "a=1.5 where=2.5",
        "a=1.5 where=2.5",
        "a=nan",
        "3=4",
    ]
    assert dict(_points(job)[2].metadata)["name"] == "x"  # text is told beside the values


def test_dimensions_that_are_equal_but_of_other_types_stay_apart(job: Job) -> None:
    job.run(
        "import ranklog\n"
        "ranklog.init(run='r')\n"
        "for shard in (1, True, 1.0, '1', 2, 1): ranklog.telemetry({'loss': 1.5}, shard=shard)"
    )

    shards = [dict(x.metadata)["shard"] for x in _points(job)]
    assert list(map(repr, shards)) == ["1", "1", "1.0", "'1'", "2", "1"]


def test_a_forked_child_defines_its_own_series(job: Job) -> None:
    job.run(
        "import ranklog, os\n"
        "ranklog.init(run='r')\n"
        "ranklog.context(shard=3)\n"
        "ranklog.telemetry({'other': 1.0}); ranklog.telemetry({'loss': 1.0})\n"
        "pid = os.fork()\n"
        "ranklog.telemetry({'loss': 2.0 if pid else 3.0})\n"
        "ranklog.telemetry({'loss': 2.0 if pid else 3.0})\n"
        "if not pid: os._exit(0)\n"
        "os.wait()"
    )

    points = _points(job)
    assert sorted(x.text for x in points) == ["loss=1", *["loss=2"] * 2, *["loss=3"] * 2, "other=1"]
    assert {dict(x.metadata)["shard"] for x in points} == {3}


def test_without_a_ring_values_are_in_the_journal(job: Job) -> None:
    job.run(
        "import ranklog, resource, signal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000,) * 2)\n"
        "ranklog.init(run='r')\n"
        "for n in range(3): ranklog.telemetry({'loss': float(n)}, layer='h'); ranklog.telemetry({'a': 1})"
    )

    assert [x.text for x in _points(job)] == [
        text for n in range(3) for text in (f"loss={n} layer=h", "a=1")
    ]


def test_a_context_beyond_the_number_of_contexts_is_none_of_the_dimensions(job: Job) -> None:
    done = job.run(
        "import ranklog\n"
        "from ranklog.produce import producer\n"
        "producer.DEFINED_MAX = 3\n"
        "ranklog.init(run='r')\n"
        "for batch in range(6):\n"
        "    with ranklog.context(batch=batch, rank=batch % 2):\n"
        "        ranklog.telemetry({'loss': 1.5, 'note': 'x'}, layer='h')"
    )

    assert (done.returncode, done.stderr) == (0, "")
    points = _points(job)
    assert [(x.text, x.rank) for x in points] == [("loss=1.5 layer=h", n % 2) for n in range(6)]
    assert [dict(x.metadata)["batch"] for x in points] == list(range(6))
    assert {dict(x.metadata)["note"] for x in points} == {"x"}


def test_none_beside_what_is_no_plain_number_was_not_measured(job: Job) -> None:
    job.run(
        "import ranklog\n"
        "ranklog.init(run='r')\n"
        "ranklog.telemetry({'a': None, 'big': 2**70, 'b': 1.0})"
    )

    job.collect()
    points = [point for frame in frames_in(job.stream) for point in points_of(frame)]
    assert {point.series: point.value for point in points} == {"a": None, "big": 2.0**70, "b": 1.0}
