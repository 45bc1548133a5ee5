"""The way out: the agent, the destination, its key, the clock, the host's own logs."""

from __future__ import annotations

import contextlib
import ctypes
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from ranklog.agent.host_logs import AUTO, Missing, find_host_logs
from ranklog.agent.refused import FOLDER, kept_count
from ranklog.doctor.check import NOTE, OK, PROBLEM, Check
from ranklog.errors import NotFound, RanklogError
from ranklog.produce import spool
from ranklog.produce.secrets import mask_text

ANSWER_S = 3.0
SKEW_S_MAX = 5.0
_NOT_SYNCHRONISED = 5  # what adjtimex answers
_TIMEX_BYTES = 512  # more than the kernel's structure


def check_agent(folder: Path) -> Check:
    """Whether an agent works on the spool, and what waits there."""
    waiting = len(list(folder.glob("*.process"))) if folder.is_dir() else 0
    kept = folder / FOLDER
    refused = kept_count(kept)
    facts = (("folder", str(folder)), ("processes", waiting), ("refused", refused))
    if refused:
        says = f"{refused} frames of {folder} were refused by their destination, and are kept"
        do = f"ranklog agent status says why; ranklog replay {kept} sends them"
        return Check("agent", NOTE, says, do, facts)
    if folder.is_dir() and spool.has_collector(folder):
        return Check("agent", OK, f"an agent works on {folder}", facts=facts)
    if waiting:
        says = f"no agent, and {waiting} processes of {folder} are not delivered"
        do = f"ranklog replay {folder} sends them; so does the next agent, which ranks start"
        return Check("agent", NOTE, says, do, facts)
    do = "nothing to do: the first rank starts one, and so does ranklog run"
    return Check("agent", OK, "no agent runs", do, facts)


def check_destination(environ: Mapping[str, str], given: str | None = None) -> list[Check]:
    """Whether frames could be sent from here. Sends none."""
    destination = given or environ.get("RANKLOG_DESTINATION")
    if not destination:
        says = "none: lines of ranklog.init stay in the spool; ranklog run takes the local store"
        do = "set RANKLOG_DESTINATION: a folder, kinesis://STREAM, https://API or s3://BUCKET"
        return [Check("destination", NOTE, says, do)]
    scheme = urlsplit(destination).scheme
    known: dict[str, Callable[[str, Mapping[str, str]], list[Check]]] = {
        "http": _check_http,
        "https": _check_http,
        "kinesis": _check_kinesis,
        "s3": _check_store,
        "store": _check_store,
        "file": _check_folder,
        "": _check_folder,
    }
    if scheme not in known:
        do = "a folder, kinesis://STREAM, https://API, s3://BUCKET or store:DIR"
        return [Check("destination", PROBLEM, f"{mask_text(destination)} is of no known kind", do)]
    return known[scheme](destination, environ)


