"""A store's name, as users write it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranklog.errors import BadInput, NotFound
from ranklog.store import DiskStore, S3Store, open_store


def test_a_folder_is_named_by_path_or_url(tmp_path: Path) -> None:
    path = tmp_path / "my store"
    with pytest.raises(NotFound):
        open_store(str(path))
    open_store(str(path), create=True).put("k", b"x")
    for url in (str(path), f"file://{path}", f"file://localhost{str(path).replace(' ', '%20')}"):
        store = open_store(url)
        assert isinstance(store, DiskStore)
        assert (store.url, store.get("k")) == (str(path), b"x")


@pytest.mark.parametrize(
    ("url", "name"),
    [("s3://logs", "s3://logs"), ("s3://logs/", "s3://logs"), ("s3://logs/a/b/", "s3://logs/a/b")],
)
def test_a_bucket_is_named_by_url(url: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    store = open_store(url)
    assert isinstance(store, S3Store)
    assert store.url == name


OTHERS = ["", " ", "s3://", "S3://b", "s3:/b", "gs://b", "gs:/b", "hdfs://n/x", "http://x/y"]


@pytest.mark.parametrize("url", [*OTHERS, "file://host/x", "file:", "file:x", "store:x"])
def test_other_names_are_refused_with_a_hint(url: str) -> None:
    with pytest.raises((BadInput, NotFound)) as raised:
        open_store(url)
    assert raised.value.hint
