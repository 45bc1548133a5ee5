"""Frames that a destination refuses: kept with the reason, told, counted, sent again; nothing waits."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from ranklog.agent import processes, refused, status
from ranklog.agent.collector import Collector, Options
from ranklog.agent.refused import RefusedFrames, kept_frames
from ranklog.agent.replay import replay
from ranklog.agent.sending import Sender
from ranklog.agent.sinks import EachSink, HttpSink, open_sink
from ranklog.agent.wal import Wal
from ranklog.agent.wal_segment import WalFrame
from ranklog.cli.main import main
from ranklog.errors import BadInput, TooLarge
from ranklog.produce import spool
from ranklog.produce.identity import Identity
from ranklog.produce.producer import Producer
from ranklog.stream.disk import DiskStream
from ranklog.stream.frames import decode_frame
from tests.agent.reading import lines_in, lines_of, streams_in

IDENTITY = Identity("default", "demo", "l1", 0, "n0", 3, 3, 8)


class Picky:
    """Takes frames into a stream, but for those with a word, while it is there."""

    def __init__(self, stream: DiskStream, word: str = "bad") -> None:
        self.stream = stream
        self.word = word

    def put(self, partition_key: str, data: bytes) -> str:
        if self.word and any(self.word in line.text for line in lines_of(decode_frame(data))):
            raise TooLarge(f"a frame of {len(data)} bytes")
        return self.stream.put(partition_key, data)


@pytest.fixture
def stream(tmp_path: Path) -> DiskStream:
    return DiskStream(tmp_path / "stream", sync=False)


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Producer]:
    made = Producer(tmp_path / "spool", IDENTITY)
    made.has_destination = True
    yield made
    made.close()


def say(one: Producer, *texts: str) -> None:
    for text in texts:
        one.emit(20, one.site_number("a.py", 1, None, None), text)


def texts(tmp_path: Path, channel: str = "logging") -> list[str]:
    return [line.text for line in lines_in(tmp_path / "stream") if line.channel == channel]


def test_a_refused_frame_is_kept_with_its_reason_and_holds_up_nothing(
    tmp_path: Path, stream: DiskStream, one: Producer
) -> None:
    collector = Collector(tmp_path / "spool", Picky(stream))
    for text in ("good 1", "bad 2", "good 3"):
        say(one, text)
        collector.poll(hurry=True)

    assert texts(tmp_path) == ["good 1", "good 3"]
    [kept] = kept_frames(tmp_path / "spool" / "refused")
    assert [line.text for line in lines_of(decode_frame(kept.data))] == ["bad 2"]
    assert kept.reason == f"a frame of {len(kept.data)} bytes"
    assert kept.key == "default/demo/n0"
    assert collector.ledger.frames_left == 0
    collector.close()


def test_who_waits_is_told_how_many_of_his_lines_were_refused(
    tmp_path: Path, stream: DiskStream, one: Producer
) -> None:
    collector = Collector(tmp_path / "spool", Picky(stream))
    say(one, "good 1", "good 2")
    collector.poll(hurry=True)
    assert one.flush(0.0) == 0

    say(one, "bad 3", "bad 4", "bad 5")
    collector.poll(hurry=True)
    assert one.flush(0.0) == 3
    say(one, "good 6")
    collector.poll(hurry=True)
    assert one.flush(0.0) == 3
    collector.close()
    again = Collector(tmp_path / "spool", Picky(stream))  # who goes on knows it too
    say(one, "bad 7")
    again.poll(hurry=True)
    assert one.flush(0.0) == 4
    again.close()


def test_nobody_is_told_that_lines_are_delivered_before_it_is_known_that_they_were_refused(
    tmp_path: Path, stream: DiskStream, one: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread sends: its frame may be refused right before it is acknowledged."""
    collector = Collector(tmp_path / "spool", Picky(stream))
    say(one, "bad 1")
    collector.poll(hurry=True, send=False)
    looked = collector._note_refused
    sent: list[bool] = []

    def look_and_send() -> None:
        looked()
        if not sent:
            sent.append(collector.sender.step())

    monkeypatch.setattr(collector, "_note_refused", look_and_send)
    collector.poll(send=False)

    assert sent == [True]
    assert one.flush(0.0) == 1
    assert spool.read_ack(tmp_path / "spool" / f"{one.process.incarnation}.acked")[1] == 1
    collector.close()


