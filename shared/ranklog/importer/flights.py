"""PyTorch flight recorder dumps as text: one line per collective, its stack below it.

A dump is what `TORCH_FR_DUMP_TEMP_FILE` names (`…nccl_trace_rank_3`), a pickle, or the same as JSON.
Versions 2.0 to 2.10 differ in members; what is missing is left out. The text is what is stored, in the
form of a log with times, call sites and `name=value` pairs, which the preset `flight_recorder` reads.
Format: torch/csrc/distributed/c10d/FlightRecorderDetail.hpp.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from ranklog.errors import BadInput
from ranklog.importer.unpickle import NotPlain, load_plain
from ranklog.limits import FLIGHT_BYTES_MAX, FLIGHT_ENTRIES_MAX, SECOND_NS

_NAME = re.compile(r"(?:nccl|comm_lib|fr|flight)\w*trace\w*?(?:rank)?[_-]?\d+(?:\.\w+)*$", re.I)
_MARKS = (b"pg_config", b"collective_seq_id", b"profiling_name", b"pg_status", b"nccl_version")
_MARKS_MIN = 2
_FRAMES_SHOWN = 12
_VALUE_CHARACTERS, _VALUE_ITEMS = 2_000, 512
# Frames of these are how a collective is called, not where.
_INSIDE = re.compile(
    r"/torch/(?:distributed/(?:distributed_c10d|c10d_logger|_functional)|_ops|utils/)"
)
_NUMBERS = (
    *("collective_seq_id", "p2p_seq_id", "seq_id", "op_id", "record_id", "pg_id"),
    "timeout_ms",
)
_TIMES = ("time_discovered_started_ns", "time_discovered_completed_ns")  # 0 in JSON: unknown
_LISTS = ("input_sizes", "input_dtypes", "output_sizes", "output_dtypes")


def is_flight(name: str, first: bytes) -> bool:
    """Whether a file that begins so is a dump: a pickle or JSON with the recorder's names."""
    pickled = len(first) > 1 and first[0] == 0x80 and first[1] in (2, 3, 4, 5)
    if not pickled and first.lstrip()[:1] != b"{":
        return False
    marks = sum(mark in first for mark in _MARKS)
    if pickled:
        return marks >= _MARKS_MIN or _NAME.search(name) is not None
    return marks >= _MARKS_MIN and b'"entries"' in first


def render_flight(name: str, blocks: Iterable[bytes]) -> bytes:
    """The dump as text. Raises BadInput for what is none, with the reason; nothing of it is run."""
    parts, size = [], 0
    for block in blocks:
        size += len(block)
        if size > FLIGHT_BYTES_MAX:
            raise BadInput(f"{name}: a flight recorder dump over {FLIGHT_BYTES_MAX} bytes")
        parts.append(block)
    data = b"".join(parts)
    try:
        dump = _load(data)
        return "".join(f"{line}\n" for line in _lines(dump)).encode("utf-8", "replace")
    except (NotPlain, ValueError, RecursionError) as error:
        raise BadInput(f"{name}: no flight recorder dump: {error}") from error


def _load(data: bytes) -> Mapping[str, Any]:
    dump = load_plain(data) if data[:1] == b"\x80" else json.loads(data)
    if not isinstance(dump, dict) or not isinstance(dump.get("entries", []), (list, tuple)):
        raise NotPlain("it has no entries")
    if not {"entries", "pg_config", "pg_status"} & dump.keys():
        raise NotPlain("neither entries nor process groups are in it")
    if len(dump.get("entries", ())) > FLIGHT_ENTRIES_MAX:
        raise NotPlain(f"{len(dump['entries'])} entries, limit {FLIGHT_ENTRIES_MAX}")
    return dump


def _lines(dump: Mapping[str, Any]) -> Iterator[str]:
    rank = dump.get("rank")
    label = f"[rank{rank}]: " if isinstance(rank, int) and not isinstance(rank, bool) else ""
    entries = [entry for entry in dump.get("entries", ()) if isinstance(entry, dict)]
    entries.sort(key=lambda entry: _whole(entry.get("record_id")) or 0)
    names: dict[str, str] = {}
    last_ns = 0
    for entry in entries:
        created = _whole(entry.get("time_created_ns")) or 0
        last_ns = max(last_ns, created, _whole(entry.get("time_discovered_completed_ns")) or 0)
        if entry.get("pg_id") is not None:
            names[str(entry["pg_id"])] = _group(entry)[0]
        frames = _frames(entry)
        yield f"{label}{_head(created, _site(frames))}flight recorder: entry {_entry(entry)}"
        for function, place in frames[:_FRAMES_SHOWN]:
            yield f"{label}  {function} at {place}"
    head = _head(last_ns, None)
    shown = [f"version={_word(dump.get('version'))}", f"entries={len(entries)}"]
    yield f"{label}{head}flight recorder: dump {' '.join(shown)}"
    yield from (f"{label}{head}flight recorder: {said}" for said in _groups(dump))
    yield from (f"{label}{head}flight recorder: {said}" for said in _states(dump, names))