def _check_folder(destination: str, environ: Mapping[str, str]) -> list[Check]:
    parts = urlsplit(destination)
    path = Path(unquote(parts.path) if parts.scheme else destination).absolute()
    parent = next(p for p in (path, *path.parents) if p.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        do = "make the folder, or name one that you may write"
        return [Check("destination", PROBLEM, f"{path} can't be written", do)]
    do = "ranklog ingest it into a store to search, unless it is one"
    return [Check("destination", OK, f"the folder {path}", do)]


def _check_store(destination: str, environ: Mapping[str, str]) -> list[Check]:
    if missing := [name for name in ("numpy", "pyarrow") if find_spec(name) is None]:
        says = f"a store, but the agent would need {' and '.join(missing)} to write it"
        return [Check("destination", PROBLEM, says, "pip install 'ranklog[engine,aws]'")]
    from ranklog.store.open import open_store

    name = destination.removeprefix("store:")
    try:
        next(iter(open_store(name).list_folders("")), None)
    except NotFound:
        return _check_folder(name, environ)  # the agent makes it
    except RanklogError as error:
        do = error.hint or "mend its name or credentials"
        return [Check("destination", PROBLEM, f"{destination}: {error.message}", do)]
    return [Check("destination", OK, f"the store {destination} answers")]


def _check_kinesis(destination: str, environ: Mapping[str, str]) -> list[Check]:
    if find_spec("boto3") is None:
        do = "pip install 'ranklog[aws]' where the agent runs"
        return [Check("destination", PROBLEM, "Kinesis needs boto3, which is not here", do)]
    from ranklog.store.aws import aws_client, translate

    parts = urlsplit(destination)
    region = parse_qs(parts.query).get("region", [None])[0]
    try:
        client = aws_client("kinesis", read_timeout_s=ANSWER_S, attempts=1, region=region)
        client.describe_stream_summary(StreamName=parts.netloc)
    except Exception as error:
        found = translate(error, parts.netloc)
        do = found.hint or "check the stream's name, the region and the credentials"
        return [Check("destination", PROBLEM, f"{destination}: {found.message}", do)]
    return [Check("destination", OK, f"the Kinesis stream {parts.netloc} answers")]


def _check_http(destination: str, environ: Mapping[str, str]) -> list[Check]:
    base, key = destination.rstrip("/"), environ.get("RANKLOG_API_KEY", "")
    status, date, error = _ask(f"{base}/v1/health", key)
    shown = mask_text(destination)
    if error:
        do = "check address, proxy and firewall; lines wait in the spool until it answers"
        return [Check("destination", PROBLEM, f"{shown} does not answer: {error}", do)]
    if status == 404 or status >= 500:
        do = "check the address: it is the API's, without /v1"
        return [Check("destination", PROBLEM, f"{shown} answers {status}", do)]
    checks = [Check("destination", OK, f"{shown} answers")]
    # A key is asked for where it matters: a question that reads nothing.
    status, _, _ = _ask(f"{base}/v1/runs?since=2100-01-01", key)
    if status in (401, 403):
        do = "set RANKLOG_API_KEY to a key that this API knows; lines wait in the spool until then"
        says = "the API refuses the key" if key else "the API wants a key, and none is set"
        checks.append(Check("key", PROBLEM, says, do))
    else:
        checks.append(Check("key", OK, "the API takes the key" if key else "the API asks for none"))
    return [*checks, *_check_skew(date)]


def _ask(url: str, key: str) -> tuple[int, str, str]:
    """(status, Date, error) of a GET."""
    request = urllib.request.Request(url)
    if key:
        request.add_header("Authorization", f"Bearer {key}")
    try:
        with urllib.request.urlopen(request, timeout=ANSWER_S) as response:
            return response.status, response.headers.get("Date", ""), ""
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers.get("Date", ""), ""
    except (OSError, ValueError) as error:
        return 0, "", str(getattr(error, "reason", error))


def _check_skew(date: str) -> list[Check]:
    """Our clock against the other side's, which has no fractions of a second."""
    try:
        skew = time.time() - parsedate_to_datetime(date).timestamp() - 0.5
    except (ValueError, TypeError):
        return []
    if abs(skew) <= SKEW_S_MAX:
        return []
    says = f"this clock is {abs(skew):.0f} s {'ahead of' if skew > 0 else 'behind'} the API's"
    return [Check("clock", PROBLEM, says, "start chrony, ntpd or systemd-timesyncd on this host")]


def check_clock() -> Check:
    """Whether the kernel's clock is kept in time by anybody."""
    answer = -1
    with contextlib.suppress(OSError, AttributeError):  # no Linux
        answer = ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
    if answer == _NOT_SYNCHRONISED:
        says = (
            "the kernel says that nobody keeps its time; ranks of several hosts may be out of order"
        )
        do = "start chrony, ntpd or systemd-timesyncd on every host"
        return Check("clock", NOTE, says, do)
    if answer < 0:
        return Check(
            "clock", NOTE, "the kernel does not tell whether its time is kept", "see chronyc"
        )
    return Check("clock", OK, "kept in time; steps of it don't reach a stream that has begun")


def check_host_logs(environ: Mapping[str, str], root: Path = Path("/")) -> list[Check]:
    """Which logs of the host `ranklog agent --host-logs` could follow."""
    found, missing = find_host_logs(environ, root)
    says = f"{', '.join(found)} can be followed" if found else "none can be followed"
    do = f"ranklog agent --host-logs {AUTO} follows them"
    checks = [Check("host logs", OK if found else NOTE, says, do, (("channels", found),))]
    return checks + [_absent(item) for item in missing]


def _absent(item: Missing) -> Check:
    return Check(f"host logs: {item.channel}", NOTE, f"{item.channel} is not followed", item.reason)
