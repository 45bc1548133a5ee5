"""Where alerts go beside the console: a command, a webhook. Both are given a bounded time, and what goes
wrong with them is said and never ends a watch."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

from ranklog._version import VERSION
from ranklog.errors import BadInput

EXEC_S = 30.0
WEBHOOK_S = 10.0
# Tries of a webhook, and how long it waits before each one after the first.
WAITS_S = (1.0, 4.0, 15.0)
_RETRYABLE = frozenset([408, 425, 429])
_SHOWN = 200

Trouble = str | None


def run_command(command: str, alert: Mapping[str, Any], timeout_s: float = EXEC_S) -> Trouble:
    """Run a shell command with the alert as JSON on its standard input and `RANKLOG_ALERT_*` in its
    environment. Returns what went wrong."""
    try:
        process = subprocess.Popen(
            ["/bin/sh", "-c", command],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, **_environment(alert)},
            start_new_session=True,
        )
    except OSError as error:
        return f"--exec could not start: {error.strerror}"
    try:
        _, said = process.communicate(_body(alert), timeout=timeout_s)
    except subprocess.TimeoutExpired:
        _end_group(process)
        return f"--exec took longer than {timeout_s:g} s and was ended"
    if process.returncode:
        words = said.decode("utf-8", "replace").strip()[-_SHOWN:]
        return f"--exec ended with code {process.returncode}{': ' if words else ''}{words}"
    return None


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """The shell and what it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    for stream in (process.stdin, process.stderr):
        if stream is not None:
            stream.close()
    process.wait()


def _environment(alert: Mapping[str, Any]) -> dict[str, str]:
    names = ("state", "alert", "verdict", "severity", "run", "message", "query", "command")
    found = {f"RANKLOG_ALERT_{name.upper()}": str(alert[name] or "") for name in names}
    found["RANKLOG_ALERT_RANKS"] = ",".join(map(str, alert["ranks"]))
    found["RANKLOG_ALERT_RUNBOOK"] = str(alert["runbook"])
    return {name: value.replace("\0", " ") for name, value in found.items()}


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """An address that moved is an error: a POST would arrive as a GET."""

    def redirect_request(self, *words: Any, **named: Any) -> None:
        return None


def check_webhook(url: str) -> str:
    """The address, if it is one. Raises BadInput."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadInput(f"{url} is no address of a webhook", hint="https://host/path")
    return url


def call_webhook(
    url: str,
    alert: Mapping[str, Any],
    *,
    timeout_s: float = WEBHOOK_S,
    sleep: Callable[[float], object] = time.sleep,
) -> Trouble:
    """POST the alert as JSON; busy and failing servers are asked again three times. Returns what went
    wrong."""
    opener = urllib.request.build_opener(_NoRedirect)
    headers = {"Content-Type": "application/json", "User-Agent": f"ranklog/{VERSION}"}
    trouble = ""
    for wait_s in (*WAITS_S, None):
        request = urllib.request.Request(url, _body(alert), headers, method="POST")
        try:
            with opener.open(request, timeout=timeout_s) as answer:
                answer.read(1)
            return None
        except urllib.error.HTTPError as error:
            with error:
                trouble = f"it answered {error.code}"
                if error.code < 500 and error.code not in _RETRYABLE:
                    break
        except (OSError, ValueError) as error:
            trouble = str(getattr(error, "reason", error))
        if wait_s is not None:
            sleep(wait_s)
    return f"--webhook {urllib.parse.urlsplit(url).hostname}: {trouble}"


def _body(alert: Mapping[str, Any]) -> bytes:
    return json.dumps(dict(alert), ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
