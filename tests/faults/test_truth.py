"""What the truth says can be seen in the text; what is undecidable cannot."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable

import pytest

from tests.faults.job import Job
from tests.faults.simulate import simulate
from tests.faults.test_simulate import text_of

SEEDS = range(8)


def own_text(job: Job, rank: int) -> bytes:
    """What one rank wrote."""
    return b"\n".join(text for p in job.processes if p.rank == rank for _, text, _ in p.lines)


def ranks_that_say(job: Job, pattern: bytes) -> set[int]:
    """Ranks with a line that has the pattern."""
    compiled = re.compile(pattern)
    return {
        p.rank
        for p in job.processes
        if p.rank is not None and any(compiled.search(text) for _, text, _ in p.lines)
    }


def ended_by(job: Job, signal: int, word: bytes) -> set[int]:
    """Ranks that launchers say ended by a signal, or by srun's word for it."""
    text = text_of(job)
    pattern = rb"rank      : (\d+) \(local_rank: \d+\)\n  exitcode  : -%d " % signal
    found = {int(rank) for rank in re.findall(pattern, text)}
    for named in re.findall(rb"tasks? ([\d,-]+): %s" % word, text):
        for part in named.split(b","):
            first, _, last = part.partition(b"-")
            found |= set(range(int(first), int(last or first) + 1))
    return found


SAYS: dict[str, bytes] = {
    "oom_rank": rb"CUDA out of memory",
    "data_loader_death": rb"DataLoader worker",
    "ecc_rank": rb"uncorrectable ECC error",
    "checkpoint_error": rb"\[Errno (5|116|122)\]|inline_container",
    "disk_full_node": rb"No space left on device",
}


@pytest.mark.parametrize("fault", SAYS)
@pytest.mark.parametrize("seed", SEEDS)
def test_only_the_culprit_says_what_struck_it(fault: str, seed: int) -> None:
    job = simulate(seed, fault=fault)
    assert ranks_that_say(job, SAYS[fault]) == set(job.truth.ranks)


@pytest.mark.parametrize(
    "fault", ["oom_all", "missing_file_all", "import_error_all", "segfault_all"]
)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_fault_of_all_is_said_by_most_ranks_of_several_nodes(fault: str, seed: int) -> None:
    job = simulate(seed, fault=fault)
    said = ranks_that_say(job, rb"Error\b|error: |Segmentation fault")
    assert len(said) > 0.4 * job.topology.ranks
    assert len({job.topology.node(rank) for rank in said}) > job.topology.nodes // 2


@pytest.mark.parametrize("seed", SEEDS)
def test_a_killed_rank_is_the_only_one_that_launchers_call_killed(seed: int) -> None:
    job = simulate(seed, fault="sigkill_rank")
    assert ended_by(job, 9, b"Killed") == set(job.truth.ranks)


@pytest.mark.parametrize("seed", SEEDS)
def test_victims_of_the_oom_killer_are_named_by_kernel_slurm_or_agent(seed: int) -> None:
    job = simulate(seed, fault="oom_killer_rank")
    named = ended_by(job, 9, b"Killed") | ended_by(job, 9, b"Out Of Memory")
    assert named == set(job.truth.ranks)
    assert re.search(rb"oom[-_]kill", text_of(job))


@pytest.mark.parametrize("seed", SEEDS)
def test_one_rank_is_missing_or_behind_where_the_truth_names_one(seed: int) -> None:
    for fault in ("skipped_collective", "hang_timeout"):
        job = simulate(seed, fault=fault)
        reported = ranks_that_say(job, rb"Watchdog caught|Timed out waiting")
        assert not reported & job.truth.ranks
        missing = set(range(job.topology.ranks)) - reported
        if job.truth.culprit == "undecidable":
            assert len(missing) > 1
            assert not re.search(rb"didn't join|missing ranks|exhausted after", text_of(job))
            assert not ranks_that_say(job, rb"Received a dump signal")
            assert not ended_by(job, 9, b"Killed")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_time_out_everywhere_has_equal_reports(seed: int) -> None:
    job = simulate(seed, fault="timeout_everywhere")
    reports = defaultdict(set)
    for process in job.processes:
        for _, text, _ in process.lines:
            for found in re.findall(
                rb"SeqNum=(\d+), OpType=(\w+)|last (?:enqueued|completed) (?:NCCL )?work: (\d+)",
                text,
            ):
                reports[process.rank].add(found)
    assert len(reports) == job.topology.ranks
    assert len({frozenset(found) for found in reports.values()}) == 1


@pytest.mark.parametrize("seed", SEEDS)
def test_another_operation_is_one_ranks_alone(seed: int) -> None:
    job = simulate(seed, fault="other_collective")
    (rank,) = job.truth.ranks
    reports: Counter[bytes] = Counter()
    own: set[bytes] = set()
    pattern = rb"WorkNCCL\((.*?)Timeout|Rank \d+ is running collective: (.*?), but"
    for process in job.processes:
        for _, text, _ in process.lines:
            for found in re.findall(pattern, text):
                reports[b"".join(found)] += 1
                own |= {b"".join(found)} if process.rank == rank else set()
    assert len(reports) == 2 and len(own) == 1


@pytest.mark.parametrize("seed", SEEDS)
def test_a_silent_hang_is_followed_by_stacks_or_a_long_silence(seed: int) -> None:
    job = simulate(seed, fault="hang_silent")
    odd = ranks_that_say(job, rb"in next_batch$")
    if odd:
        assert odd == set(job.truth.ranks)
        return
    cancelled = [ns for s in job.streams for ns, text, _ in s.lines if b"CANCELLED" in text]
    last = max(ns for p in job.processes for ns, _, _ in p.lines)
    assert max(cancelled) - last > 1000 * 10**9
    counts = {p.rank: len(p.lines) for p in job.processes}
    if job.truth.culprit != "undecidable":
        assert job.scene.per_rank and len(counts) == job.topology.ranks


