"""Exports to S3, over real servers: whole, or nothing is left; and to `file://`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ranklog.client import Client, destination
from ranklog.client.answer import Listing
from ranklog.client.destination import deliver
from ranklog.errors import BadInput, NotFound, RanklogError, Unavailable
from ranklog.store.memory import MemoryStore
from tests.corpus_lines import TENANT, random_corpus
from tests.servers import KEY_ID, REGION, SECRET, free_ports

BUCKET = "exports"


class Bucket:
    """A bucket of one server, whose environment leads there, and a fresh prefix in it."""

    def __init__(self, server: Any) -> None:
        self.server = server
        self.client = server.client("s3")
        self.prefix = f"out-{uuid.uuid4().hex}"
        self.out = f"s3://{BUCKET}/{self.prefix}"
        place = {"LocationConstraint": REGION}
        if BUCKET not in [each["Name"] for each in self.client.list_buckets()["Buckets"]]:
            self.client.create_bucket(Bucket=BUCKET, CreateBucketConfiguration=place)

    def put(self, name: str, data: bytes) -> None:
        self.client.put_object(Bucket=BUCKET, Key=f"{self.prefix}/{name}", Body=data)

    def objects(self) -> dict[str, bytes]:
        found = self.client.list_objects_v2(Bucket=BUCKET, Prefix=f"{self.prefix}/")
        keys = [item["Key"] for item in found.get("Contents", ())]
        return {
            key.removeprefix(f"{self.prefix}/"): self.client.get_object(Bucket=BUCKET, Key=key)[
                "Body"
            ].read()
            for key in keys
        }

    def parts(self) -> list[Any]:
        found = self.client.list_multipart_uploads(Bucket=BUCKET, Prefix=f"{self.prefix}/")
        return list(found.get("Uploads", ()))


@pytest.fixture(params=["seaweedfs", "moto_server"])
def bucket(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    made = Bucket(request.getfixturevalue(request.param))
    for name, value in made.server.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", made.server.url)
    yield made
    made.client.close()


@pytest.fixture
def client() -> Client:
    memory = MemoryStore()
    random_corpus(3).ingest(memory)
    return Client(store=memory, tenant=TENANT)


def folder_files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def writer(files: dict[str, bytes]) -> Any:
    """Stands for an export: writes these files."""

    def write(folder: Path) -> Listing:
        for name, data in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
        return Listing([{"file": name} for name in files], None, None)  # type: ignore[arg-type]

    return write


@pytest.mark.sockets
@pytest.mark.parametrize("format", ["parquet", "jsonl", "text"])
def test_s3_gets_what_a_folder_gets(
    client: Client, bucket: Bucket, tmp_path: Path, format: str
) -> None:
    local = client.export("", out=tmp_path / "out", format=format, since="2026-01-01")
    remote = client.export("", out=bucket.out + "/", format=format, since="2026-01-01")
    assert remote.rows == local.rows != []
    assert bucket.objects() == folder_files(tmp_path / "out")
    with pytest.raises(BadInput, match="is not empty"):
        client.export("", out=bucket.out, format=format, since="2026-01-01")
    assert bucket.objects() == folder_files(tmp_path / "out")


@pytest.mark.sockets
def test_a_pin_takes_its_evidence_along(client: Client, bucket: Bucket) -> None:
    pin = client.search("", since="2026-01-01", pin=True).pin
    assert pin is not None
    listing = client.export(out=bucket.out, format="jsonl", pin=pin["id"])
    found = bucket.objects()
    assert set(found) == {row["file"] for row in listing.rows}
    assert found.keys() > {"lines.jsonl", "SHA256SUMS"}


@pytest.mark.sockets
def test_nothing_found_uploads_nothing(client: Client, bucket: Bucket) -> None:
    assert client.export("absent", out=bucket.out, since="2026-01-01").rows == []
    assert bucket.objects() == {}


@pytest.mark.sockets
def test_a_marker_of_a_folder_is_no_file(bucket: Bucket) -> None:
    bucket.put("", b"")
    deliver(bucket.out, writer({"a": b"1"}))
    assert bucket.objects()["a"] == b"1"


@pytest.mark.sockets
def test_a_large_file_goes_in_parts(bucket: Bucket) -> None:
    data = os.urandom(2 * destination._PART_BYTES + 12_345)
    deliver(bucket.out, writer({"a/large": data, "b %41+=@": b""}))
    assert bucket.objects() == {"a/large": data, "b %41+=@": b""}
    assert bucket.parts() == []


@pytest.mark.sockets
def test_a_caller_within_an_event_loop_may_export(bucket: Bucket) -> None:
    async def notebook() -> None:
        deliver(bucket.out, writer({"a": b"1"}))

    asyncio.run(notebook())
    assert bucket.objects() == {"a": b"1"}


@pytest.mark.sockets
@pytest.mark.parametrize("large", [False, True])
def test_what_another_puts_meanwhile_stays_and_nothing_else_does(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, large: bool
) -> None:
    files = {f"d/{i}": b"mine" for i in range(9)}
    files["last"] = bytes(2 * destination._PART_BYTES) if large else b"mine"

    def claim(target: Any) -> None:
        bucket.put("last", b"theirs")

    monkeypatch.setattr(destination, "_claim", claim)
    with pytest.raises(BadInput, match="last came up meanwhile"):
        deliver(bucket.out, writer(files))
    assert bucket.objects() == {"last": b"theirs"}
    assert bucket.parts() == []


@pytest.mark.sockets
def test_an_export_that_fails_leaves_nothing(bucket: Bucket) -> None:
    def write(folder: Path) -> Listing:
        writer({"a": b"1"})(folder)
        raise BadInput("no")

    with pytest.raises(BadInput, match="no"):
        deliver(bucket.out, write)
    assert bucket.objects() == {}


@pytest.mark.sockets
@pytest.mark.parametrize("fails_at", [0, 3, 9])
def test_an_upload_that_fails_is_taken_back(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    files = {f"d/{i}": b"mine" for i in range(10)}
    original = destination._filesystem_class()._put_file

    async def put(self: Any, source: str, url: str, **options: Any) -> None:
        if url.endswith(f"/{fails_at}"):
            raise ConnectionError("lost")
        await original(self, source, url, **options)

    monkeypatch.setattr(destination._filesystem_class(), "_put_file", put)
    with pytest.raises(Unavailable, match=f"d/{fails_at}: lost"):
        deliver(bucket.out, writer(files))
    assert bucket.objects() == {}


@pytest.mark.sockets
def test_ctrl_c_takes_back_what_is_there(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    data = bytes(3 * destination._PART_BYTES)
    original = destination._filesystem_class()._call_s3

    interrupts = iter([signal.SIGINT])  # one: parts are sent side by side

    async def call(self: Any, method: str, *given: Any, **options: Any) -> Any:
        found = await original(self, method, *given, **options)
        if method == "upload_part":
            for number in interrupts:
                signal.pthread_kill(threading.main_thread().ident or 0, number)
            await asyncio.sleep(60)
        return found

    monkeypatch.setattr(destination._filesystem_class(), "_call_s3", call)
    with pytest.raises(KeyboardInterrupt):
        deliver(bucket.out, writer({"small": b"1", "large": data}))
    assert bucket.objects() == {}
    assert bucket.parts() == []


@pytest.mark.sockets
def test_a_put_that_meets_itself_is_no_clash(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = destination._filesystem_class()._call_s3

    async def call(self: Any, method: str, *given: Any, **options: Any) -> Any:
        if method == "put_object":  # its answer is lost, so that it is sent again
            await original(self, method, *given, **options)
        return await original(self, method, *given, **options)

    monkeypatch.setattr(destination._filesystem_class(), "_call_s3", call)
    deliver(bucket.out, writer({"a": b"1", "b": b"2"}))
    assert bucket.objects() == {"a": b"1", "b": b"2"}


@pytest.mark.sockets
def test_no_such_bucket_is_one_line(bucket: Bucket) -> None:
    with pytest.raises(NotFound) as error:
        deliver("s3://absent-bucket/x", writer({"a": b"1"}))
    assert "absent-bucket" in error.value.message and "\n" not in str(error.value)


@pytest.mark.sockets
def test_wrong_keys_are_one_line(seaweedfs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in seaweedfs.environment("s3").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    with pytest.raises(BadInput, match="check the credentials") as error:
        deliver("s3://bucket/x", writer({"a": b"1"}))
    assert "\n" not in str(error.value)


@pytest.mark.sockets
def test_an_endpoint_that_does_not_answer_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    (port,) = free_ports(1)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY_ID)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
    with pytest.raises(Unavailable, match=str(port)) as error:
        deliver("s3://bucket/x", writer({"a": b"1"}))
    assert "\n" not in str(error.value)


def test_without_s3fs_a_hint_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, client: Client
) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    with pytest.raises(BadInput, match=r"s3fs is not installed \(pip install 'ranklog\[aws\]'\)"):
        client.export("", out="s3://bucket/x")


def test_a_file_url_is_a_folder(client: Client, tmp_path: Path) -> None:
    out = tmp_path / "a b"
    client.export("", out=out.as_uri(), since="2026-01-01")
    assert [path.name for path in out.iterdir()] == ["lines.parquet"]


@pytest.mark.parametrize(
    "out", ["gs://bucket/x", "s3://", "file://elsewhere/x", Path("s3://bucket/x")]
)
def test_what_names_no_place_is_refused(
    client: Client, out: str | Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RanklogError) as error:
        client.export("", out=out)
    assert isinstance(error.value, BadInput)
    assert list(tmp_path.iterdir()) == []
