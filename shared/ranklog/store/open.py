"""A store by its URL: a folder, `file://…` or `s3://bucket[/prefix]`."""

from __future__ import annotations

from urllib.parse import unquote

from ranklog.errors import BadInput
from ranklog.store.disk import DiskStore
from ranklog.store.protocol import Store
from ranklog.store.s3 import S3Store


def open_store(url: str, *, create: bool = False) -> Store:
    """The store a user names. `create` makes a folder that is new or empty one; never a bucket.

    Raises BadInput (no such kind of URL, not a store), NotFound (no such folder), NewerVersion.
    """
    scheme, separator, rest = url.partition("://")
    if not separator:
        if not url:
            raise BadInput("an empty store name", hint="name a folder or s3://bucket/prefix")
        return DiskStore(url, create=create)
    if scheme == "s3":
        bucket, _, prefix = rest.partition("/")
        return S3Store(bucket, prefix)
    if scheme == "file":
        return DiskStore(local_folder(url), create=create)
    raise BadInput(
        f"no store is kept at {scheme}://", hint="a folder, file:///path or s3://bucket/prefix"
    )


def local_folder(url: str) -> str:
    """The path of a `file://` URL. Raises BadInput."""
    host, slash, path = url.removeprefix("file://").partition("/")
    if host not in ("", "localhost") or not slash:
        raise BadInput(f"{url} names no folder of this machine", hint="write file:///path")
    return "/" + unquote(path)
