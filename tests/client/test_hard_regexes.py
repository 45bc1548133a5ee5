"""Regexes that ask for all memory or all time: RE2's bounds hold, and the error says what to do."""

from __future__ import annotations

import resource

import pytest

from ranklog.client import Client
from ranklog.errors import BadQuery
from ranklog.ingest.batch import ingest_batch
from ranklog.model.record import Record
from ranklog.store.memory import MemoryStore
from tests.api.job import NOW_NS, frame_of

# What RE2 refuses: programs over its memory, repetitions of repetitions, what it has no word for.
REFUSED = [
    "(a{0,1000}){0,1000}",
    "((a{0,30}){0,30}){0,30}",
    r"(\pL{1000})",
    r"(?i:\pL{200}){5}",
    "x{1001}",
    "a**",
    "(a",
    "[a",
    r"\p{Zyzz}",
    r"\x{110000}",
    "(?=a)",
    r"(a)\1",
]
# What others backtrack over for longer than there is time, and RE2 runs in one pass.
RUN = [
    "(a|aa)+$",
    "(?:a?){1000}",
    "(.*)(.*)(.*)(.*)(.*)(.*)(.*)[Z]",
    ".*" * 2_000,
    "(" * 2_000 + "a" + ")" * 2_000,
    "|".join(f"a{n}" for n in range(1_300)),
    "(?s).{1000}.{1000}.{1000}",
    "(?:(?:(?:" * 400 + "a" + ")*)*)*" * 400,
]


@pytest.fixture(scope="module")
def client() -> Client:
    store = MemoryStore()
    ingest_batch(
        [Record(frame_of("acme"), NOW_NS, "1")], store=store, source="s", first="1", last="1"
    )
    return Client(store=store, tenant="acme")


@pytest.mark.parametrize("pattern", REFUSED)
def test_a_regex_that_re2_refuses_is_the_callers_error(client: Client, pattern: str) -> None:
    with pytest.raises(BadQuery) as refused:
        client.search(f"/{pattern}/")
    assert "RE2" in refused.value.message and refused.value.hint


@pytest.mark.parametrize("pattern", RUN)
def test_a_regex_that_would_blow_up_elsewhere_is_answered_in_bounded_memory(
    client: Client, pattern: str
) -> None:
    client.search("/a/")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    client.search(f"/{pattern}/")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 128 << 10  # KiB


def test_as_many_regexes_as_a_query_takes_are_answered(client: Client) -> None:
    query = " OR ".join(f"/[a-y]{{{n},900}}z/" for n in range(1, 60))
    assert client.search(query).lines == []
