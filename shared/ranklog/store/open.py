"""A store by its URL: a folder, `file://…` or `s3://bucket[/prefix]`."""

from __future__ import annotations

import re
from urllib.parse import unquote

from ranklog.errors import BadInput
from ranklog.store.disk import DiskStore
from ranklog.store.protocol import Store
from ranklog.store.s3 import S3Store

# An address with a slash too few, or a word of ours where a folder's name is meant.
_NO_FOLDER = re.compile(r"[A-Za-z][^:/]*:/|(?i:file|https?|kinesis|s3|store):")


def open_store(url: str, *, create: bool = False) -> Store:
    """The store a user names. `create` makes a folder that is new or empty one; never a bucket.

    Raises BadInput (no such kind of URL, not a store), NotFound (no such folder), NewerVersion.
    """
    scheme = scheme_of(url)
    if scheme == "s3":
        bucket, _, prefix = url.removeprefix("s3://").partition("/")
        return S3Store(bucket, prefix)
    return DiskStore(local_folder(url) if scheme else url, create=create)


def scheme_of(url: str) -> str:
    """`s3`, `file`, or "" of a folder's name. Raises BadInput."""
    if not url.strip():
        raise BadInput("an empty store name", hint="name a folder or s3://bucket/prefix")
    scheme, separator, _ = url.partition("://")
    if separator and scheme in ("s3", "file"):
        return scheme
    if separator or _NO_FOLDER.match(url):
        where = scheme + separator if separator else url
        raise BadInput(
            f"no store is kept at {where}", hint="a folder, file:///path or s3://bucket/prefix"
        )
    return ""


def local_folder(url: str) -> str:
    """The path of a `file://` URL. Raises BadInput."""
    host, slash, path = url.removeprefix("file://").partition("/")
    if host not in ("", "localhost") or not slash:
        raise BadInput(f"{url} names no folder of this machine", hint="write file:///path")
    return "/" + unquote(path)