def test_a_line_of_the_rank_says_it_once_in_a_while_and_never_of_itself(
    tmp_path: Path, stream: DiskStream, one: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "REFUSED_NS", 3_600 * 10**9)
    collector = Collector(tmp_path / "spool", Picky(stream))
    for text in ("bad 1", "good 2", "bad 3", "good 4"):
        say(one, text)
        collector.poll(hurry=True)
    [told] = texts(tmp_path, "agent")
    assert told.startswith("1 line was refused and not delivered: a frame of")
    collector.close()

    all_of_it = Collector(tmp_path / "spool", Picky(stream, "e"))  # takes no line about it either
    for _ in range(5):
        all_of_it.poll(hurry=True)
    assert all_of_it.ledger.frames_left == 0
    all_of_it.close()


def test_a_reader_sees_that_lines_are_missing_until_they_are_replayed(
    tmp_path: Path, stream: DiskStream, one: Producer
) -> None:
    pytest.importorskip("pyarrow")
    from ranklog.client import Client

    collector = Collector(tmp_path / "spool", Picky(stream))
    for text in ("good 1", "bad 2", "good 3"):
        say(one, text)
        collector.poll(hurry=True)
    one.close()
    collector.finish(1.0)
    store = str(tmp_path / "store")
    assert main(["ingest", str(tmp_path / "stream"), "--store", store]) == 0

    def found() -> tuple[list[str], str, list[tuple[int, int]]]:
        with Client(store=store) as client:
            answer = client.search("good OR bad", run="demo")
        gaps = [(gap["first_seq"], gap["last_seq"]) for gap in answer.completeness.gaps]
        return sorted(line.text for line in answer.lines), answer.completeness.state, gaps

    before, state, gaps = found()
    assert before == ["good 1", "good 3"]
    assert (state, gaps) == ("gaps", [(1, 1)])
    done = replay(tmp_path / "spool" / "refused", f"store:{store}", {}, timeout_s=10.0)
    assert (done.frames, done.refused, done.left) == (1, 0, 0)
    after, _, gaps = found()
    assert (after, gaps) == (["bad 2", "good 1", "good 3"], [])
    assert list(kept_frames(tmp_path / "spool" / "refused")) == []


def test_a_spool_is_replayed_with_what_was_refused_and_what_is_refused_again_stays(
    tmp_path: Path, stream: DiskStream, one: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    picky = Picky(stream)
    collector = Collector(tmp_path / "spool", picky)
    say(one, "bad 1")
    collector.poll(hurry=True)
    say(one, "worse and bad 2")
    collector.poll(hurry=True)
    say(one, "good 3")
    collector.close()
    one.close()
    for path in (tmp_path / "spool").glob("*.process"):  # it has ended
        path.write_text(path.read_text().replace(f'"start": "{one.process.start}"', '"start": "1"'))
    picky.word = "worse"
    monkeypatch.setattr("ranklog.agent.replay.open_sink", lambda *_, **__: EachSink(picky))

    done = replay(tmp_path / "spool", "somewhere", {}, timeout_s=10.0)
    assert (done.refused, done.left) == (1, 0)
    assert "a frame of" in done.error
    assert sorted(texts(tmp_path)) == ["bad 1", "good 3"]
    [kept] = kept_frames(tmp_path / "spool" / "refused")
    assert b"worse" in b"".join(x.text.encode() for x in lines_of(decode_frame(kept.data)))


# --- room -----------------------------------------------------------------------------------------


def test_of_more_than_there_is_room_for_the_oldest_go_and_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refused, "FRAMES_MAX", 3)
    kept = RefusedFrames(tmp_path / "refused", bytes_max=100)
    for n in range(5):
        kept.keep("k", b"%d" % n, f"0.{n}", "no")

    assert [frame.data for frame in kept_frames(tmp_path / "refused")] == [b"2", b"3", b"4"]
    kept.keep("k", bytes(98), "0.9", "no")
    assert [len(frame.data) for frame in kept_frames(tmp_path / "refused")] == [1, 1, 98]
    assert (kept.frames, kept.bytes, kept.lost_frames) == (3, 100, 3)
    again = RefusedFrames(tmp_path / "refused", bytes_max=100)
    assert (again.frames, again.bytes, again.lost_frames, again.reason) == (3, 100, 3, "no")


