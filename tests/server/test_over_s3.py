"""The server as it stands in production: over a store that speaks S3, with TLS and a key."""

from __future__ import annotations

import json
import os
import shutil
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from ranklog.errors import NotFound, Unauthorized
from tests.server.test_roles import frame
from tests.servers import Server

pytestmark = [
    pytest.mark.sockets,
    pytest.mark.skipif(shutil.which("openssl") is None, reason="makes a certificate"),
]


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """For 127.0.0.1, signed by itself; its key lies beside it."""
    made = tmp_path / "tls.crt"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=ranklog".split()
    command += ["-addext", "subjectAltName=IP:127.0.0.1"]
    command += ["-keyout", str(tmp_path / "tls.key"), "-out", str(made)]
    subprocess.run(command, check=True, capture_output=True)
    return made


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"s3://served-{tmp_path.name.lower().replace('_', '-')[-20:]}"


@pytest.fixture
def environ(seaweedfs: Server, store: str, certificate: Path) -> dict[str, str]:
    seaweedfs.client("s3").create_bucket(Bucket=store.removeprefix("s3://"))
    return os.environ | seaweedfs.environment("s3") | {"SSL_CERT_FILE": str(certificate)}


def ranklog(*words: str) -> list[str]:
    return [sys.executable, "-m", "ranklog.cli.main", *words]


@pytest.fixture
def url(store: str, environ: dict[str, str], certificate: Path, tmp_path: Path) -> Iterator[str]:
    command = ranklog("serve", "--json", "--roles", "api,ingest,compact", "--store", store)
    command += ["--listen", "127.0.0.1:0", "--workers", "1", "--window", "0.2", "--keys", "store"]
    command += ["--tls-cert", str(certificate), "--tls-key", str(tmp_path / "tls.key")]
    command += ["--stream", str(tmp_path / "frames")]
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.kill()


def test_frames_go_over_tls_with_a_key_into_the_bucket_and_are_found(
    url: str,
    store: str,
    environ: dict[str, str],
    certificate: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from ranklog.client import Client

    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    made = ranklog("keys", "create", "--json", "--store", store, "--tenant", "acme")
    made += ["--scope", "read,write"]
    key = json.loads(subprocess.run(made, env=environ, check=True, capture_output=True).stdout)
    request = urllib.request.Request(
        f"{url}/v1/frames", frame(0), {"Authorization": f"Bearer {key['key']}"}
    )
    trusted = ssl.create_default_context(cafile=str(certificate))
    with urllib.request.urlopen(request, timeout=30, context=trusted) as answer:
        assert answer.status == 202
    client = Client(api=url, key=key["key"])
    found: list[str] = []
    deadline = time.monotonic() + 60
    while not found:
        assert time.monotonic() < deadline
        time.sleep(0.1)
        with suppress(NotFound):
            found = [line.text for line in client.search("", run="llama").lines]
    assert found == ["line 0"]
    with pytest.raises(Unauthorized):
        Client(api=url, key="rlk_nobody").search("", run="llama")
