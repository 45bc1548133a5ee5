"""What the heads of lines look like, as data: time, level, call site, rank, per writer's format.

A head stands at the start of a line's body (after envelopes). `HEADS` is ordered: the first head
that matches is the line's, so the exact formats stand before the general ones. Every expression is
RE2's and means the same in Python's `re` with `re.ASCII`. Groups are named, among: time level file
line function logger rank local_rank host pid tid device. `rank` is global. Levels are written as
the format writes them (`W`, `warn`); `ranklog.model.levels` knows them all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

# kind -> an example and what a parser has to know.
TIME_KINDS = MappingProxyType(
    {
        "iso": "2024-05-01 22:04:12.345678; `-` or `/` in the date, one of `T _` or a blank before "
        "the time, `.` or `,` before the fraction (0-9 digits), Z or +hh:mm or +hhmm may follow",
        "us_date": "01/02/2022 23:11:34; month first",
        "us_month_day": "03/06 10:21:53; month first, no year",
        "glog_mmdd": "0213 23:07:05.692384; two digits each, no year",
        "c10d_md": "1003 22:26:03.467156987; the day is the last two digits, the month what is "
        "left (`430` is April 30), no year",
        "compact": "20251202 09:12:08, a fraction may follow",
        "epoch_ms": "1714536664883; milliseconds since the epoch, UTC",
        "epoch_us": "1715337972.597315; seconds since the epoch with a fraction, UTC",
        "ctime": "Sun Feb 23 16:24:18 2025",
        "date_utc": "Sun Feb 23 16:24:18 UTC 2025, as `date` prints it",
        "month_name": "Feb 25 2025 13:59:45",
        "syslog": "Feb 14 05:03:41; the day may be padded with a blank, no year",
        "ampm": "2024-05-18 02:46:58 AM",
        "clock": "22:12:24; no date",
        "kernel_uptime": "74889.644138; seconds since boot, no date",
        "uptime_us": "206764307; microseconds since boot, no date",
    }
)


@dataclass(frozen=True, slots=True)
class Head:
    """One format. `literals` all stand in every line that matches; `time` is a key of TIME_KINDS."""

    name: str
    literals: tuple[str, ...]
    pattern: str
    time: str | None = None

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the groups, in order."""
        return tuple(_compiled(self.pattern).groupindex)


_ISO = r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d"
_ISO3 = _ISO + r",\d{3}"
_ISO_ANY = r"\d{4}[-/]\d\d[-/]\d\d[ T_]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?Z|[+-]\d\d:?\d\d)?"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_CTIME = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) " + _MONTH + r" [ \d]\d \d\d:\d\d:\d\d \d{4}"
_DATE_UTC = _CTIME.replace(r" \d{4}", r" (?:UTC|GMT) \d{4}")
_LEVEL = r"(?i:TRACE|DEBUG|INFO|SUCCESS|WARNING|WARN|ERROR|CRITICAL|FATAL|NOTICE)"
# Colour inside a head; transports drop the ESC and keep the rest.
_C = r"(?:\x1b?\[[0-9;]*m)*"
_NCCL = (
    r"^(?:\[(?P<time>" + _ISO_ANY + r")\] )?"
    r"(?P<host>[\w.-]+):(?P<pid>\d+):(?P<tid>\d+) (?:\[(?P<device>\d+)\] )?"
)