def _head(ns: int, site: str | None) -> str:
    """`2026-05-01T10:00:00.123456789Z INFO train.py:88 `; nothing of what is unknown."""
    where = f"{site} " if site else ""
    if not 0 < ns < 4_102_444_800 * SECOND_NS:
        return f"INFO {where}"
    seconds, rest = divmod(ns, SECOND_NS)
    day = datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{day}.{rest:09d}Z INFO {where}"


def _entry(entry: Mapping[str, Any]) -> str:
    name, description = _group(entry)
    op = _word(entry.get("profiling_name") or "unknown")
    pairs: list[tuple[str, str | int | None]] = [("op", op), ("pg", name), ("pg_desc", description)]
    pairs += [(key, _whole(entry.get(key))) for key in _NUMBERS]
    pairs += [(key, _whole(entry.get(key)) or None) for key in _TIMES]
    pairs.append(("state", _word(entry.get("state"))))
    pairs += [(key, _flat(entry[key])) for key in _LISTS if key in entry]
    pairs += [(key, int(bool(entry[key]))) for key in ("is_p2p", "retired") if key in entry]
    duration = entry.get("duration_ms")
    if isinstance(duration, (int, float)):
        pairs.append(("duration_ms", repr(float(duration))))
    pairs.append(("thread_name", _word(entry.get("thread_name"))))
    return " ".join(f"{key}={value}" for key, value in pairs if value not in (None, ""))


def _group(entry: Mapping[str, Any]) -> tuple[str, str]:
    """Name and description; older dumps name the group alone."""
    group = entry.get("process_group")
    if isinstance(group, (list, tuple)) and group:
        return _word(group[0]), _word(group[1]) if len(group) > 1 else ""
    return _word(entry.get("pg_name", entry.get("pg_id", ""))), ""


def _frames(entry: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(function, file:line), innermost first; without those of how torch calls a collective."""
    frames = entry.get("frames")
    if not isinstance(frames, (list, tuple)):
        return []
    found = [
        (
            _word(frame.get("name")),
            f"{_word(frame.get('filename'))}:{_whole(frame.get('line')) or 0}",
        )
        for frame in frames[:64]
        if isinstance(frame, dict)
    ]
    return [item for item in found if not _INSIDE.search(item[1])] or found


def _site(frames: Sequence[tuple[str, str]]) -> str | None:
    place = frames[0][1] if frames else ""
    return place if re.fullmatch(r"[\w./-]+\.\w+:[1-9]\d*", place) else None


def _groups(dump: Mapping[str, Any]) -> Iterator[str]:
    config = dump.get("pg_config")
    for name, said in config.items() if isinstance(config, dict) else ():
        if isinstance(said, dict) and (said.get("name") or name):
            ranks = [int(word) for word in re.findall(r"\d+", _flat(said.get("ranks")))]
            members = f" members={_ranges(ranks)}" if ranks else ""
            yield f"group pg={_word(said.get('name') or name)} pg_desc={_word(said.get('desc'))}{members}"


def _states(dump: Mapping[str, Any], names: Mapping[str, str]) -> Iterator[str]:
    status = dump.get("pg_status")
    for number, said in status.items() if isinstance(status, dict) else ():
        if not isinstance(said, dict):
            continue
        numbers = [
            (key, _whole(said.get(f"{key}_collective")))
            for key in ("last_enqueued", "last_started", "last_completed")
        ]
        pairs = " ".join(f"{key}={value}" for key, value in numbers if value is not None)
        pg = names.get(str(number))
        known = f"pg={pg} " if pg else ""
        yield f"status {known}pg_id={_word(number)} {pairs}"


def _ranges(ranks: Sequence[int]) -> str:
    """`0-7,9`."""
    parts: list[list[int]] = []
    for rank in sorted(set(ranks)):
        if parts and rank == parts[-1][1] + 1:
            parts[-1][1] = rank
        else:
            parts.append([rank, rank])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


def _whole(value: Any) -> int | None:
    """A number, also where JSON has it as text; 0 times are unknown ones."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str):
        return int(value) if re.fullmatch(r"-?\d{1,19}", value) else None
    return value if isinstance(value, int) and abs(value) < 2**63 else None


def _word(value: Any) -> str:
    """Text that can stand as a value of a pair."""
    text = "" if value is None else str(value) if isinstance(value, (str, int, float)) else ""
    return re.sub(r"[\s=,;\x00-\x1f\x7f]+", "_", text[:_VALUE_CHARACTERS])


def _flat(value: Any, depth: int = 4) -> str:
    """A list of lists on one line, without blanks; what is longer than a value may be is cut."""
    if isinstance(value, str):
        return value if depth == 4 else _word(value)
    if isinstance(value, (list, tuple)) and depth:
        inner, size = [], 0
        for item in value[:_VALUE_ITEMS]:
            inner.append(_flat(item, depth - 1))
            size += len(inner[-1])
            if size > _VALUE_CHARACTERS:
                break
        return f"[{','.join(inner)}]"[:_VALUE_CHARACTERS]
    return _word(value)
