"""The stores that the contract suite runs over."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ranklog.store import DiskStore, MemoryStore, S3Store, Store

IN_PROCESS = ["memory", "disk"]
S3 = [pytest.param(name, marks=pytest.mark.sockets) for name in ("seaweedfs", "moto_server")]


@pytest.fixture(scope="session")
def s3_client(request: pytest.FixtureRequest) -> Any:
    """A client per server, with a bucket `ranklog`, by the fixture's name."""
    clients: dict[str, Any] = {}

    def client(name: str) -> Any:
        if name not in clients:
            clients[name] = request.getfixturevalue(name).client("s3", max_pool_connections=64)
            clients[name].create_bucket(
                Bucket="ranklog",
                CreateBucketConfiguration={"LocationConstraint": "eu-central-1"},
            )
        return clients[name]

    yield client
    for each in clients.values():
        each.close()


@pytest.fixture(params=[*IN_PROCESS, *S3])
def store(request: pytest.FixtureRequest, tmp_path: Path, s3_client: Any) -> Iterator[Store]:
    """An empty store of each kind; on S3, a fresh prefix of one bucket."""
    if request.param == "memory":
        yield MemoryStore()
    elif request.param == "disk":
        yield DiskStore(tmp_path / "store")
    else:
        yield S3Store("ranklog", f"test-{uuid.uuid4().hex}", s3_client(request.param))