def test_what_can_not_be_kept_is_told_as_dropped_by_its_stream(
    tmp_path: Path, stream: DiskStream, one: Producer
) -> None:
    spool.make_spool(tmp_path / "spool")
    (tmp_path / "spool" / "refused").write_text("a file where the folder would be")
    collector = Collector(tmp_path / "spool", Picky(stream))
    say(one, "bad 1", "bad 2")
    collector.poll(hurry=True)
    say(one, "good 3")
    collector.poll(hurry=True)
    collector.close()

    drops = [
        (drop.lines, drop.reason)
        for entry in streams_in(tmp_path / "stream")
        for drop in entry.drops
    ]
    assert drops == [(2, "refused")]
    assert (collector.sender.kept.lost_frames, collector.sender.kept.lost_lines) == (1, 2)


def test_what_is_kept_is_of_the_spool_s_quota(tmp_path: Path, stream: DiskStream) -> None:
    collector = Collector(tmp_path / "spool", stream, Options(quota_bytes=400))
    assert collector.sender.kept.bytes_max == 100
    collector.close()


# --- over HTTP, and as people see it --------------------------------------------------------------


class Refusing(BaseHTTPRequestHandler):
    """Answers each frame with the next status of the server's, then takes all."""

    def do_POST(self) -> None:
        server: Any = self.server
        data = self.rfile.read(int(self.headers["Content-Length"]))
        status = server.statuses.pop(0) if server.statuses else 202
        if status == 202:
            server.taken.append(data)
        body = json.dumps({"status": status, "detail": "the frame is\nno frame"}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def api() -> Iterator[Any]:
    server: Any = HTTPServer(("127.0.0.1", 0), Refusing)
    server.statuses, server.taken = [], []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("code", [400, 413, 422])
def test_a_frame_that_the_api_refuses_is_kept_and_the_next_goes_through(
    tmp_path: Path, api: Any, code: int
) -> None:
    api.statuses = [code]
    wal = Wal(tmp_path / "wal")
    for frame in (b"a", b"b"):
        wal.append([WalFrame(0, "k", frame)], {})
    url = f"http://127.0.0.1:{api.server_port}"
    sender = Sender(wal, open_sink(url, {}), tmp_path / "refused")
    sender.step()

    assert (api.taken, wal.unsent) == ([b"b"], 0)
    [kept] = kept_frames(tmp_path / "refused")
    assert (kept.data, kept.reason) == (
        b"a",
        f"{url}/v1/frames answered {code}: the frame is no frame",
    )


@pytest.mark.parametrize("code", [301, 405, 409, 415])
def test_an_answer_that_is_not_of_the_frame_is_waited_out(
    tmp_path: Path, api: Any, code: int
) -> None:
    """A wrong address refuses every frame: they stay in the log, and their order."""
    api.statuses = [code]
    wal = Wal(tmp_path / "wal")
    wal.append([WalFrame(0, "k", b"a")], {})
    sink = HttpSink(f"http://127.0.0.1:{api.server_port}", "")
    sender = Sender(wal, sink, tmp_path / "refused", draw=lambda low, high: 0.0)

    assert not sender.step()
    assert f"answered {code}" in sender.last_error
    assert sender.step()
    assert api.taken == [b"a"]


def test_status_says_how_many_are_kept_and_what_sends_them(
    tmp_path: Path, stream: DiskStream, one: Producer, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "spool"
    collector = Collector(folder, Picky(stream))
    say(one, "bad 1")
    collector.poll(hurry=True)
    status.write(folder, status.describe(collector, "https://logs", 0.0))
    collector.close()

    main(["agent", "status", "--spool", str(folder)])
    shown = capsys.readouterr().out
    assert "refused    1 kept" in shown
    assert f"ranklog replay {folder / 'refused'} sends them: a frame of" in shown


def test_a_bad_frame_does_not_take_others_of_its_batch_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    from ranklog.agent import store_sink

    def ingest(records: Any, **_: Any) -> None:
        if any(record.data == b"bad" for record in records):
            raise BadInput("no frame")

    monkeypatch.setattr(store_sink, "ingest_batch", ingest)
    sink = store_sink.StoreSink(str(tmp_path / "store"))
    outcomes = sink.put_all([("k", b"a"), ("k", b"bad"), ("k", b"c")])

    assert [type(outcome.error) for outcome in outcomes] == [type(None), BadInput, type(None)]
