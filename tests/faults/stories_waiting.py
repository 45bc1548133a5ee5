"""Stories of ranks that do not come, come late, or come to something else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.faults.attempts import begin, fault_iteration, finish, run_until
from tests.faults.endings import go_down
from tests.faults.frameworks import FRAMEWORKS
from tests.faults.stamps import MS, SECOND
from tests.faults.striking import of_node, of_rank, of_word
from tests.faults.text_c10d import Work, dump_signal, fingerprint, watchdog
from tests.faults.text_launch import step_cancelled
from tests.faults.text_python import SITE, script_frames, tagged, traceback_lines
from tests.faults.training import Training
from tests.faults.truth import UNDECIDABLE, Truth
from tests.faults.waiting import draw_work, time_out
from tests.faults.world import World


def skipped_collective(w: World) -> Truth:
    """One rank goes past a collective (its data ran out, its branch was another); the rest waits."""
    training = begin(w)
    k = fault_iteration(w, training)
    run_until(w, training, k)
    t, it, rank = training.time_of(k), training.number(k), w.any_rank()
    noted = w.chance(0.4)
    if noted:
        note = FRAMEWORKS[w.scene.framework].note
        text = f"data iterator exhausted after {it} batches"
        w.say(rank, t, note(w, rank, t, "INFO", text), it)
    wait = time_out(w, t, {rank}, speaks=w.chance(0.8))
    go_down(w, wait.exits)
    if not (wait.decided or noted):
        return of_word("skipped_collective", UNDECIDABLE, "collective_timeout", t, it, "hang")
    return of_rank(
        w, "skipped_collective", rank, "collective_timeout", t, it, "collective_mismatch"
    )


def other_collective(w: World) -> Truth:
    """One rank calls another operation, or another size: the reports differ at one number."""
    training = begin(w)
    k = fault_iteration(w, training)
    run_until(w, training, k)
    t, it, rank = training.time_of(k), training.number(k), w.any_rank()
    if w.chance(0.4) or w.scene.gloo:
        _fingerprints(w, t, rank)
    else:
        _reports_differ(w, t, rank)
    return of_rank(w, "other_collective", rank, "collective_mismatch", t, it)


def _fingerprints(w: World, t: int, rank: int) -> None:
    """TORCH_DISTRIBUTED_DEBUG=DETAIL compares before it calls."""
    seq, exits = int(w.rng.integers(50, 9000)), {}
    other = fingerprint(seq, "BROADCAST", 1)
    usual = fingerprint(seq, "ALLREDUCE", 4096)
    told = [r for r in range(w.topo.ranks) if r == rank or w.chance(0.8)]
    # Each rank is told of one that differs: the odd one of any of the others.
    for own in told:
        peer = (
            rank if own != rank else next(r for r in w.shuffled(range(w.topo.ranks)) if r != rank)
        )
        mine, theirs = (other, usual) if own == rank else (usual, other)
        error = (
            f"RuntimeError: Detected mismatch between collectives on ranks. Rank {own} is running "
            f"collective: {mine}, but Rank {peer} is running collective: {theirs}."
            "Collectives differ in the following aspects: \t Op type: "
            + ("BROADCASTvs ALLREDUCE" if own == rank else "ALLREDUCEvs BROADCAST")
        )
        at = t + int(w.rng.uniform(0, 90) * MS)
        w.say_all(own, at, tagged(w, own, list(traceback_lines(script_frames(w), error))))
        exits[own] = (at + int(w.rng.uniform(400, 900) * MS), 1)
    go_down(w, exits)


def _reports_differ(w: World, t: int, rank: int) -> None:
    work = draw_work(w)
    if w.chance(0.6) or w.scene.torch < "2.2":  # which tells no sizes
        op = "BROADCAST" if work.op == "ALLREDUCE" else "ALLREDUCE"
        odd = replace(work, op=op, numel_in=8, numel_out=8)
    else:
        odd = replace(work, numel_in=work.numel_in // 2 + 8, numel_out=work.numel_out // 2 + 8)
    _all_report(w, t, lambda r: odd if r == rank else work)


def _all_report(w: World, t: int, work_of: Callable[[int], Work]) -> None:
    due, exits = t + w.scene.timeout_s * SECOND, {}
    for rank in range(w.topo.ranks):
        at = due + int(w.rng.uniform(0, 1600) * MS)
        whole = rank < 64
        end = w.say_all(rank, at, watchdog(w, rank, at, work_of(rank), whole=whole))
        exits[rank] = (max(end, due + 2 * SECOND) + int(w.rng.uniform(0, 900) * MS), -6)
    go_down(w, exits)


def timeout_everywhere(w: World) -> Truth:
    """All ranks came to the same collective and it never ended: nobody's report differs."""
    training = begin(w)
    k = fault_iteration(w, training)
    run_until(w, training, k)
    t, it, work = training.time_of(k), training.number(k), draw_work(w)
    work = replace(work, enqueued=work.seq)
    if w.chance(0.5) and w.scene.torch >= "2.4":
        source, at = w.any_rank(), t + w.scene.timeout_s * SECOND - 40 * MS
        for rank in range(w.topo.ranks):
            w.say_all(rank, at, dump_signal(w, rank, at, work.seq - 1, work, source))
    _all_report(w, t, lambda rank: work)
    return of_word("timeout_everywhere", UNDECIDABLE, "collective_timeout", t, it)


