"""Flight recorder dumps by the format's description, for tests: pickles as torch writes them, and JSON."""

from __future__ import annotations

import json
import pickle
from typing import Any

T0 = 1_777_629_600_000_000_000  # 2026-05-01T10:00:00Z
STEP_NS = 1_000_000_000


def entry(seq: int, **changes: Any) -> dict[str, Any]:
    """An all-reduce of the default group, completed."""
    return {
        "record_id": seq - 1,
        "pg_id": 0,
        "process_group": ("0", "default_pg"),
        "collective_seq_id": seq,
        "p2p_seq_id": 0,
        "op_id": seq,
        "profiling_name": "nccl:all_reduce",
        "time_created_ns": T0 + seq * STEP_NS,
        "input_sizes": [[1024]],
        "input_dtypes": ["Float"],
        "output_sizes": [[1024]],
        "output_dtypes": ["Float"],
        "state": "completed",
        "time_discovered_started_ns": T0 + seq * STEP_NS + 1,
        "time_discovered_completed_ns": T0 + seq * STEP_NS + 2,
        "retired": True,
        "timeout_ms": 600_000,
        "is_p2p": False,
        "frames": [
            {
                "name": "all_reduce",
                "filename": "/opt/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py",
                "line": 3145,
            },
            {"name": "step", "filename": "/srv/train.py", "line": 88},
        ],
    } | changes


def waiting(seq: int, **changes: Any) -> dict[str, Any]:
    """One that was started and is not completed."""
    open_ = {"state": "started", "time_discovered_completed_ns": None, "retired": False}
    return entry(seq, **{**open_, **changes})


def dump(entries: list[dict[str, Any]], ranks: int = 4, **changes: Any) -> dict[str, Any]:
    """A rank's dump of version 2.10."""
    last = max((item["collective_seq_id"] for item in entries), default=0)
    members = str(list(range(ranks)))
    return {
        "version": "2.10",
        "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": members}},
        "pg_status": {
            "0": {
                "last_enqueued_collective": last,
                "last_started_collective": last,
                "last_completed_collective": last - 1,
            }
        },
        "entries": entries,
    } | changes


def pickled(value: object, protocol: int = 2) -> bytes:
    return pickle.dumps(value, protocol)


def as_json(value: dict[str, Any]) -> bytes:
    return json.dumps(value).encode()
