"""PyTorch: c10d watchdog and status, process groups, desync reports, out of memory, exceptions."""

from __future__ import annotations

from ranklog.rules.presets.number import ints
from ranklog.rules.rule import Pairs, Rule

_SIZE = r"[\d.]+ (?:[KMGT]iB|bytes)"
_OOM_TYPES = {
    "oom_wanted_bytes": "size",
    "oom_capacity_bytes": "size",
    "oom_free_bytes": "size",
    "oom_gpu": "int",
}

_FLIGHT_TYPES = {
    **dict.fromkeys(
        """pg_id collective_seq_id p2p_seq_id seq_id op_id record_id timeout_ms entries is_p2p retired
        time_discovered_started_ns time_discovered_completed_ns last_enqueued last_started
        last_completed""".split(),
        "int",
    ),
    **dict.fromkeys(
        """op pg pg_desc state members version thread_name input_sizes input_dtypes output_sizes
        output_dtypes""".split(),
        "str",
    ),
    "duration_ms": "float",
}

RULES = (
    Rule(
        "c10d_watchdog",
        ("WorkNCCL(", " ran for "),
        r"WorkNCCL\((?:SeqNum=(?P<seq_num>\d+), )?OpType=(?P<op_type>\w+)"
        r"(?:, TensorShape=\[[^\]]*\])?(?:, NumelIn=(?P<numel_in>\d+))?"
        r"(?:, NumelOut=(?P<numel_out>\d+))?, Timeout\(ms\)=(?P<timeout_ms>\d+)\)"
        r" ran for (?P<ran_ms>\d+) milliseconds",
        ints("seq_num", "numel_in", "numel_out", "timeout_ms", "ran_ms"),
    ),
    Rule(
        "c10d_status",
        ("last enqueued ", ", last completed "),
        r"last enqueued (?:NCCL )?work: (?P<last_enqueued>-?\d+), "
        r"last completed (?:NCCL )?work: (?P<last_completed>-?\d+)",
        ints("last_enqueued", "last_completed"),
    ),
    Rule(
        "c10d_group",
        ("[PG ID ", " Rank "),
        r"\[PG ID (?P<pg_id>\d+) PG GUID (?P<pg_guid>\w+)(?:\((?P<pg>[^)]*)\))? "
        r"Rank (?P<pg_rank>\d+)\]",
        ints("pg_id", "pg_rank"),
    ),
    Rule(
        "c10d_rank",
        ("ProcessGroup", "] [Rank "),
        r"\.[ch]pp:\d+\] \[Rank (?P<pg_rank>\d+)\]",
        ints("pg_rank"),
    ),
    Rule(
        "c10d_desync_timeout",
        (" Timeout at collective: ",),
        r"\[(?P<desync_ranks>[\d, ]+)\] Timeout at collective: (?P<op_type>\w+), "
        r"#(?P<seq_num>\d+)",
        ints("seq_num") | {"desync_ranks": "ranges"},
    ),
    Rule(
        "c10d_desync_absent",
        (" finished collective #", " join collective #"),
        r"\[(?P<desync_ranks>[\d, ]+)\] finished collective #(?P<last_completed>\d+), but didn't "
        r"join collective #(?P<seq_num>\d+)",
        ints("seq_num", "last_completed") | {"desync_ranks": "ranges"},
    ),
    Rule(  # what an import makes of a flight recorder's dump
        "flight_recorder",
        ("flight recorder: ",),
        r"flight recorder: (?P<flight>dump|group|status|entry) (?P<pairs>.*)$",
        pairs=Pairs("equals", types=_FLIGHT_TYPES),
    ),
    Rule(
        "oom_cuda",
        ("out of memory. Tried to allocate ", " has a total "),
        rf"Tried to allocate (?P<oom_wanted_bytes>{_SIZE})\. GPU (?P<oom_gpu>\d+) has a total "
        rf"capaci?ty of (?P<oom_capacity_bytes>{_SIZE}) of which (?P<oom_free_bytes>{_SIZE}) is free",
        _OOM_TYPES,
    ),
    Rule(
        "oom_cuda_old",
        ("out of memory. Tried to allocate ", " total capacity; "),
        rf"Tried to allocate (?P<oom_wanted_bytes>{_SIZE}) \(GPU (?P<oom_gpu>\d+); "
        rf"(?P<oom_capacity_bytes>{_SIZE}) total capacity; "
        rf"(?P<oom_allocated_bytes>{_SIZE}) already allocated; (?P<oom_free_bytes>{_SIZE}) free",
        _OOM_TYPES | {"oom_allocated_bytes": "size"},
    ),
    Rule(
        "python_exception",
        (),
        r"^(?P<exception>[A-Za-z_][\w.]*(?:Error|Exception|Empty|Interrupt|Exit))(?:: |:?\s*$)",
        gate=r"^[\w.\x00]*(?:Error|Exception|Empty|Interrupt|Exit|\x00)(?::|\s*$)",
    ),
)
