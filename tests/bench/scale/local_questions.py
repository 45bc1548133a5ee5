"""Questions to the local stack: one at a time, and coming by chance to one root that answers in turn."""

from __future__ import annotations

import queue
import random
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ranklog.client import Client
from ranklog.store.memory import MemoryStore
from tests.bench.scale import measuring
from tests.bench.scale.checks import Check, share_of
from tests.bench.scale.counting import CountingStore
from tests.bench.scale.kernel import Clock, Environment, Pool
from tests.bench.scale.querying import MIX, Queries, QueryResult, QuerySetting, Stored
from tests.bench.scale.rates import Rates
from tests.bench.scale.times import Fixed, Measured

_QUESTIONS = 150
_LOAD = 0.5
_SOLO = 4


def check_questions(rates: Rates, store: CountingStore) -> list[Check]:
    with Client(store=store, tenant=measuring.TENANT, concurrency=1) as client:
        words = {name: measuring.words_of(client, name) for name in MIX}
        for name in MIX:
            measuring.ask(client, name, words[name])
        store.reset()
        memory = _copied(store)
        wall, requests = _alone(client, words, store)
        here = _in_memory(memory, words)
        asked, served, took = _open_loop(client, words, _LOAD / wall)
        again, _ = _alone(client, words, store)
        here = (here + _in_memory(memory, words)) / 2
        request = Measured(tuple(store.seconds["LIST"] + store.seconds["GET"]))
        state = _state(store)
    model = _model_alone(rates, state, request, here)
    replayed = _replay(asked, served)
    return [
        Check("LISTs of a question", model["lists"], requests["LIST"], ""),
        Check("GETs of a question", model["gets"], requests["GET"], ""),
        Check("a question alone, mean", model["mean_s"], (wall + again) / 2, "s"),
        Check("question at half load, p50", share_of(replayed, 0.5), share_of(took, 0.5), "s"),
        Check("question at half load, p99", share_of(replayed, 0.99), share_of(took, 0.99), "s"),
    ]


def _copied(store: CountingStore) -> CountingStore:
    """The same objects in memory."""
    found = MemoryStore()
    for info in list(store.list(f"{measuring.TENANT}/")):
        found.put(info.key, store.get(info.key))
    return CountingStore(found)


def _in_memory(memory: CountingStore, words: dict[str, str]) -> float:
    """Seconds of a question of the mix in the mean where requests take no time."""
    with Client(store=memory, tenant=measuring.TENANT, concurrency=1) as client:
        _alone(client, words, memory)
        return _alone(client, words, memory)[0]


def _alone(
    client: Client, words: dict[str, str], store: CountingStore
) -> tuple[float, dict[str, float]]:
    """(seconds, requests) of a question of the mix in the mean, one at a time."""
    wall = 0.0
    requests = {"LIST": 0.0, "GET": 0.0}
    for name, share in MIX.items():
        for _ in range(_SOLO):
            before = dict(store.requests)
            started = time.perf_counter()
            measuring.ask(client, name, words[name])
            wall += share * (time.perf_counter() - started) / _SOLO
            for kind in requests:
                requests[kind] += share * (store.requests[kind] - before.get(kind, 0)) / _SOLO
    return wall, requests


def _open_loop(
    client: Client, words: dict[str, str], per_s: float
) -> tuple[list[float], list[float], list[float]]:
    """Questions that come by chance to one that answers them in turn: when each was asked, how long it was
    worked on, seconds from asked to answered."""
    waiting: queue.Queue[tuple[float, str] | None] = queue.Queue()
    moments: list[float] = []
    served: list[float] = []
    took: list[float] = []

    def answer() -> None:
        while (item := waiting.get()) is not None:
            started = time.monotonic()
            measuring.ask(client, item[1], words[item[1]])
            served.append(time.monotonic() - started)
            took.append(time.monotonic() - item[0])

    worker = threading.Thread(target=answer)
    worker.start()
    moment = time.monotonic()
    for name in random.choices(list(MIX), list(MIX.values()), k=_QUESTIONS):
        moment += random.expovariate(per_s)
        time.sleep(max(0.0, moment - time.monotonic()))
        moments.append(moment)
        waiting.put((moment, name))
    waiting.put(None)
    worker.join()
    return moments, served, took


def _replay(asked: Sequence[float], served: Sequence[float]) -> list[float]:
    """The model's one server, asked at the same moments, each question as long as one of those that were
    measured, by chance; a hundred times."""
    found: list[float] = []
    generator, samples = np.random.default_rng(3), Measured(tuple(served))
    for _ in range(100):
        clock = Clock()
        pool = Pool(clock, most=1)
        for moment in asked:
            clock.at(moment - asked[0], _asker(pool, clock, samples, generator, found))
        clock.run(1e6)
    return found


def _asker(
    pool: Pool, clock: Clock, samples: Measured, generator: np.random.Generator, found: list[float]
) -> Any:
    def ask() -> None:
        asked = clock.now

        def use(environment: Environment) -> None:
            def done() -> None:
                found.append(clock.now - asked)
                pool.give_back(environment)

            clock.after(samples.draw(generator), done)

        pool.take(use)

    return ask


def _state(store: CountingStore) -> Stored:
    """What lies in the store, as the model describes it."""
    listed = list(store.list(f"{measuring.TENANT}/index/"))
    text, _ = measuring.held_in(store)
    count = float(len(listed))
    return Stored(text, count, count, float(sum(i.length for i in listed)), count, 0.0)


def _model_alone(rates: Rates, state: Stored, request: Measured, here: float) -> dict[str, float]:
    """A question of the mix with nobody else: scans run in the root, indexes are known. `here`: seconds it
    takes just now where requests take no time; the model's CPU is stretched to it."""
    setting = QuerySetting(
        front_s=Fixed(0.0),
        invoke_s=Fixed(0.0),
        request=Fixed(0.0),
        bytes_per_s=500e6,
        cold_root_s=0.0,
        cold_scan_s=0.0,
        roots=1,
        scans=1,
        scaling_per_s=1e9,
        get_per_s=1e9,
    )

    def ask(setting: QuerySetting) -> QueryResult:
        return Queries(rates, state, setting, 1e-3).run(800, warm_roots=1, warm_scans=1)

    stretch = here / float(np.mean(ask(setting).latencies))
    found = ask(replace(setting, request=request, cpu=stretch))
    shown = found.to_json()
    return {
        "lists": shown["lists"],
        "gets": shown["gets"],
        "mean_s": float(np.mean(found.latencies)),
    }
