"""S3, and what speaks its protocol, as a store: strongly consistent LIST, conditional PUT and GET.

botocore retries requests (standard mode: time-outs, 5xx, throttling); what it can't retry is done
here: a body that breaks off, and a conditional PUT that met another one (409).
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from ranklog.errors import AlreadyExists, BadInput, Corrupt, NotFound, Unavailable
from ranklog.store.aws import Renewed, status_of, translate
from ranklog.store.key import check_key
from ranklog.store.protocol import ObjectInfo

_BODY_ATTEMPTS = 3
_CONFLICT_ATTEMPTS = 6
_CONFLICT_WAIT_S = 0.05


class S3Store:
    """Objects of `s3://bucket/prefix`. Threads may share it.

    `client` is a boto3 S3 client; without one, the environment says region, credentials and
    endpoint. The bucket is not looked at before the first call, which raises NotFound if it is not
    there.
    """

    def __init__(self, bucket: str, prefix: str = "", client: Any = None) -> None:
        if not bucket:
            raise BadInput("no bucket is named", hint="write s3://bucket/prefix")
        self._bucket = bucket
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._renewed = Renewed("s3", client)

    @property
    def url(self) -> str:
        """`s3://bucket[/prefix]`."""
        return f"s3://{self._bucket}/{self._prefix}".rstrip("/")

    @property
    def identity(self) -> str:
        """Which service this is, too: two may have a bucket of one name."""
        return f"{self._renewed.client.meta.endpoint_url} {self.url}"

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> str:
        """See Store.

        AlreadyExists may tell of this very PUT, where its first response was lost on the way: the
        name of a write-once object says what is in it.
        """
        condition = {"IfNoneMatch": "*"} if if_absent else {}
        full = self._full(key)
        for attempt in range(_CONFLICT_ATTEMPTS):
            try:
                response = self._renewed.client.put_object(
                    Bucket=self._bucket, Key=full, Body=data, **condition
                )
                return str(response["ETag"])
            except Exception as error:
                # 412: it is there. 409: another conditional PUT or a DELETE was under way, and
                # who wins is known when it ends.
                status = status_of(error)
                if if_absent and status == 412:
                    raise AlreadyExists(f"the object {key} is there already") from error
                if not if_absent or status != 409:
                    raise translate(self._renewed.note(error), self._name(key)) from error
            time.sleep(random.uniform(0, _CONFLICT_WAIT_S * 2**attempt))
        raise Unavailable(f"{self._name(key)}: other writers are in the way", hint="repeat")

    def get(self, key: str) -> bytes:
        """See Store."""
        return self._read(key, {})

    def get_range(self, key: str, start: int, length: int, *, if_match: str = "") -> bytes:
        """See Store."""
        assert start >= 0 and length >= 0
        if length == 0:
            return b""  # HTTP has no empty range
        options = {"Range": f"bytes={start}-{start + length - 1}"}
        if if_match:
            options["IfMatch"] = if_match
        data = self._read(key, options)
        if len(data) != length:
            raise Corrupt(f"{self._name(key)}: {length} bytes asked at {start}, {len(data)} came")
        return data

    def list(self, prefix: str, *, start_after: str = "") -> Iterator[ObjectInfo]:
        """See Store."""
        options = {"StartAfter": self._prefix + start_after} if start_after else {}
        for page in self._pages(Prefix=self._prefix + prefix, **options):
            for item in page.get("Contents", ()):
                yield ObjectInfo(
                    key=item["Key"][len(self._prefix) :],
                    length=int(item["Size"]),
                    etag=str(item.get("ETag", "")),
                    modified_ns=_ns(item.get("LastModified")),
                )

    def list_folders(self, prefix: str) -> Iterator[str]:
        """See Store."""
        for page in self._pages(Prefix=self._prefix + prefix, Delimiter="/"):
            for item in page.get("CommonPrefixes", ()):
                yield item["Prefix"][len(self._prefix) :]

    def delete(self, key: str) -> None:
        """See Store."""
        full = self._full(key)
        try:
            self._renewed.client.delete_object(Bucket=self._bucket, Key=full)
        except Exception as error:
            problem = translate(self._renewed.note(error), self._name(key))
            if isinstance(problem, NotFound) and _code(error) != "NoSuchBucket":
                return
            raise problem from error

    def local_path(self, key: str) -> Path | None:
        """There is no file."""
        return None

    def _full(self, key: str) -> str:
        check_key(self._prefix + key)
        return self._prefix + key

    def _name(self, key: str) -> str:
        return f"s3://{self._bucket}/{self._prefix}{key}"

    def _read(self, key: str, options: dict[str, str]) -> bytes:
        full = self._full(key)
        for attempt in range(_BODY_ATTEMPTS):
            try:
                response = self._renewed.client.get_object(Bucket=self._bucket, Key=full, **options)
            except Exception as error:
                raise translate(self._renewed.note(error), self._name(key)) from error
            try:
                with response["Body"] as body:
                    return bytes(body.read())
            except Exception as error:  # the connection broke off within the body
                if attempt == _BODY_ATTEMPTS - 1:
                    raise translate(self._renewed.note(error), self._name(key)) from error
        raise AssertionError("the last attempt returns or raises")

    def _pages(self, **options: Any) -> Iterator[dict[str, Any]]:
        pages = self._renewed.client.get_paginator("list_objects_v2").paginate(
            Bucket=self._bucket, **options
        )
        try:
            yield from pages
        except Exception as error:
            raise translate(
                self._renewed.note(error), f"s3://{self._bucket}/{options['Prefix']}"
            ) from error


def _ns(moment: datetime | None) -> int | None:
    return None if moment is None else int(moment.timestamp()) * 1_000_000_000


def _code(error: Exception) -> str:
    return str((getattr(error, "response", None) or {}).get("Error", {}).get("Code", ""))
