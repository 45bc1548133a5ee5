"""Where an export goes: a folder, `file://…`, or `s3://bucket/prefix`.

For S3 the files are made in a temporary folder, then uploaded, each only if no object of its name is
there. The last file of the listing follows when all others are there. What fails or is interrupted
takes back what it uploaded.
"""

from __future__ import annotations

import asyncio
import tempfile
import uuid
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from ranklog.client.answer import Listing
from ranklog.errors import BadInput, RanklogError
from ranklog.store.aws import status_of, translate
from ranklog.store.open import local_folder
from ranklog.store.s3 import S3Store

# Memory of an upload: at most files x parts x bytes (a file below two parts goes in one piece).
_FILES_AT_ONCE = 4
_PARTS_AT_ONCE = 4
_PART_BYTES = 8 << 20
_PARTS_MAX = 10_000  # of S3
# Metadata of an object: which export it is of.
_MARK = "ranklog-export"
_CONFIG = {
    "connect_timeout": 5,
    "read_timeout": 60,
    "retries": {"mode": "standard", "total_max_attempts": 5},
}


def deliver(out: str | Path, write: Callable[[Path], Listing]) -> Listing:
    """Have `write` fill the folder that `out` names, or a temporary one whose files go to S3.

    Raises BadInput, and what `write` and S3 raise.
    """
    if isinstance(out, Path):
        if out.parts[:1] in (("s3:",), ("file:",)):
            raise BadInput(f"{out} was a URL before it was a Path", hint="give out a string")
        return write(out)
    scheme, separator, rest = out.partition("://")
    if not separator:
        return write(Path(out))
    if scheme == "file":
        return write(Path(local_folder(out)))
    if scheme != "s3":
        hint = "a folder, file:///path or s3://bucket/prefix"
        raise BadInput(f"nothing is exported to {scheme}://", hint=hint)
    bucket, _, prefix = rest.partition("/")
    return _to_s3(S3Store(bucket, prefix), write)


def _to_s3(target: S3Store, write: Callable[[Path], Listing]) -> Listing:
    _filesystem_class()
    _claim(target)
    with tempfile.TemporaryDirectory(prefix="ranklog-export-") as name:
        folder = Path(name) / "out"
        listing = write(folder)
        files = [row["file"] for row in listing.rows if (folder / row["file"]).is_file()]
        if files:
            _claim(target)  # it may have been filled while the lines were read
            _finish(_Upload(target, folder, files).run())
    return listing


def _filesystem_class() -> Any:
    try:
        from s3fs import S3FileSystem
    except ImportError as error:
        raise BadInput("s3fs is not installed", hint="pip install 'ranklog[aws]'") from error
    return S3FileSystem


def _claim(target: S3Store) -> None:
    """Consoles mark a folder with an empty object of its name: that is no file."""
    if any(item.key or item.length for item in target.list("")):
        raise BadInput(f"{target.url} is not empty", hint="name a new prefix with --out")


class _Upload:
    """Files of a folder on their way into an empty prefix: all of them, or none."""

    def __init__(self, target: S3Store, folder: Path, files: list[str]) -> None:
        self._target = target
        self._folder = folder
        self._files = files
        self._mark = uuid.uuid4().hex
        self._begun: set[str] = set()
        self._slots = asyncio.Semaphore(_FILES_AT_ONCE)
        # An instance of its own: it belongs to the event loop that it is first used in.
        self._s3 = _filesystem_class()(
            asynchronous=True,
            skip_instance_cache=True,
            use_listings_cache=False,
            config_kwargs=_CONFIG,
        )
        self._s3.retries = 1  # botocore's are enough

    async def run(self) -> None:
        session = None
        try:
            session = await self._s3.set_session()
            await self._put_all(self._files[:-1])
            await self._put(self._files[-1])
        except BaseException as error:
            if session is not None:
                await self._take_back()
            if isinstance(error, RanklogError) or not isinstance(error, Exception):
                raise
            raise translate(error, self._target.url) from error
        finally:
            if session is not None:
                await session.close()

    async def _put_all(self, files: list[str]) -> None:
        tasks = [asyncio.create_task(self._put(file)) for file in files]
        try:
            await asyncio.gather(*tasks)
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise

    async def _put(self, file: str) -> None:
        async with self._slots:
            self._begun.add(file)
            path = self._folder / file
            url = f"{self._target.url}/{file}"
            try:
                await self._s3._put_file(
                    str(path),
                    url,
                    mode="create",
                    chunksize=max(_PART_BYTES, -(-path.stat().st_size // _PARTS_MAX)),
                    max_concurrency=_PARTS_AT_ONCE,
                    Metadata={_MARK: self._mark},
                )
            except Exception as error:
                # s3fs wraps what botocore says
                said = error if error.__cause__ is None else error.__cause__
                assert isinstance(said, Exception)
                if status_of(said) == 412:
                    if await self._is_ours(file):
                        return
                    self._begun.discard(file)  # another's
                    hint = "name a new prefix with --out"
                    raise BadInput(f"{url} came up meanwhile", hint=hint) from error
                raise translate(said, url) from error

    async def _is_ours(self, file: str) -> bool:
        """A PUT whose answer was lost is sent again, and then meets itself."""
        bucket, prefix = self._place()
        head = await self._s3._call_s3("head_object", Bucket=bucket, Key=prefix + file)
        return bool(head.get("Metadata", {}).get(_MARK) == self._mark)

    async def _take_back(self) -> None:
        """Best effort: the error that led here is the one to tell."""
        with suppress(Exception):
            await self._abort_parts()
        for file in self._begun:
            with suppress(RanklogError):
                await asyncio.to_thread(self._target.delete, file)

    async def _abort_parts(self) -> None:
        """s3fs does so where an upload fails, not where it is interrupted."""
        bucket, prefix = self._place()
        found = await self._s3._call_s3("list_multipart_uploads", Bucket=bucket, Prefix=prefix)
        for item in found.get("Uploads", ()):
            if item["Key"].removeprefix(prefix) in self._begun:
                await self._s3._abort_mpu(bucket, item["Key"], item["UploadId"])

    def _place(self) -> tuple[str, str]:
        bucket, _, prefix = self._target.url.removeprefix("s3://").partition("/")
        return bucket, f"{prefix}/" if prefix else ""


def _finish(work: Coroutine[Any, Any, None]) -> None:
    """Run it in a thread: a caller in a notebook is in an event loop already. Ctrl-C cancels it."""
    stop: Future[Callable[[], Any]] = Future()

    async def stoppable() -> None:
        task = asyncio.current_task()
        assert task is not None
        stop.set_result(partial(asyncio.get_running_loop().call_soon_threadsafe, task.cancel))
        await work

    with ThreadPoolExecutor(1) as pool:
        ended = pool.submit(asyncio.run, stoppable())
        try:
            ended.result()
        except BaseException:
            if not ended.done():
                with suppress(RuntimeError):  # it ended by itself, just now
                    stop.result()()
            raise
