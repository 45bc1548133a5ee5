"""Keys: no name leaves its folder, and what was named is read back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranklog.errors import BadInput, Corrupt
from ranklog.layout import keys
from ranklog.limits import HOUR_NS, NAME_BYTES_MAX

NAMES = st.text(max_size=16) | st.sampled_from(
    ["", ".", "..", "../x", "/", "a/b", "_unknown", "%2E"]
)
TIMES = st.integers(0, 2**63 - 1)


def test_keys_are_these() -> None:
    name = keys.IndexName("line", 5, 7, "shardId-0.1", "49", "50")
    assert keys.index_key("acme", 492_000, name) == (
        "acme/index/2026-02-16/00/line.00000000000000000005.00000000000000000007.shardId-0%2E1.49.50.idx"
    )
    assert keys.index_key("acme", None, name, late_day="2026-03-01") == (
        "acme/index/late/2026-03-01/line.00000000000000000005.00000000000000000007.shardId-0%2E1.49.50.idx"
    )
    assert keys.segment_key("a/b", 492_007, "s", "1", "2", "ff") == (
        "a%2Fb/data/2026-02-16/07/s.1.2.ff.parquet"
    )
    assert keys.segment_key("acme", None, "s", "1", "2", "ff", late_day="2026-03-01") == (
        "acme/data/late/2026-03-01/s.1.2.ff.parquet"
    )
    assert keys.hour_marker_key("acme", "llama 8b", "..", 492_007) == (
        "acme/runs/llama%208b/%2E./hours/2026-02-16T07"
    )
    assert keys.hour_marker_key("acme", "r", "l", None, late_day="2026-03-01") == (
        "acme/runs/r/l/hours/late-2026-03-01"
    )
    assert keys.quarantine_key(None, "2026-03-01", "s", "1") == "_unknown/quarantine/2026-03-01/s.1"
    assert keys.tenant_prefix("_unknown") == "%5Funknown/"
    assert keys.rule_key("acme", "loss") == "acme/config/rules/loss.json"


@given(NAMES)
def test_a_name_is_one_part_of_a_key_and_reads_back(name: str) -> None:
    part = keys.encode_name(name)
    assert part not in ("", ".", "..")
    assert "/" not in part
    assert part.isascii()
    assert keys.decode_name(part) == name


@given(NAMES, NAMES, NAMES, NAMES)
def test_no_name_escapes_its_prefix(tenant: str, run: str, launch: str, name: str) -> None:
    prefix = keys.launch_prefix(tenant, run, launch)
    assert prefix.count("/") == 4
    assert prefix.startswith(keys.tenant_prefix(tenant))
    assert keys.parse_launch_prefix(prefix) == (run, launch)
    assert keys.rule_key(tenant, name).count("/") == 3
    assert keys.segment_key(tenant, 3, name, run, launch, "0").count("/") == 4


@given(NAMES, NAMES)
def test_two_tenants_share_no_prefix(one: str, other: str) -> None:
    if one != other:
        assert not keys.tenant_prefix(one).startswith(keys.tenant_prefix(other))


@given(NAMES, TIMES, TIMES, NAMES, NAMES, NAMES, st.integers(0, 2_562_047), st.booleans())
def test_an_index_name_reads_back(
    kind: str, low: int, high: int, source: str, first: str, last: str, hour: int, late: bool
) -> None:
    name = keys.IndexName(kind, low, high, source, first, last)
    key = keys.index_key("t", None if late else hour, name, late_day="2026-03-01")
    assert keys.parse_index_key(key) == name
    assert keys.hour_of_index_prefix(key) == (None if late else hour)


@given(st.integers(0, 2_562_047))
def test_an_hour_reads_back(hour: int) -> None:
    assert keys.parse_hour(keys.hour_text(hour)) == hour
    assert keys.parse_hour_marker(keys.hour_marker_key("t", "r", "l", hour)) == hour
    assert keys.day_text(hour * HOUR_NS) == keys.hour_text(hour)[:10]


@pytest.mark.parametrize(
    "key", ["", "x.idx", "line.1.2.a.b.c", "line.x.2.a.b.c.idx", "a.1.2.b.c.d.parquet"]
)
def test_what_is_no_index_name_is_corrupt(key: str) -> None:
    with pytest.raises(Corrupt):
        keys.parse_index_key(key)


def test_a_name_too_long_for_a_file_is_refused() -> None:
    keys.encode_name("x" * NAME_BYTES_MAX)
    with pytest.raises(BadInput, match="at most 200"):
        keys.encode_name("x" * (NAME_BYTES_MAX + 1))


@pytest.mark.parametrize(
    ("low", "high", "hours"),
    [(0, 0, []), (0, 1, [0]), (HOUR_NS - 1, HOUR_NS + 1, [0, 1]), (HOUR_NS, 2 * HOUR_NS, [1])],
)
def test_hours_between_are_those_touched(low: int, high: int, hours: list[int]) -> None:
    assert list(keys.hours_between(low, high)) == hours


@given(st.integers(0, 2**63 - 1), st.none() | st.integers(0, 2**31 - 1), st.text(max_size=8))
def test_the_name_of_a_manifest_reads_back(attempt: int, rank: int | None, host: str) -> None:
    name = keys.ManifestName(attempt, rank, host if rank is None else "", "0" * 32)
    key = keys.manifest_key("t", "run", "launch", name)

    assert key.startswith(keys.manifests_prefix("t", "run", "launch"))
    assert keys.parse_manifest_key(key) == name


def test_a_host_named_like_a_rank_is_no_rank() -> None:
    name = keys.ManifestName(0, None, "17", "ab")

    assert keys.manifest_key("t", "r", "l", name) == "t/runs/r/l/manifests/0.%317.ab.json"
    assert keys.parse_manifest_key("t/runs/r/l/manifests/0.17.ab.json").rank == 17


def test_a_long_host_still_gives_the_name_of_a_file() -> None:
    assert len(keys.ManifestName(2**63 - 1, None, "." * 60, "0" * 32).render()) <= 255


@pytest.mark.parametrize("name", ["0.1.json", "a.1.ff.json", "0.1.ff.idx", ""])
def test_what_is_no_name_of_a_manifest_is_corrupt(name: str) -> None:
    with pytest.raises(Corrupt):
        keys.parse_manifest_key(f"t/runs/r/l/manifests/{name}")