def hang_timeout(w: World) -> Truth:
    """One rank stops answering, frozen; the others' watchdogs (or gloo) end the job."""
    training = begin(w)
    k = fault_iteration(w, training)
    run_until(w, training, k)
    t, it, rank = training.time_of(k), training.number(k), w.any_rank()
    wait = time_out(w, t, {rank}, speaks=False)
    # A frozen process needs SIGKILL, and the launcher tells: that decides it, too.
    frozen = wait.decided or w.chance(0.3)
    go_down(w, wait.exits, hung={rank} if frozen else None)
    if not (wait.decided or frozen):
        return of_word("hang_timeout", UNDECIDABLE, "collective_timeout", t, it, "hang")
    return of_rank(w, "hang_timeout", rank, "collective_timeout", t, it, "hang")


def hang_silent(w: World) -> Truth:
    """Everything stops and nothing says so; stacks or the last lines may tell who stopped first."""
    training = begin(w)
    k = fault_iteration(w, training)
    run_until(w, training, k)
    rank, t, it = w.any_rank(), training.time_of(k), training.number(k)
    untimed = w.scene.framework in ("nemo", "hf")  # whose silence no time shows
    told = dumped = untimed or w.chance(0.55)
    if dumped:
        _stack_dumps(w, t + 600 * SECOND, rank)
    elif w.scene.per_rank:
        told = True
        run_one_more(w, training, k, rank)
    if not dumped or w.chance(0.4):  # else nothing would tell it from a run that goes on
        end = t + int(w.rng.uniform(1500, 9000) * SECOND)
        w.say_launcher(end, step_cancelled(w, 0, end, "TIME LIMIT" if w.chance(0.5) else ""))
    if not told:
        return of_word("hang_silent", UNDECIDABLE, "hang", t, it)
    return of_rank(w, "hang_silent", rank, "hang", t, it)


def run_one_more(w: World, training: Training, k: int, without: int) -> None:
    """Iteration k is over for all; one rank does not come to say so."""
    before = {key: len(lines) for key, lines in w.processes.items()}
    training.write_one(k)
    key = (w.attempt, without)
    w.processes[key] = w.processes[key][: before.get(key, 0)]


def _stack_dumps(w: World, t: int, rank: int) -> None:
    """faulthandler.dump_traceback_later on every rank: the culprit's stack is another."""
    stuck = [
        ("/workspace/data/shards.py", 71, "_read"),
        ("/workspace/data/shards.py", 133, "__getitem__"),
        (w.scene.script, 68, "next_batch"),
    ]
    waits = [
        (f"{SITE}/torch/distributed/distributed_c10d.py", 2806, "all_reduce"),
        (f"{SITE}/torch/distributed/c10d_logger.py", 81, "wrapper"),
        (w.scene.script, 77, "train_step"),
    ]
    for own in range(w.topo.ranks):
        at = t + int(w.rng.uniform(0, 3000) * MS)
        thread = f"0x{int(w.rng.integers(1 << 40, 1 << 46)):016x}"
        lines = ["Timeout (0:10:00)!", f"Thread {thread} (most recent call first):"]
        for file, line, name in stuck if own == rank else waits:
            lines.append(f'  File "{file}", line {line} in {name}')
        lines.append(f'  File "{w.scene.script}", line 96 in <module>')
        w.say_all(own, at, lines)


# --- slow -----------------------------------------------------------------------------------------
def slow_rank(w: World) -> Truth:
    """One rank takes half as long again or more; everyone waits for it in each iteration."""
    rank = w.any_rank()
    training, t, it, shown = _slowed(w, [rank])
    finish_or_go_on(w, training)
    if not shown:
        return of_word("slow_rank", UNDECIDABLE, "slow", t, it)
    return of_rank(w, "slow_rank", rank, "slow", t, it)


def slow_node(w: World) -> Truth:
    """All ranks of a node are slow: a hot rack, a throttled CPU, a bad cable that still works."""
    node = w.any_node()
    training, t, it, shown = _slowed(w, list(w.topo.on_node(node)))
    finish_or_go_on(w, training)
    if not shown:
        return of_word("slow_node", UNDECIDABLE, "slow", t, it)
    return of_node(w, "slow_node", node, "slow", t, it)


def _slowed(w: World, ranks: list[int]) -> tuple[Training, int, int, bool]:
    training = begin(w)
    reports = w.scene.framework in ("megatron", "nemo") and w.topo.ranks <= 512
    shown = w.scene.per_rank or reports
    # Slow from the start is a job's speed where only one rank's times are shown.
    k = 1 if shown and w.chance(0.3) else int(w.rng.integers(6, training.count // 2))
    factor = float(w.rng.uniform(1.35 if shown else 1.8, 3.0))
    training.work_s[k:, ranks] *= factor * w.rng.lognormal(
        0, 0.03, (training.count - k, len(ranks))
    )
    training.settle()
    training.report_stragglers = reports
    run_until(w, training, training.count)
    return training, training.time_of(k), training.number(k), shown


def finish_or_go_on(w: World, training: Training) -> None:
    """The run ends well, or is still going."""
    if w.chance(0.6):
        finish(w, training)