HEADS: tuple[Head, ...] = (
    # --- C++ and communication libraries ------------------------------------------------------
    Head(
        "c10d",
        ("[", "]"),
        r"^\[(?P<level>[IWEF])(?P<time>\d{3,4} \d\d:\d\d:\d\d\.\d{6,9}) (?:(?P<tid>\d+) )?"
        r"(?P<file>[\w./-]+):(?P<line>\d+)\]",
        "c10d_md",
    ),
    Head("c10d_old", ("[", "]"), r"^\[(?P<level>[IWEF]) (?P<file>[\w./-]+):(?P<line>\d+)\]"),
    Head(
        "glog",
        ("]",),
        r"^(?P<level>[IWEF])(?P<time>\d{4} \d\d:\d\d:\d\d\.\d{6}) +(?P<tid>\d+) "
        r"(?P<file>\S+?):(?P<line>\d+)\]",
        "glog_mmdd",
    ),
    Head(
        "glog_year",
        ("]",),
        r"^(?P<level>[IWEF])(?P<time>\d{8} \d\d:\d\d:\d\d\.\d{6}) +(?P<tid>\d+) "
        r"(?P<file>\S+?):(?P<line>\d+)\]",
        "compact",
    ),
    Head("nccl_info", (" NCCL ",), _NCCL + r"NCCL (?P<level>INFO|TRACE) ", "iso"),
    Head(
        "nccl_warn",
        (" NCCL WARN ",),
        _NCCL + r"(?P<file>\S+):(?P<line>\d+) NCCL (?P<level>WARN) ",
        "iso",
    ),
    Head(
        "ucx",
        ("[", "] "),
        r"^\[(?P<time>\d{9,10}\.\d{6})\] \[(?P<host>[^:\]]+):(?P<pid>\d+):(?P<tid>\d+)\] +"
        r"(?P<file>[\w./-]+):(?P<line>\d+) +(?P<logger>[A-Z]+) +(?P<level>[A-Z]+) ",
        "epoch_us",
    ),
    Head(
        "sharp",
        (" - ", "] "),
        r"^\[(?P<host>[\w.-]+):\d+:(?P<pid>\d+) - (?P<file>[\w.-]+):(?P<line>\d+)\]"
        r"(?:\[(?P<time>" + _ISO_ANY + r")\])? (?P<level>[A-Z]+) ",
        "iso",
    ),
    Head(
        "dmlc",
        ("[", "] "),
        r"^\[(?P<time>\d\d:\d\d:\d\d)\] (?P<file>[\w./-]+):(?P<line>\d+):",
        "clock",
    ),
    # --- launchers ----------------------------------------------------------------------------
    Head(
        "torchelastic",
        ("[", "]"),
        r"^\[(?P<time>" + _ISO3 + r")\] (?:\[\d+/\d+\S*\] )?(?P<logger>[\w.]+): "
        r"\[(?P<level>[A-Z]+)\]",
        "iso",
    ),
    Head(
        "slurm_cancelled",
        ("slurmstepd", "CANCELLED AT "),
        r"^(?P<logger>slurmstepd)(?:-[\w.-]+)?: (?P<level>error): \*\*\* (?:STEP|JOB) \S+ ON "
        r"(?P<host>\S+) CANCELLED AT (?P<time>" + _ISO + r")",
        "iso",
    ),
    Head(
        "srun_task",
        ("srun: error: ", ": task"),
        r"^(?P<logger>srun): (?P<level>error): (?P<host>\S+): tasks? [\d,-]+: ",
    ),
    Head(
        "slurm",
        (": ",),
        r"^(?P<logger>srun|sbatch|slurmstepd|slurmd)(?:-[\w.-]+)?: "
        r"(?:(?P<level>error|warning|fatal|info|debug)\d?: )?",
    ),
    Head(
        "paddle_launch",
        ("LAUNCH ",),
        r"^LAUNCH (?P<level>[A-Z]+) (?P<time>" + _ISO_ANY + r") ",
        "iso",
    ),
    # --- result and training loggers ----------------------------------------------------------
    Head(
        "mllog",
        (":::MLLOG ", '"time_ms": '),
        r'^:::MLLOG \{(?:"namespace": "[^"]*", )?"time_ms": (?P<time>\d+)'
        r'(?:.*"metadata": \{(?:.*, )?"file": "(?P<file>[^"]*)", "lineno": (?P<line>\d+))?',
        "epoch_ms",
    ),
    Head("dllogger", ("DLL ",), r"^DLL (?P<time>" + _ISO + r"\.\d{6}) - ", "iso"),
    Head(
        "nemo",
        ("[NeMo ",),
        r"^\[NeMo (?P<level>[DIWEC]) (?P<time>" + _ISO + r") (?P<file>[\w.]+):(?P<line>\d+)"
        r"(?: rank:(?P<rank>\d+))?\]",
        "iso",
    ),
    Head(
        "primus",
        ("rank-", "/"),
        (
            r"^\[~(?P<time>\d{8} \d\d:\d\d:\d\d)~\](?:\[[^\]]*\]){0,3}?"
            r"\[~rank-(?P<rank>\d+)/\d+~\](?:\[~(?P<level>[A-Z]+) *~\])?"
            r"(?: *\[~-*(?P<file>[\w.]+):(?P<line>\d+)~\])?"
        ).replace("~", _C),
        "compact",
    ),
    Head(
        "megatron",
        ("[", "] iteration "),
        r"^ *\[(?P<time>" + _ISO_ANY + r")\] iteration ",
        "iso",
    ),
    Head(
        "deepspeed",
        ("[", "] ["),
        r"^\[(?P<time>" + _ISO3 + r")\] \[(?P<level>[A-Z]+)\] "
        r"\[(?P<file>[\w.]+):(?P<line>\d+):(?P<function>[\w<>]+)\](?: \[Rank (?P<rank>\d+)\])?",
        "iso",
    ),
    Head(
        "huggingface",
        ("[", "|", " >>"),
        r"^\[(?P<level>[A-Z]+)\|(?P<file>[\w.]+):(?P<line>\d+)\] (?P<time>" + _ISO3 + r") >>",
        "iso",
    ),
    Head(
        "torchtitan",
        ("[titan] ",),
        r"^\[titan\] " + _C + r"(?P<time>" + _ISO3 + r") - (?P<logger>\S+) - (?P<level>[A-Z]+) - ",
        "iso",
    ),
    Head(
        "olmo",
        ("[", ", rank="),
        r"^\[(?P<time>" + _ISO_ANY + r")\] (?P<level>[A-Z]+) +"
        r"\[(?P<file>[\w.]+):(?P<line>\d+), rank=(?P<rank>\d+)\]",
        "iso",
    ),
    Head(
        "olmo_plain",
        ("\t",),
        r"^(?P<time>" + _ISO_ANY + r")\t(?P<host>[\w.-]+):(?P<local_rank>\d+)\t"
        r"(?P<file>[\w.]+):(?P<line>\d+)\t(?P<level>[A-Z]+)\t",
        "iso",
    ),
    Head(
        "internevo",
        (", line ", ", in ", "] - pid="),
        r"^(?P<time>" + _ISO_ANY + r") (?P<level>[A-Z]+) \[(?P<file>[^,\]]+), line (?P<line>\d+), "
        r"in (?P<function>[\w<>]+)\] - pid=(?P<pid>\d+)",
        "iso",
    ),
    Head(
        "fairseq",
        (" | ",),
        r"^(?P<time>" + _ISO + r") \| (?P<level>[A-Z]+) \| (?P<logger>[\w.]+) \| ",
        "iso",
    ),
    Head(
        "ezpz",
        ("][", ":"),
        r"^\[(?P<time>" + _ISO + r"(?:[.,]\d{3,6})?)\]\[(?P<level>[A-Z]+)\]"
        r"\[(?P<file>[\w./-]+):(?P<line>\d+)(?::(?P<function>[\w.<>]+))?\]",
        "iso",
    ),
    Head("mxnet", (" Node[",), r"^(?P<time>" + _ISO3 + r") Node\[\d+\] ", "iso"),
    Head(
        "paddleseg",
        (" [", "]\t"),
        r"^(?P<time>" + _ISO + r") \[(?P<level>[A-Z]+)\]\t",
        "iso",
    ),
    Head(
        "paddleocr",
        ("[", "] ", ": "),
        r"^\[(?P<time>\d{4}/\d\d/\d\d \d\d:\d\d:\d\d)\] (?P<logger>[\w.]+) (?P<level>[A-Z]+): ",
        "iso",
    ),
    Head(
        "us_date",
        (" - ",),
        r"^(?P<time>\d\d/\d\d/\d{4} \d\d:\d\d:\d\d) - (?P<level>[A-Z]+) - "
        r"(?:(?P<logger>[A-Za-z_]\w*(?:\.\w+)+) - +)?",
        "us_date",
    ),
    Head(
        "us_month_day",
        ("[", "]"),
        # detectron2 names the logger, and a level above INFO in front
        r"^(?:(?P<level>[A-Z]{4,8}) )?\[(?P<time>\d\d/\d\d \d\d:\d\d:\d\d)(?: (?P<logger>[\w.]+))?\]",
        "us_month_day",
    ),
    # --- loguru and Python's logging ----------------------------------------------------------
    Head(
        "loguru",
        (" | ", " - "),
        (
            r"^~(?P<time>@)~ \| ~(?P<level>[A-Z]+) *~ \| "
            r"~(?P<file>[\w.<>]+)~:~(?P<function>[\w<>]+)~:~(?P<line>\d+)~ - "
        )
        .replace("@", _ISO_ANY)
        .replace("~", _C),
        "iso",
    ),
    Head(
        "python_site",
        (" ", ":"),
        r"^(?P<time>" + _ISO_ANY + r") (?P<level>" + _LEVEL + r") (?:(?P<logger>[\w.]+) )?"
        r"(?P<file>[\w./-]+):(?P<line>\d+):? ",
        "iso",
    ),
    Head(
        "python_named",
        (" - ",),
        r"^(?P<time>" + _ISO_ANY + r") - (?P<logger>[\w.]+) - (?P<level>" + _LEVEL + r") - ",
        "iso",
    ),
    Head(
        "python_level",
        (" - ",),
        r"^(?P<time>" + _ISO_ANY + r") - (?P<level>" + _LEVEL + r") - ",
        "iso",
    ),
    Head(
        "hydra",
        ("][", "] - "),
        r"^\[(?P<time>" + _ISO_ANY + r")\]\[(?P<logger>[\w.]+)\]\[(?P<level>" + _LEVEL + r")\] - ",
        "iso",
    ),
    Head(
        "python_logger_level",
        (": ",),
        r"^(?P<time>" + _ISO3 + r") (?P<logger>[\w.]+) (?P<level>" + _LEVEL + r"): ",
        "iso",
    ),
    Head(
        "python_basic",
        (":",),
        r"^(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL):(?P<logger>[\w.]+):",
    ),
    Head("python_fatal", ("Fatal Python error: ",), r"^(?P<level>Fatal) Python error: "),
    Head(
        "python_warning",
        (": ",),
        r"^(?P<file>[\w./<>-]+\.py):(?P<line>\d+): \w*Warning: ",
    ),
    Head(
        "python_frame",
        ('File "', ", line "),
        r'^ *File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<function>[\w.<>]+))?',
    ),
    # --- kernel and services ------------------------------------------------------------------
    Head("kernel_ctime", ("[", "] "), r"^\[(?P<time>" + _CTIME + r")\] ", "ctime"),
    Head("kernel", ("[", "] "), r"^\[ *(?P<time>\d+\.\d{6})\] ", "kernel_uptime"),
    Head(
        "dmesg_iso",
        (": ",),
        r"^[a-z]+ *:(?P<level>[a-z]+) *: (?P<time>" + _ISO_ANY + r") ",
        "iso",
    ),
    Head(
        "dmesg_uptime",
        (": [",),
        r"^[a-z]+ *:(?P<level>[a-z]+) *: \[ *(?P<time>\d+\.\d{6})\] ",
        "kernel_uptime",
    ),
    Head(
        "journald",
        (": ",),
        r"^(?P<time>" + _MONTH + r" [ \d]\d \d\d:\d\d:\d\d) (?P<host>[\w.-]+) "
        r"(?P<logger>[\w./@-]+)(?:\[(?P<pid>\d+)\])?: ",
        "syslog",
    ),
    Head(
        "journald_iso",
        (": ",),
        r"^(?P<time>" + _ISO + r"(?:[.,]\d+)?[+-]\d\d:?\d\d) (?P<host>[\w.-]+) "
        r"(?P<logger>[\w./@-]+)(?:\[(?P<pid>\d+)\])?: ",
        "iso",
    ),
    Head("kmsg", (",", ";"), r"^\d{1,3},\d+,(?P<time>\d+),[-c+](?:,[^;]*)?;", "uptime_us"),
    Head(
        "fabric_manager",
        ("[", "] [tid "),
        r"^\[(?P<time>" + _MONTH + r" \d\d \d{4} \d\d:\d\d:\d\d)\] \[(?P<level>[A-Z]+)\] "
        r"\[tid (?P<tid>\d+)\] ",
        "month_name",
    ),
    # --- a time and little else ---------------------------------------------------------------
    Head(
        "timing_run",
        (" TIMING RUN AT ",),
        r"^(?:STARTING|ENDING) TIMING RUN AT (?P<time>" + _ISO + r" [AP]M)",
        "ampm",
    ),
    Head("ampm", (" ", ":"), r"^\[?(?P<time>" + _ISO + r" [AP]M)\b", "ampm"),
    Head(
        "time_level",
        (":",),
        r"^\[?(?P<time>" + _ISO_ANY + r")\]?[ \t:|-]+\[? *(?P<level>" + _LEVEL + r")\b\]?",
        "iso",
    ),
    Head(
        "level_time",
        (":",),
        r"^\[?(?P<level>" + _LEVEL + r")\]?[ \t:|-]+\[?(?P<time>" + _ISO_ANY + r")\b\]?",
        "iso",
    ),
    Head("time", (":",), r"^\[?(?P<time>" + _ISO_ANY + r")(?:\]|\b)", "iso"),
    Head("ctime", (":",), r"^(?P<time>" + _CTIME + r")\b", "ctime"),
    Head("date_utc", (":",), r"^(?P<time>" + _DATE_UTC + r")\b", "date_utc"),
    Head(
        "month_name",
        (":",),
        r"^\[?(?P<time>" + _MONTH + r" \d\d \d{4} \d\d:\d\d:\d\d)\b",
        "month_name",
    ),
    Head("level", ("",), r"^\[?(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL|FATAL)(?:\]|:|\]:) "),
)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


def classify(sample_body: str) -> Head | None:
    """The first head that matches, or None for a line without one."""
    for head in HEADS:
        literals_here = all(literal in sample_body for literal in head.literals)
        if literals_here and _compiled(head.pattern).search(sample_body):
            return head
    return None


def extract(head: Head, bodies: Any) -> dict[str, Any]:
    """Columns of a head's groups over Arrow strings; null where the group or the head is absent.

    `bodies` is an Arrow string array (or chunked) of n bodies; each value is a string array of n.
    The boolean column `matched` tells a head without its optional groups from no head.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(bodies, pa.ChunkedArray):
        bodies = bodies.combine_chunks()
    found = pc.extract_regex(bodies, pattern=head.pattern)
    columns: dict[str, Any] = {"matched": found.is_valid()}
    for name in head.groups:
        values = pc.struct_field(found, name)
        columns[name] = pc.if_else(pc.equal(values, ""), None, values)
    return columns
