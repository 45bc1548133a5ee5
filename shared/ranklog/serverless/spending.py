"""What a function's work costs by list price: requests to the store, and its own time and memory.

Time is the handler's, by the clock: what Lambda bills beside it (the start of a cold one) is not in it.
"""

from __future__ import annotations

import os
import platform
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ranklog.objectives import prices
from ranklog.store.protocol import ObjectInfo, Store

# A LIST request returns so many keys.
_KEYS_PER_LIST = 1_000
_NANO = 1e9


@dataclass(slots=True)
class Spent:
    """Requests, and GB-seconds of Lambda."""

    gets: int = 0
    puts: int = 0
    lists: int = 0
    gb_s: float = 0.0
    invocations: int = 0

    def add(self, other: Spent) -> None:
        for item in fields(self):
            setattr(self, item.name, getattr(self, item.name) + getattr(other, item.name))

    def nanousd(self, *, arm: bool) -> int:
        """Billionths of a dollar, by objectives/prices.py."""
        usd = prices.lambda_usd(self.gb_s, self.invocations, arm=arm)
        usd += prices.S3_GET.of(self.gets)
        usd += prices.S3_PUT.of(self.puts) + prices.S3_LIST.of(self.lists)
        return round(usd * _NANO)

    def to_json(self) -> dict[str, Any]:
        return {item.name: getattr(self, item.name) for item in fields(self)}

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> Spent:
        """What another function says it spent; what is missing or no number is nothing."""
        made = cls()
        for item in fields(cls):
            value = said.get(item.name, 0)
            if isinstance(value, (int, float)):
                setattr(made, item.name, value)
        return made


def is_arm() -> bool:
    """Whether this function runs on the cheaper processors."""
    return platform.machine() in ("aarch64", "arm64")


class Spending:
    """One invocation after the other: `begin`, work, `so_far`. Threads may add."""

    def __init__(self) -> None:
        memory_mb = os.environ.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "")
        self._memory_gb = int(memory_mb) / 1024 if memory_mb.isdecimal() else 0.0
        self._lock = threading.Lock()
        self.begin()

    def begin(self) -> None:
        """An invocation begins."""
        self._spent = Spent(invocations=1)
        self._begun_s = time.perf_counter()

    def add(self, spent: Spent) -> None:
        with self._lock:
            self._spent.add(spent)

    def so_far(self) -> Spent:
        """What the invocation spent up to now."""
        with self._lock:
            total = Spent(gb_s=(time.perf_counter() - self._begun_s) * self._memory_gb)
            total.add(self._spent)
            return total


class CountedStore:
    """The store, its requests counted; a DELETE costs nothing."""

    def __init__(self, store: Store, spending: Spending) -> None:
        self._store = store
        self._spending = spending

    @property
    def url(self) -> str:
        return self._store.url

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> str:
        self._spending.add(Spent(puts=1))
        return self._store.put(key, data, if_absent=if_absent)

    def get(self, key: str) -> bytes:
        self._spending.add(Spent(gets=1))
        return self._store.get(key)

    def get_range(self, key: str, start: int, length: int, *, if_match: str = "") -> bytes:
        self._spending.add(Spent(gets=1))
        return self._store.get_range(key, start, length, if_match=if_match)

    def list(self, prefix: str, *, start_after: str = "") -> Iterator[ObjectInfo]:
        for number, info in enumerate(self._store.list(prefix, start_after=start_after)):
            if number and number % _KEYS_PER_LIST == 0:
                self._spending.add(Spent(lists=1))
            yield info
        self._spending.add(Spent(lists=1))

    def list_folders(self, prefix: str) -> Iterator[str]:
        self._spending.add(Spent(lists=1))
        return self._store.list_folders(prefix)

    def delete(self, key: str) -> None:
        self._store.delete(key)

    def local_path(self, key: str) -> Path | None:
        return self._store.local_path(key)
