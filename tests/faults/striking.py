"""One rank strikes a fault of its own; the four ways its end and its peers' reports can be ordered.

quick  it says so and exits; some peers see the socket close, the launcher ends the rest
led    peers see the socket close while it is still printing: victims are first by milliseconds
late   it says so and does not exit (a thread holds it): the peers' watchdogs end the job
held   what it has to say is printed only when its own cleanup gave up: victims are minutes earlier

Now and then torchrun starts everybody again first, and the fault strikes a second time.
"""

from __future__ import annotations

from tests.faults.attempts import fault_iteration, open_attempt, run_until
from tests.faults.endings import Exits, go_down, peers_closed
from tests.faults.stamps import MS, SECOND
from tests.faults.text_launch import agent_closing, agent_failed, agent_line
from tests.faults.training import make_training
from tests.faults.truth import Truth
from tests.faults.waiting import time_out
from tests.faults.world import World

WAYS = ("quick", "led", "late", "held")


def strike(
    w: World, t: int, rank: int, lines: list[str], code: int, it: int, *, way: str | None = None
) -> str:
    """A rank fails at t with these lines and this exit code. Returns the way it went."""
    if w.scene.torchrun and not w.attempt and w.chance(0.12):
        t = _strike_and_restart(w, t, rank, lines, code, it)
    if way is None:
        way = w.pick("quick", *WAYS)
    if way in ("late", "held"):
        wait = time_out(w, t + 200 * MS, {rank}, speaks=False, named=False)
        at = t if way == "late" else wait.end_ns - 3 * SECOND + int(w.rng.uniform(0, 900) * MS)
        w.say_all(rank, at, lines, it)
        go_down(w, wait.exits, hung={rank} if way == "late" else None)
        return way
    exits: Exits = peers_closed(w, t, {rank})
    end = w.say_all(rank, t + (int(w.rng.uniform(100, 450) * MS) if way == "led" else 0), lines, it)
    own = end if way == "quick" else max(end, t + int(w.rng.uniform(500, 1800) * MS))
    exits[rank] = (own + 20 * MS, code)
    go_down(w, exits)
    return way


def _strike_and_restart(w: World, t: int, rank: int, lines: list[str], code: int, it: int) -> int:
    """The agents start everybody again. Returns when the same fault strikes the next attempt."""
    end = w.say_all(rank, t, lines, it) + 30 * MS
    w.silence(range(w.topo.ranks), end)
    for node in range(w.topo.nodes):
        at = end + int(w.rng.uniform(20, 900) * MS)
        own = node == w.topo.node(rank)
        peers = [peer for peer in w.topo.on_node(node) if peer != rank]
        failed = [agent_failed(w, node, at, rank, code)] if own else []
        text = (
            "[default] Worker group FAILED. 2/3 attempts left; will restart worker group"
            if own
            else "[default] Detected 1 new nodes from group_rank=0; will restart worker group"
        )
        restart = agent_line(w, node, at, "I", "agent/server/api.py:933", text)
        w.say_agent(node, at, [*agent_closing(w, node, at, peers), *failed, restart])
    w.attempt += 1
    begun = open_attempt(w, end + int(w.rng.uniform(10, 60) * SECOND))
    training = make_training(w, begun, max(it - int(w.rng.integers(1, 9)), 1))
    k = fault_iteration(w, training)
    run_until(w, training, k)
    return training.time_of(k)


def die_silently(w: World, t: int, rank: int, code: int) -> None:
    """A signal that leaves no text: only the launcher tells."""
    exits = peers_closed(w, t, {rank}) if w.chance(0.7) else {}
    exits[rank] = (t, code)
    go_down(w, exits)


def of_rank(
    w: World,
    fault: str,
    rank: int,
    fault_class: str,
    t: int,
    it: int | None,
    *also: str,
    note: str = "",
) -> Truth:
    """Truth of one rank's fault."""
    return Truth(fault, rank, fault_class, t, it, frozenset([rank]), frozenset(also), note=note)


def of_node(
    w: World,
    fault: str,
    node: int,
    fault_class: str,
    t: int,
    it: int | None,
    *also: str,
    note: str = "",
) -> Truth:
    """Truth of a node's fault; a job of one node cannot tell its node from all of it."""
    ranks = frozenset(w.topo.on_node(node))
    return Truth(fault, w.topo.hosts[node], fault_class, t, it, ranks, frozenset(also), note=note)


def of_word(
    fault: str,
    word: str,
    fault_class: str,
    t: int | None,
    it: int | None,
    *also: str,
    note: str = "",
) -> Truth:
    """Truth of all, none, or undecidable."""
    return Truth(fault, word, fault_class, t, it, frozenset(), frozenset(also), note=note)
