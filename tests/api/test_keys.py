"""Keys and whose they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ranklog.api.keys import Keys, bearer_key, hash_key
from ranklog.errors import BadInput


def test_a_key_names_its_tenant_and_an_unknown_one_nobody() -> None:
    keys = Keys({"a": [hash_key("key of a"), hash_key("older")], "b": [hash_key("key of b")]})
    assert [keys.tenant_of(key) for key in ("key of a", "older", "key of b", "key", "")] == [
        "a",
        "a",
        "b",
        None,
        None,
    ]


@pytest.mark.parametrize(
    ("header", "key"),
    [
        ("Bearer abc", "abc"),
        ("bearer  abc ", "abc"),
        ("Basic abc", None),
        ("Bearer", None),
        ("", None),
        (None, None),
    ],
)
def test_a_bearer_header_holds_a_key(header: str | None, key: str | None) -> None:
    assert bearer_key(header) == key


def test_keys_are_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_text(json.dumps({"a": [hash_key("x")]}))
    assert Keys.read(path).tenant_of("x") == "a"


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"a": "x"}', '{"a": ["plain key"]}', '{"a": [1]}']
)
def test_what_holds_no_hashes_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_text(text)
    with pytest.raises(BadInput):
        Keys.read(path)
