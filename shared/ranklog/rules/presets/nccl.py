"""NCCL and RCCL: who is which rank of which communicator, on which device; transport errors."""

from __future__ import annotations

from ranklog.rules.presets.number import floats, ints, num
from ranklog.rules.rule import Rule

_RANK = ints("nccl_rank", "nccl_nranks")
_IB = ints("ib_status", "ib_opcode", "ib_len", "ib_vendor_err")

RULES = (
    Rule(
        "nccl_info",
        (" NCCL INFO ",),
        r"^[\w.-]+:(?P<pid>\d+):\d+ \[(?P<nccl_dev>\d+)\] NCCL INFO ",
        ints("pid", "nccl_dev"),
    ),
    Rule(
        "nccl_warn",
        (" NCCL WARN ",),
        r"^[\w.-]+:(?P<pid>\d+):\d+ \[(?P<nccl_dev>\d+)\] \S+:\d+ NCCL WARN ",
        ints("pid", "nccl_dev"),
    ),
    Rule(
        "nccl_init",
        (" nranks ", " cudaDev ", " busId "),
        r"comm (?P<nccl_comm>0x[0-9a-f]+) rank (?P<nccl_rank>\d+) nranks (?P<nccl_nranks>\d+) "
        r"cudaDev (?P<cuda_dev>\d+)(?: nvmlDev \d+)? busId (?P<bus_id>\w+)"
        r"(?: commId (?P<comm_id>0x\w+))?"
        r"(?:.* - (?P<nccl_event>(?:Init|Destroy|Abort) (?:START|COMPLETE)))?",
        _RANK | ints("cuda_dev"),
    ),
    Rule(
        "nccl_topology",
        (" nRanks ", " nNodes ", " localRanks "),
        r"comm (?P<nccl_comm>0x[0-9a-f]+) rank (?P<nccl_rank>\d+) nRanks (?P<nccl_nranks>\d+) "
        r"nNodes (?P<nccl_nnodes>\d+) localRanks \d+ localRank (?P<nccl_local_rank>\d+)",
        _RANK | ints("nccl_nnodes", "nccl_local_rank"),
    ),
    Rule(
        "nccl_init_timings",
        ("Init timings", " nranks ", " total "),
        rf"rank (?P<nccl_rank>\d+) nranks (?P<nccl_nranks>\d+) total {num('nccl_init_s')}",
        _RANK | floats("nccl_init_s"),
    ),
    Rule(
        "nccl_return",
        (" NCCL INFO ", " -> "),
        r"NCCL INFO (?P<nccl_site>[\w/.-]+:\d+) -> (?P<nccl_code>\d+)",
        ints("nccl_code"),
        gate=r" NCCL INFO [\w/.\x00-]+:\x00 -> \x00",
    ),
    Rule(
        "nccl_ib",
        ("Got completion from peer ", " vendor err "),
        r"from peer (?P<nccl_peer>\S+) with status=(?P<ib_status>\d+) opcode=(?P<ib_opcode>\d+) "
        r"len=(?P<ib_len>\d+) vendor err (?P<ib_vendor_err>\d+)",
        _IB,
    ),
    Rule(
        "nccl_ib_old",
        ("Got completion ", " with error ", " vendor err "),
        r"(?:from peer (?P<nccl_peer>\S+) )?with error (?P<ib_status>\d+), "
        r"opcode (?P<ib_opcode>\d+), len (?P<ib_len>\d+), vendor err (?P<ib_vendor_err>\d+)",
        _IB,
    ),
    Rule(
        "bench_busbw",
        (" busbw: ", " Gbps"),
        rf"busbw: {num('busbw_gbps')} +Gbps",
        floats("busbw_gbps"),
    ),
    Rule(
        "bench_algo",
        (" algo throughput: ", " bps, "),
        rf"algo throughput: {num('algo_bps')} bps",
        floats("algo_bps"),
    ),
)
