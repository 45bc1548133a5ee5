"""Any key is a path below the store's folder, and comes back from it."""

from __future__ import annotations

import os
from pathlib import PurePosixPath

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ranklog.store.disk_names import (
    MARKER,
    decode_name,
    folder_path,
    is_continued,
    is_ours,
    object_path,
)

# Pieces that have done harm elsewhere, beside any text.
PIECES = st.sampled_from(
    ["..", ".", "\\", "=", "=2E", "=_", "", "~", "C:", "\0", "a" * 199, "é" * 130, " ", "/", "%2F"]
)
COMPONENT = st.lists(PIECES | st.text(max_size=8), max_size=6).map("".join)
KEY = st.lists(COMPONENT, min_size=1, max_size=4).map("/".join).filter(bool)


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ("default/data/2026-01-02/05/a.1.parquet", "default/data/2026-01-02/05/a.1.parquet"),
        ("t/runs/llama-8b/3/hours/2026-01-02T05", "t/runs/llama-8b/3/hours/2026-01-02T05="),
        ("t/runs/run.v2/x.json", "t/runs/run.v2=/x.json"),
        ("../../etc/passwd", "=2E.=/=2E.=/etc/passwd="),
        ("a\\..\\b", "a=5C..=5Cb"),
        ("my%20run/é.x", "my%20run/=C3=A9.x"),
        (MARKER, "=72anklog-store.json"),
        (f"x/{MARKER}", f"x/{MARKER}"),
        ("n" * 401 + "/o.x", f"{'n' * 200}=_/{'n' * 200}=_/n/o.x"),
        ("n" * 200 + "..", f"{'n' * 200}=_/=2E."),
    ],
)
def test_a_key_has_a_readable_path(key: str, path: str) -> None:
    assert object_path(key.encode()) == path


@given(KEY)
@example("a" * 200 + "/..")
@example("a" * 200 + "..")
@example("a" * 198 + "é")
def test_no_key_leaves_the_folder(key: str) -> None:
    path = object_path(key.encode())
    parts = path.split("/")
    # normpath would take out "..", "." and empty parts, and a leading "/".
    assert os.path.normpath(path) == path and not os.path.isabs(path)
    assert "\\" not in path and "\0" not in path and path.isascii()
    assert all(0 < len(part) <= 255 and not part.startswith(".") for part in parts)
    assert path != MARKER


@given(KEY)
@example("a" * 198 + "é" * 3)
def test_a_path_names_one_key(key: str) -> None:
    parts = PurePosixPath(object_path(key.encode())).parts
    decoded = b""
    for at, part in enumerate(parts):
        folder = at < len(parts) - 1
        assert is_ours(part, folder=folder)
        decoded += decode_name(part) + (b"/" if folder and not is_continued(part) else b"")
    assert decoded == key.encode()


@given(KEY, COMPONENT)
def test_an_object_never_has_the_name_of_a_folder(key: str, below: str) -> None:
    assert object_path(key.encode()) != folder_path(f"{key}/{below}".encode())


@pytest.mark.parametrize(
    ("name", "folder"), [(".DS_Store", False), (".tmp", True), ("notes", False), ("a.b", True)]
)
def test_what_people_put_there_is_not_ours(name: str, folder: bool) -> None:
    assert not is_ours(name, folder=folder)
