"""Which store or API a command means."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from ranklog.cli.source import Source, local_store, open_client, source_of
from ranklog.errors import BadInput, NotFound


def given(
    store: str | None = None, api: str | None = None, tenant: str | None = None
) -> argparse.Namespace:
    return argparse.Namespace(store=store, api=api, tenant=tenant)


STORE = {"RANKLOG_STORE": "/env"}
API = {"RANKLOG_API": "http://env"}


@pytest.mark.parametrize(
    ("arguments", "environ", "found"),
    [
        (given(store="/a"), {}, Source("/a", None, "default")),
        (given(store="/a", tenant="t"), API, Source("/a", None, "t")),
        (given(api="http://a"), STORE, Source(None, "http://a", "default")),
        (given(), STORE, Source("/env", None, "default")),
        (given(), API, Source(None, "http://env", "default")),
        (
            given(),
            {"XDG_DATA_HOME": "/data"},
            Source("/data/ranklog", None, "default", implied=True),
        ),
    ],
)
def test_options_go_before_the_environment(
    arguments: argparse.Namespace, environ: dict[str, str], found: Source
) -> None:
    assert source_of(arguments, environ) == found


@pytest.mark.parametrize(
    ("arguments", "environ"),
    [
        (given(store="/a", api="http://a"), {}),
        (given(), STORE | API),
        (given(api="http://a", tenant="t"), {}),
    ],
)
def test_two_places_or_a_tenant_of_an_api_are_refused(
    arguments: argparse.Namespace, environ: dict[str, str]
) -> None:
    with pytest.raises(BadInput):
        source_of(arguments, environ)


@pytest.mark.parametrize("name", ["store", "api", "tenant"])
@pytest.mark.parametrize("value", ["", "  "])
def test_a_place_or_tenant_that_is_given_as_nothing_is_refused(name: str, value: str) -> None:
    with pytest.raises(BadInput, match=f"--{name} names nothing"):
        source_of(given(**{name: value}), STORE)


def test_the_local_store_is_in_the_data_directory() -> None:
    assert local_store({}) == Path.home() / ".local" / "share" / "ranklog"
    assert local_store({"XDG_DATA_HOME": "relative"}) == local_store({})


def test_reading_never_makes_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("RANKLOG_STORE", raising=False)
    monkeypatch.delenv("RANKLOG_API", raising=False)
    with pytest.raises(NotFound, match="no local store yet"):
        open_client(given())
    assert list(tmp_path.iterdir()) == []