@pytest.mark.parametrize("fault", ["slow_rank", "slow_node"])
@pytest.mark.parametrize("seed", SEEDS)
def test_slow_ranks_own_times_are_larger_where_they_are_printed(fault: str, seed: int) -> None:
    job = simulate(seed, fault=fault, framework="plain", ranks=16)
    times = {
        rank: sorted(map(float, re.findall(rb"step_time ([\d.]+) ms", own_text(job, rank))[-7:]))
        for rank in range(16)
    }
    if job.truth.culprit == "undecidable":
        assert sum(bool(found) for found in times.values()) <= 1
        return
    slowest = sorted(times, key=lambda rank: times[rank][3])[-len(job.truth.ranks) :]
    assert set(slowest) == set(job.truth.ranks)


@pytest.mark.parametrize("fault", ["nan_rank", "nan_replica"])
@pytest.mark.parametrize("seed", SEEDS)
def test_nan_is_the_culprits_first(fault: str, seed: int) -> None:
    job = simulate(seed, fault=fault, framework="plain", ranks=16, layout="rank_files")
    if not job.scene.per_rank:
        assert ranks_that_say(job, rb"non-finite gradient") == set(job.truth.ranks)
        return
    first = {}
    for process in job.processes:
        for _, text, _ in process.lines:
            found = re.search(rb"iteration (\d+) loss nan", text)
            if found and process.rank not in first:
                first[process.rank] = int(found[1])
    struck = {rank for rank, it in first.items() if it == min(first.values())}
    assert struck == (set(job.truth.ranks) or set(range(16)))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_stuck_writer_began_and_did_not_end(seed: int) -> None:
    job = simulate(seed, fault="checkpoint_stuck")
    text = b"\n".join(text for p in job.processes for _, text, _ in p.lines)
    number = max(int(n) for n in re.findall(rb"saving checkpoint at iteration (\d+)", text))
    began = set(re.findall(rb"saving checkpoint at iteration %d .*\(shard (\d+)\)" % number, text))
    ended = set(re.findall(rb"saved checkpoint shard (\d+) at iteration %d " % number, text))
    assert {int(rank) for rank in began - ended} == set(job.truth.ranks)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_flapping_link_is_named_by_its_neighbours_or_its_kernel(seed: int) -> None:
    job = simulate(seed, fault="link_flap")
    topology = job.topology
    named: Counter[str] = Counter()
    for address in re.findall(rb"Got completion from peer ([\d.]+)<", text_of(job)):
        named[topology.hosts[topology.addresses.index(address.decode())]] += 1
    down = {s.host for s in job.streams for _, text, _ in s.lines if b"Link DOWN" in text}
    if job.truth.culprit == "undecidable":
        assert len(named) == 2 and not down
    elif down:
        assert down == {job.truth.culprit}
    else:
        assert named.most_common(1)[0][0] == job.truth.culprit


@pytest.mark.parametrize("seed", SEEDS)
def test_an_xid_is_in_the_log_of_the_culprits_host(seed: int) -> None:
    job = simulate(seed, fault="xid_host")
    hosts = {s.host for s in job.streams for _, text, _ in s.lines if b"Xid" in text}
    assert hosts == {job.topology.host(next(iter(job.truth.ranks)))}


REASONS: dict[str, Callable[[bytes], bool]] = {
    "time_limit": lambda text: b"DUE TO TIME LIMIT" in text,
    "preemption": lambda text: b"DUE TO PREEMPTION" in text,
    "sigterm_outside": lambda text: b"got signal: 15" in text or b"CANCELLED AT" in text,
    "node_lost": lambda text: b"Node failure on" in text,
}


@pytest.mark.parametrize("fault", REASONS)
@pytest.mark.parametrize("seed", SEEDS)
def test_what_came_from_outside_is_said_by_a_launcher(fault: str, seed: int) -> None:
    assert REASONS[fault](text_of(simulate(seed, fault=fault)))


def test_some_faults_strike_again_after_a_restart() -> None:
    again = 0
    for seed in range(60):
        job = simulate(seed, fault="oom_rank", ranks=8)
        if re.search(rb"Worker group FAILED. 2/3 attempts left", text_of(job)):
            again += 1
            (rank,) = job.truth.ranks
            own = [p for p in job.processes if p.rank == rank]
            assert [any(b"out of memory" in text for _, text, _ in p.lines) for p in own] == [
                True
            ] * 2
    assert again


def test_victims_are_first_in_a_fair_share_of_jobs() -> None:
    ways = Counter(simulate(seed, fault="oom_rank", ranks=8).truth.note for seed in range(200))
    assert set(ways) == {"quick", "led", "late", "held"}
    assert 0.25 < (ways["led"] + ways["held"]) / 200 < 0.7


def test_healthy_jobs_print_what_looks_like_trouble() -> None:
    texts = [text_of(simulate(seed, fault="healthy")) for seed in range(60)]
    for word in (
        b"Traceback (most recent",
        b"NCCL WARN",
        b"accuracy=nan",
        b"CANCELLED AT",
        b"retrying",
    ):
        assert any(word in text for text in texts), word


def test_a_good_end_of_many_ranks_has_thousands_of_warnings() -> None:
    texts = [text_of(simulate(seed, fault="healthy", ranks=512)) for seed in range(8)]
    assert max(text.count(b"NCCL WARN") for text in texts) > 2000
