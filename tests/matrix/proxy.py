"""A proxy on loopback that does to a request what the request asks for, in front of a real server.

A client names the fault in a header, so what happens to whom is decided where the seed is: nothing here
draws or remembers. Without the header a request goes through as it is.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
import time
from dataclasses import dataclass

HEADER = "x-matrix-fault"
LATE_S = 0.01
_LINGER_NONE = struct.pack("ii", 1, 0)  # close with a reset

# What can be done to a request. "after": it was carried out, and the client learns otherwise.
LATE, RESET_BEFORE, RESET_AFTER, TORN = "late", "reset before", "reset after", "torn"
ERROR_500, ERROR_503, SLOW_DOWN, LOST_503 = "500", "503", "throttled", "503 after"
PARTIAL, TWICE = "partial", "twice"  # of PutRecords


@dataclass(slots=True)
class Message:
    """One HTTP message: its first line and headers, and its body as it came."""

    head: bytes
    body: bytes = b""

    def header(self, name: str) -> str:
        """Its value, "" where it is not there."""
        wanted = name.lower().encode() + b":"
        for line in self.head.split(b"\r\n")[1:]:
            if line.lower().startswith(wanted):
                return line[len(wanted) :].strip().decode("latin-1")
        return ""

    def without(self, *names: str) -> bytes:
        """The head less some headers."""
        gone = tuple(name.lower().encode() + b":" for name in names)
        first, *rest = self.head.split(b"\r\n")
        return b"\r\n".join([first, *(one for one in rest if not one.lower().startswith(gone))])


class Peer:
    """A socket and what was read ahead of it."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = sock
        self._ahead = b""

    def read_message(self, *, is_head: bool = False) -> Message | None:
        """The next message; None at the end. `is_head`: an answer without a body."""
        at = self._fill_until(b"\r\n\r\n")
        if at < 0:
            return None
        message = Message(self._ahead[:at])
        self._ahead = self._ahead[at + 4 :]
        if message.header("expect").lower() == "100-continue":
            self.sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        message.body = self._body(message, is_head)
        return message

    def _body(self, message: Message, is_head: bool) -> bytes:
        if is_head or message.head.split(b" ")[1][:3] in (b"204", b"304"):
            return b""
        if message.header("transfer-encoding").lower() == "chunked":
            return self._chunks()
        length = message.header("content-length")
        if length:
            return self._take(int(length))
        if message.head.startswith(b"HTTP/"):  # to the end of the connection
            return self._rest()
        return b""

    def _chunks(self) -> bytes:
        whole = b""
        while True:
            at = self._fill_until(b"\r\n")
            size = int(self._ahead[:at].split(b";")[0], 16)
            whole += self._take(at + 2 + size + 2)
            if not size:
                return whole

    def _take(self, size: int) -> bytes:
        parts, have = [self._ahead], len(self._ahead)
        while have < size and (data := self.sock.recv(262_144)):
            parts.append(data)
            have += len(data)
        whole = b"".join(parts)
        self._ahead = whole[size:]
        return whole[:size]

    def _rest(self) -> bytes:
        parts = [self._ahead]
        while data := self.sock.recv(262_144):
            parts.append(data)
        self._ahead = b""
        return b"".join(parts)

    def _fill_until(self, mark: bytes) -> int:
        while (at := self._ahead.find(mark)) < 0:
            data = self.sock.recv(65_536)
            if not data:
                return -1
            self._ahead += data
        return at

    def send(self, message: Message) -> None:
        self.sock.sendall(message.head + b"\r\n\r\n" + message.body)

    def reset(self) -> None:
        """Cut the connection, so that the other side gets an error and not an end."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NONE)
        self.sock.close()


class _Cut(Exception):
    """The client's connection is gone."""


