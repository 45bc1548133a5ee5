"""Words of collectives: time-outs, desync reports, peers that are gone."""

from __future__ import annotations

from ranklog.spmd.triage.rule import make_rule as _rule

COLLECTIVE_RULES = (
    _rule(
        "mismatch",
        "Detected mismatch between collectives|is running collective:",
        r"Detected mismatch between collectives on ranks|is running collective: ",
        "collective_mismatch",
    ),
    _rule(
        "watchdog",
        "Watchdog caught collective operation timeout|ran for ",
        r"Watchdog caught collective operation timeout: Work\w*\((?:SeqNum=(?P<seq>\d+), )?"
        r"OpType=(?P<op>\w+)(?P<shape>.*?), Timeout\(ms\)=\d+\) ran for",
    ),
    _rule(
        "gloo_timeout",
        "Timed out waiting|Application timeout caused pair closure|store based barrier"
        "|retrieving ncclUniqueId",
        r"Timed out waiting (?P<wait_ms>\d+)ms for (?:recv|send) operation"
        r"|Application timeout caused pair closure|Timed out initializing process group in store based"
        r"|retrieving ncclUniqueId from .* got error: .*(?i:time ?out)",
    ),
    _rule(
        "barrier",
        "monitoredBarrier",
        r"[Rr]anks? (?P<ranks>\d[\d, ]*) failed to pass monitoredBarrier",
    ),
    _rule(
        "status",
        "ast enqueued",
        r"[Ll]ast enqueued (?:NCCL )?work: (?P<enqueued>-?\d+), "
        r"last completed (?:NCCL )?work: (?P<completed>-?\d+)",
    ),
    _rule(
        "desync_absent",
        "join collective #",
        r"\[(?P<ranks>[\d, ]+)\] finished collective #(?P<done>\d+), but didn't join collective "
        r"#(?P<seq>\d+)",
    ),
    _rule(
        "desync_timeout",
        "Timeout at collective",
        r"\[(?P<ranks>[\d, ]+)\] (?:Timeout at collective|joined but didn't finish collective): "
        r"?(?P<op>\w+), #(?P<seq>\d+)",
    ),
    # JAX names who did not come, or sends no heartbeats, in lines of their own
    _rule(
        "task_absent",
        "Barrier timed out|stopped sending heartbeats",
        r"Barrier timed out\. Id|tasks are unhealthy \(stopped sending heartbeats\)",
    ),
    _rule("task_name", "/replica:", r"^/job:\w+/replica:\d+/task:(?P<ranks>\d+)$"),
    _rule("trace_absent", "missing ranks", r"[Mm]issing ranks:? ?[{\[](?P<ranks>[\d, ]+)[}\]]"),
    _rule(
        "trace_culprit",
        "ulprit rank|MISMATCH",
        r"[Cc]ulprit ranks?:? ?[{\[]?(?P<ranks>\d[\d, ]*)|(?P<error>\w*MISMATCH\w*)",
    ),
    _rule(
        "peer_gone",
        "Connection closed by|Connection reset by peer|remote process exited|communicator was aborted"
        "|ncclRemoteError|ncclSystemError|Broken pipe|recvValue failed|ncclUnhandledCudaError",
        r"Connection closed by|Connection reset by peer|remote process exited"
        r"|communicator was aborted|ncclRemoteError|ncclSystemError|Broken pipe|recvValue failed",
    ),
    _rule(
        "no_connection",
        "socket has timed out|connect() timed out|RendezvousTimeoutError|clients joined"
        "|unhandled system error|there was a network error|Connection timed out",
        r"client socket has timed out after|\bconnect\(\) timed out|RendezvousTimeoutError"
        r"|waiting for clients\. \d+/\d+ clients joined|unhandled system error"
        r"|remote process exited or there was a network error|failed ?: Connection timed out",
    ),
)
