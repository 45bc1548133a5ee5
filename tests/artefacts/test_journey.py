"""The system as it is deployed: built functions, real runtime client, real sockets.

The first issue's journey, and what goes wrong on the way: a poison record, a worker that is killed in the
middle of a batch, scans that take too long, answers over what Lambda carries, too many calls at once.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from ranklog.client import Client
from ranklog.model.stream import Stream
from ranklog.stream.builder import FrameBuilder
from ranklog.stream.frames import encode_frame
from ranklog.stream.kinesis import put_frames
from ranklog.stream.partition import partition_key
from tests.artefacts.http import Request
from tests.artefacts.stack import TENANT, Stack
from tests.aws.lambda_client import PAYLOAD_BYTES_MAX
from tests.aws.test_journey import EXPECTED, FAULT, FRAMES, RANKS, SITE, T0_NS, frames_of_the_job
from tests.servers import KEY_ID, REGION, SECRET

pytestmark = [pytest.mark.artefacts, pytest.mark.sockets]

RUN = "llama-8b"
WAIT_S = 60.0


def put(stack: Stack, frames: Sequence[tuple[str, bytes]] = ()) -> None:
    outcomes = put_frames(stack.kinesis, stack.stream_name, frames or frames_of_the_job())
    assert all(outcome.accepted for outcome in outcomes)


def wait_for(what: Callable[[], bool]) -> None:
    until_s = time.monotonic() + WAIT_S
    while not what():
        assert time.monotonic() < until_s, "not in time"
        time.sleep(0.1)


def search(stack: Stack, query: str = "", **members: Any) -> dict[str, Any]:
    body = {"query": query, "run": RUN, "order": "oldest", "limit": 0, **members}
    status, answer = stack.ask("/v1/search", body)
    assert status == 200, answer
    found: dict[str, Any] = answer
    return found


def texts(answer: dict[str, Any]) -> list[str]:
    return [line["text"] for line in answer["lines"]]


def wait_for_lines(stack: Stack, count: int = len(EXPECTED)) -> None:
    def is_there() -> bool:
        status, answer = stack.ask("/v1/count", {"query": "", "run": RUN})
        return status == 200 and answer["count"] == count

    wait_for(is_there)


def boto_lambda(stack: Stack) -> Any:
    import boto3

    return boto3.client(
        "lambda",
        endpoint_url=stack.lambdas.url,
        region_name=REGION,
        aws_access_key_id=KEY_ID,
        aws_secret_access_key=SECRET,
    )


def test_lines_of_a_job_are_found_as_they_were_logged(start: Any) -> None:
    stack = start()
    put(stack)
    wait_for_lines(stack)
    answer = search(stack)
    assert texts(answer) == EXPECTED
    assert answer["completeness"]["state"] == "complete"
    [fault] = search(stack, "level>=ERROR rank:2")["lines"]
    assert (fault["text"], fault["iteration"], fault["call_site"]) == (FAULT, 17, SITE.site)
    direct = stack.query("/v1/search", {"query": "level>=ERROR", "run": RUN})
    assert (direct["status"], texts(direct["body"])) == (200, [FAULT])


def test_the_questions_of_the_first_journey_have_answers(start: Any, tmp_path: Path) -> None:
    """Import into the bucket, then search, call sites, comparison, counts, runs by the Python client."""
    stack = start()
    logs = tmp_path / "logs"
    logs.mkdir()
    lines = [
        f"2026-01-02 03:04:{i:02d},000 INFO trainer.py:88 step {i} loss {2 - i / 50:.3f}"
        for i in range(50)
    ]
    (logs / "rank_0.log").write_text("\n".join(lines) + "\n")
    (logs / "rank_1.log").write_text("\n".join(lines[:20] + lines[21:]) + "\n")
    command = [sys.executable, "-m", "ranklog.cli.main", "import", str(logs), "--run", "imported"]
    environment = os.environ | stack.environment | {"XDG_CACHE_HOME": str(tmp_path)}
    imported = subprocess.run(
        [*command, "--store", stack.store.url, "--tenant", TENANT, "--rank-from", r"rank_(\d+)"],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
    )
    assert imported.returncode == 0, imported.stderr
    put(stack)
    wait_for_lines(stack)
    with Client(api=stack.api.url, key=stack.key) as client:
        wait_for(lambda: {row["run"] for row in client.runs().rows} == {RUN, "imported"})
        wait_for(lambda: client.count("", run="imported").count == 99)
        assert client.search('"step 20 "', run="imported").lines[0].rank == 0
        assert sum(row["count"] for row in client.callsites(run=RUN).rows) == len(EXPECTED)
        hunks = client.compare(run="imported", ranks="0,1").rows
        assert any("step 20" in json.dumps(hunk) for hunk in hunks)
        by_rank = client.count("", run=RUN, by="rank")
        assert [count for _, count in by_rank.rows] == [len(EXPECTED) // RANKS] * RANKS


def test_who_has_no_key_gets_nothing(start: Any) -> None:
    stack = start(mappings=False)
    body = {"query": "", "run": RUN}
    assert stack.ask("/v1/search", body, Authorization="")[0] == 401
    assert stack.ask("/v1/search", body, Authorization="Bearer nobody's")[0] == 403
    assert stack.ask("/v1/nothing")[0] == 404


def test_a_poison_record_is_set_aside_and_the_rest_goes_on(start: Any) -> None:
    stack = start()
    frames = frames_of_the_job()
    damaged = bytearray(frames[0][1])
    damaged[-9] ^= 0x40
    poison = [(frames[0][0], b"not a frame"), (frames[0][0], bytes(damaged))]
    put(stack, [*poison[:1], *frames, *poison[1:]])
    wait_for_lines(stack)
    assert texts(search(stack)) == EXPECTED
    [mapping] = stack.mappings
    assert (mapping.given_up, stack["Ingest"].counts.errors) == ([], 0)

    def aside() -> list[bytes]:
        keys = [found.key for found in stack.store.list("") if "/quarantine/" in found.key]
        return sorted(stack.store.get(key) for key in keys if not key.endswith(".json"))

    wait_for(lambda: aside() == sorted(data for _, data in poison))


@pytest.mark.parametrize("at", ["/data/", "/index/"])
def test_a_worker_that_is_killed_in_mid_batch_loses_and_doubles_nothing(
    start: Any, at: str
) -> None:
    """Killed while its PUT of a segment, or of the index after it, is under way."""
    stack = start(shards=1)
    reached, go_on = threading.Event(), threading.Event()
    held: list[str] = []

    def hold(request: Request) -> None:
        if request.method == "PUT" and at in request.path and not held:
            held.append(request.path)
            reached.set()
            assert go_on.wait(WAIT_S)

    stack.proxy.before = hold
    put(stack)
    assert reached.wait(WAIT_S)
    [pid] = stack["Ingest"].pids
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: stack["Ingest"].counts.errors == 1)
    go_on.set()
    wait_for_lines(stack)
    answer = search(stack)
    assert (texts(answer), answer["completeness"]["state"]) == (EXPECTED, "complete")
    [mapping] = stack.mappings
    assert mapping.delivered[0][2] == "Runtime.ExitError" and mapping.given_up == []
    assert stack["Ingest"].pids != [pid]


def test_a_batch_that_fails_to_the_end_is_kept_with_its_records(start: Any) -> None:
    """Ingest that fails whatever it gets: halved, tried, then whole in the bucket of what was given up."""
    stack = start(mappings=False, variables={"RANKLOG_STORE": ""})
    stack.start_mappings(retries=1)
    put(stack, frames_of_the_job()[:3])
    [mapping] = stack.mappings
    wait_for(lambda: len(mapping.given_up) == 3)
    bucket = mapping.terms.destination.rpartition(":")[2]
    listed = stack.s3.list_objects_v2(Bucket=bucket)["Contents"]
    kept = [stack.s3.get_object(Bucket=bucket, Key=item["Key"])["Body"].read() for item in listed]
    records = [
        record for body in kept for record in json.loads(json.loads(body)["payload"])["Records"]
    ]
    assert len(records) == 3


def test_scans_that_take_too_long_make_an_answer_partial_and_say_why(start: Any) -> None:
    stack = start(timeout_s={"ScanFunction": 3.0})
    put(stack)
    wait_for_lines(stack)
    search(stack, "step 0")  # scans have their imports behind them
    ending = threading.Event()

    def slow(request: Request) -> None:
        if request.method == "GET" and "/data/" in request.path:
            ending.wait(30)

    stack.proxy.before = slow
    answer = search(stack, "level>=ERROR")
    assert (answer["lines"], answer["completeness"]["state"]) == ([], "partial")
    reasons = {skipped["reason"] for skipped in answer["completeness"]["skipped_tasks"]}
    assert all("Task timed out after 3.00 seconds" in reason for reason in reasons) and reasons
    ending.set()
    stack["Scan"].timeout_s = 30.0  # new workers have their imports before them
    wait_for(lambda: texts(search(stack, "level>=ERROR")) == [FAULT])


def long_lines(count: int, size: int) -> list[str]:
    return [f"{i:06d} " + os.urandom(size // 2).hex() for i in range(count)]


def test_an_answer_over_what_lambda_carries_comes_in_pages(start: Any) -> None:
    """12 MB of lines from one question: outcomes go by the store, pages by the cursor."""
    stack = start(mappings=False, shards=1)
    lines, host = long_lines(6_000, 2_000), "gpu-00"
    stream = Stream(TENANT, RUN, "4711", 0, host, 0, 0, "logging", "a")
    frames = []
    for number in range(0, len(lines), 400):
        builder = FrameBuilder(TENANT, "0" * 16, number, "")
        for i, text in enumerate(lines[number : number + 400], number):
            builder.add(stream, i, T0_NS + i, 20, SITE, text)
        frames.append((partition_key(TENANT, RUN, host), encode_frame(builder.build())))
    put(stack, frames)
    stack.start_mappings()  # so that the first batch is as large as an event may be
    wait_for_lines(stack, len(lines))
    stack.proxy.take()
    found, cursor, pages = [], None, 0
    while pages == 0 or cursor:
        answer = search(stack, "", cursor=cursor)
        found += texts(answer)
        cursor, pages = answer["next"], pages + 1
        assert len(json.dumps(answer)) < PAYLOAD_BYTES_MAX and pages < 20
    assert (found, pages > 2) == (lines, True)
    spilled = [one.kind for one in stack.proxy.take() if one.key.startswith("_tmp/")]
    assert {"PUT", "GET", "DELETE"} <= set(spilled)
    assert stack["Scan"].counts.errors == stack["Api"].counts.errors == 0


def test_a_burst_starts_workers_and_what_follows_finds_them_warm(start: Any) -> None:
    stack = start(concurrency={"QueryFunction": 3}, mappings=False)
    event = json.dumps({"tenant": TENANT, "path": "/v1/runs"}).encode()
    query = stack["Query"]
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda _: query.invoke(event), range(3)))
    burst = query.counts.cold_starts
    for _ in range(5):
        query.invoke(event)
    assert (1 <= burst <= 3, query.counts.cold_starts, query.counts.invocations) == (True, burst, 8)
    query.recycle()
    query.invoke(event)
    assert query.counts.cold_starts == burst + 1


def test_over_its_concurrency_a_function_is_throttled_and_the_root_asks_again(start: Any) -> None:
    stack = start(concurrency={"ScanFunction": 1, "ApiFunction": 4})
    put(stack)
    wait_for_lines(stack)
    with ThreadPoolExecutor(4) as pool:
        answers = list(
            pool.map(lambda n: search(stack, f"level>=ERROR rank:{n % RANKS}"), range(8))
        )
    assert sum(map(len, (answer["lines"] for answer in answers))) == 2  # ranks 2 and 6 % 4
    client = boto_lambda(stack)
    with pytest.raises(ClientError) as refused:
        client.invoke(FunctionName="ScanFunction", Payload=b"1" * (PAYLOAD_BYTES_MAX + 1))
    assert refused.value.response["Error"]["Code"] == "RequestEntityTooLargeException"


def test_what_is_compacted_has_the_same_answer(start: Any) -> None:
    stack = start()
    for frame in frames_of_the_job():
        put(stack, [frame])
        time.sleep(0.05)
    wait_for_lines(stack)
    before = search(stack)
    assert not stack.schedule("Compact", "All").error
    compacted = "CompactFunction" in stack.queues
    if compacted:
        wait_for(lambda: bool(stack.queues["CompactFunction"].taken))
    stack["Api"].recycle()
    after = search(stack)
    assert (texts(after), after["completeness"]) == (EXPECTED, before["completeness"])
    assert after["report"]["segments"]["listed"] <= before["report"]["segments"]["listed"]
    assert stack["Compact"].counts.errors == 0


def test_the_canary_finds_its_own_lines(start: Any) -> None:
    stack = start()
    done = stack.schedule("Canary", "Sing")
    assert not done.error, done.payload
    assert FRAMES and stack["Canary"].counts.errors == 0


@pytest.mark.parametrize(("name", "event"), [("Retention", "Daily"), ("Metrics", "Look")])
def test_what_runs_by_the_clock_runs(start: Any, name: str, event: str) -> None:
    stack = start()
    put(stack)
    wait_for_lines(stack)
    done = stack.schedule(name, event)
    assert not done.error, done.payload
    assert texts(search(stack)) == EXPECTED


def test_no_log_of_the_functions_holds_a_lines_text(start: Any) -> None:
    stack = start()
    put(stack)
    wait_for_lines(stack)
    search(stack, '"illegal memory access"')
    output = stack.output()
    assert '"service":"ingest"' in output.replace('": "', '":"')
    for secret in ("illegal memory", "größer", stack.key.rpartition("_")[2]):
        assert secret not in output