class Proxy:
    """Listens until `close`. `url` is what clients are given."""

    def __init__(self, upstream: str) -> None:
        host, _, port = upstream.removeprefix("http://").partition(":")
        self._upstream = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.seen = 0
        threading.Thread(target=self._accept, name="matrix-proxy", daemon=True).start()

    def close(self) -> None:
        """No new connections; those that are there end with their clients."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        client = Peer(sock)
        server: Peer | None = None
        with contextlib.suppress(OSError, _Cut):
            while (request := client.read_message()) is not None:
                self.seen += 1
                server = self._answer(client, request, server)
        for peer in (client, server):
            if peer is not None:
                peer.sock.close()

    def _answer(self, client: Peer, request: Message, server: Peer | None) -> Peer | None:
        """One request; the connection to the server, if it can be used again."""
        fault = request.header(HEADER)
        if fault == RESET_BEFORE:
            client.reset()
            raise _Cut
        if fault == LATE:
            time.sleep(LATE_S)
        if fault in (ERROR_500, ERROR_503, SLOW_DOWN):
            client.send(refusal(request, fault))
            return server
        if fault == PARTIAL:
            request, told = split_records(request)
        if fault == TWICE:
            _, server = self._forward(request, server)
        answer, server = self._forward(request, server)
        if fault == RESET_AFTER:
            client.reset()
            raise _Cut
        if fault == TORN:
            client.sock.sendall(answer.head + b"\r\n\r\n" + answer.body[: len(answer.body) // 2])
            client.reset()
            raise _Cut
        if fault == LOST_503:
            answer = refusal(request, ERROR_503)
        if fault == PARTIAL:
            answer = join_outcomes(answer, told)
        client.send(answer)
        return server

    def _forward(self, request: Message, server: Peer | None) -> tuple[Message, Peer | None]:
        request = Message(request.without(HEADER, "expect"), request.body)
        is_head = request.head.startswith(b"HEAD ")
        answer = None
        if server is not None:
            with contextlib.suppress(OSError):  # it was closed while nobody used it
                server.send(request)
                answer = server.read_message(is_head=is_head)
        if answer is None:
            server = Peer(socket.create_connection(self._upstream))
            server.send(request)
            answer = server.read_message(is_head=is_head)
            assert answer is not None, "the server closed the connection"
        assert server is not None
        ends = answer.header("connection").lower() == "close" or answer.head[:8] == b"HTTP/1.0"
        if not ends:
            return answer, server
        server.sock.close()
        length = f"Content-Length: {len(answer.body)}".encode()
        head = Message(answer.without("connection", "content-length")).head
        return Message(
            head.replace(b"HTTP/1.0", b"HTTP/1.1", 1) + b"\r\n" + length, answer.body
        ), None


# --- what servers say ---------------------------------------------------------------------------
def refusal(request: Message, fault: str) -> Message:
    """What S3, or Kinesis, answers where it does not do a request now."""
    if request.header("x-amz-target"):
        name, status = {
            ERROR_500: ("InternalFailure", "500 Internal Server Error"),
            ERROR_503: ("ServiceUnavailable", "503 Service Unavailable"),
            SLOW_DOWN: ("ProvisionedThroughputExceededException", "400 Bad Request"),
        }[fault]
        return _json(status, {"__type": name, "message": "injected"})
    name, status = {
        ERROR_500: ("InternalError", "500 Internal Server Error"),
        ERROR_503: ("ServiceUnavailable", "503 Service Unavailable"),
        SLOW_DOWN: ("SlowDown", "503 Slow Down"),
    }[fault]
    body = f"<Error><Code>{name}</Code><Message>injected</Message></Error>".encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/xml\r\nContent-Length: {len(body)}"
    return Message(head.encode(), body)


def _json(status: str, content: object) -> Message:
    body = json.dumps(content).encode()
    kind = "application/x-amz-json-1.1"
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}"
    return Message(head.encode(), body)


def split_records(request: Message) -> tuple[Message, list[bool]]:
    """PutRecords with every other record left out, and which are in; of one record nothing is."""
    content = json.loads(request.body)
    records = content["Records"]
    told = [at % 2 == 0 for at in range(len(records))] if len(records) > 1 else [True]
    content["Records"] = [record for record, kept in zip(records, told, strict=True) if kept]
    body = json.dumps(content).encode()
    head = request.without("content-length") + f"\r\nContent-Length: {len(body)}".encode()
    return Message(head, body), told


def join_outcomes(answer: Message, told: list[bool]) -> Message:
    """The server's answer with those that were left out in their places: throttled."""
    content = json.loads(answer.body)
    done = iter(content["Records"])
    code = "ProvisionedThroughputExceededException"
    content["Records"] = [
        next(done) if kept else {"ErrorCode": code, "ErrorMessage": "injected"} for kept in told
    ]
    content["FailedRecordCount"] = told.count(False)
    return _json("200 OK", content)
