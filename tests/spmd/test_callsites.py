"""Who logs how much."""

from __future__ import annotations

from ranklog.model.index import SiteCount
from ranklog.spmd.callsites import CallSites


def count(tid: int, lines: int, low: int, high: int, ranks: dict[int, int]) -> SiteCount:
    return SiteCount(
        "t.py:1", "f", None, 20, tid, lines, lines * 10, low, high, tuple(ranks.items())
    )


def test_counts_of_segments_with_other_template_ids_add_up() -> None:
    sites = CallSites()
    sites.add([count(1, 3, 0, 10**9, {0: 2, 1: 1})], ["", "step \x00"])
    sites.add([count(2, 3, 10**9, 2 * 10**9, {0: 1, 1: 2})], ["", "other", "step \x00"])
    assert [site.to_json(str) for site in sites.sites()] == [
        {
            "call_site": "t.py:1",
            "function": "f",
            "logger": None,
            "level": "INFO",
            "count": 6,
            "bytes": 60,
            "ranks": [0, 1],
            "first_ns": 0,
            "first": "0",
            "last_ns": 2 * 10**9,
            "last": "2000000000",
            "rate": 3.0,
            "template": "step <*>",
        }
    ]


def test_what_all_ranks_say_equally_often_can_be_hidden() -> None:
    sites = CallSites()
    sites.add(
        [
            count(1, 4, 0, 1, {0: 2, 1: 2}),
            count(2, 3, 0, 1, {0: 1, 1: 2}),
            count(3, 1, 0, 0, {0: 1}),
        ],
        ["", "same", "uneven", "only one"],
    )
    assert [site.template for site in sites.sites(hide_alike=True)] == ["uneven", "only one"]


def test_template_zero_has_no_text_and_a_single_moment_no_rate() -> None:
    sites = CallSites()
    sites.add([count(0, 1, 5, 5, {-1: 1})], [""])
    [site] = sites.sites()
    assert (site.template, site.rate, site.to_json(str)["ranks"]) == (None, None, [])
