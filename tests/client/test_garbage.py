"""The collector waits for the last of all who asked, and stays as it was found."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from ranklog.client.garbage import collector_waits


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    was_on = gc.isenabled()
    yield
    (gc.enable if was_on else gc.disable)()


def test_the_collector_is_off_until_the_last_is_through() -> None:
    gc.enable()
    first, second = collector_waits(), collector_waits()
    with first:
        second.__enter__()
        assert not gc.isenabled()
    assert not gc.isenabled()
    second.__exit__(None, None, None)
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    with collector_waits():
        pass
    assert not gc.isenabled()


def test_the_collector_comes_back_after_a_failure() -> None:
    gc.enable()
    with pytest.raises(ValueError, match="no"), collector_waits():
        raise ValueError("no")
    assert gc.isenabled()
