"""Real servers on loopback for tests marked `sockets`: SeaweedFS (S3) and moto (S3, Kinesis).

Each is started once per session in a fresh folder on free ports, must listen on 127.0.0.1 only, and
is ended by its process id.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

START_TIMEOUT_S = 60
KEY_ID = "ranklogtestkey"
SECRET = "ranklogtestsecret"
REGION = "eu-central-1"
# The states of /proc/net/tcp.
_LISTEN = "0A"
_LOOPBACK = {"0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F"}


@dataclass(frozen=True)
class Server:
    """A server under test: where it is, and clients of it."""

    name: str
    url: str

    def client(self, service: str, **config: Any) -> Any:
        """A boto3 client; few retries, so that a test that fails does so soon."""
        import boto3
        from botocore.config import Config

        settings: dict[str, Any] = {"retries": {"total_max_attempts": 3}, "proxies": {}}
        return boto3.client(
            service,
            endpoint_url=self.url,
            region_name=REGION,
            aws_access_key_id=KEY_ID,
            aws_secret_access_key=SECRET,
            config=Config(**(settings | config)),
        )

    def environment(self, *services: str) -> dict[str, str]:
        """What a Lambda function or a command needs to reach it."""
        return {
            "AWS_ACCESS_KEY_ID": KEY_ID,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "NO_PROXY": "127.0.0.1",
        } | {f"AWS_ENDPOINT_URL_{service.upper()}": self.url for service in services}


@pytest.fixture(scope="session")
def seaweedfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """An S3 object store: conditional writes, ranges, signatures checked."""
    with running_seaweedfs(tmp_path_factory.mktemp("weed")) as server:
        yield server


@pytest.fixture(scope="session")
def moto_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Kinesis and S3 as moto answers for them."""
    with running_moto(tmp_path_factory.mktemp("moto")) as server:
        yield server


@contextmanager
def answering(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """A server of our own in a thread; yields its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def running_seaweedfs(folder: Path) -> Iterator[Server]:
    """The object store with its data in `folder`, which may hold that of an earlier run."""
    # gRPC ports are HTTP ports + 10,000 where they are not named: all are.
    names = [
        *("s3.port", "s3.port.grpc", "master.port", "master.port.grpc", "volume.port"),
        *("volume.port.grpc", "filer.port", "filer.port.grpc", "admin.port", "admin.port.grpc"),
    ]
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    command = [
        *(_tool("weed"), "mini", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={folder}"),
        *("-master.telemetry=false", "-admin.ui=false", "-webdav=false"),
        *("-s3.port.iceberg=0", "-s3.port.lance=0"),
        *(f"-filer.localSocket={folder}/filer.sock", f"-s3.localSocket={folder}/s3.sock"),
        *(f"-{name}={port}" for name, port in ports.items()),
    ]
    keys = {"AWS_ACCESS_KEY_ID": KEY_ID, "AWS_SECRET_ACCESS_KEY": SECRET}
    with _started(command, folder, keys):
        yield _ready(Server("seaweedfs", f"http://127.0.0.1:{ports['s3.port']}"))


@contextmanager
def running_moto(folder: Path) -> Iterator[Server]:
    """moto, whose state ends with it; its output goes to `folder`."""
    (port,) = free_ports(1)
    command = [_tool("moto_server"), "-H", "127.0.0.1", "-p", str(port)]
    with _started(command, folder, {}):
        yield _ready(Server("moto", f"http://127.0.0.1:{port}"))


def free_ports(count: int) -> list[int]:
    """Ports of loopback that nobody listens on at the moment, all different."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class _started:
    """A process for the length of a `with`; its output goes to `output.txt` in its folder."""

    def __init__(self, command: list[str], folder: Path, environment: dict[str, str]) -> None:
        self._log = (folder / "output.txt").open("wb")
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def __enter__(self) -> subprocess.Popen[bytes]:
        return self._process

    def __exit__(self, *_: object) -> None:
        try:
            listening = listening_addresses(self._process.pid)
        finally:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(15)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._log.close()
        assert listening <= _LOOPBACK, f"{self._process.args!r} listened on {listening}"


def listening_addresses(pid: int) -> set[str]:
    """The local addresses, as /proc writes them, on which a process listens; none without /proc."""
    if not Path(f"/proc/{pid}/fd").is_dir():
        return set()
    inodes = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            inodes.add(os.readlink(link))
        except FileNotFoundError:
            continue
    found = set()
    for table in ("tcp", "tcp6"):
        path = Path(f"/proc/{pid}/net/{table}")
        for line in path.read_text().splitlines()[1:] if path.is_file() else ():
            fields = line.split()
            if fields[3] == _LISTEN and f"socket:[{fields[9]}]" in inodes:
                found.add(fields[1].partition(":")[0])
    return found


def _tool(name: str) -> str:
    """A program of the environment the tests run in, or a skip."""
    path = shutil.which(name, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


def _ready(server: Server) -> Server:
    """Wait until S3 answers a signed request."""
    client = server.client("s3", connect_timeout=1, read_timeout=5)
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            client.list_buckets()
        except Exception as error:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{server.name} did not start") from error
            time.sleep(0.1)
        else:
            client.close()
            return server
