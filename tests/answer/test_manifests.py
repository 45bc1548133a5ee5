"""Pieces of manifests folded into one, and terms that hold for a run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest

from ranklog.answer.facts import check_terms, facts_hold, run_facts, unknown_keys
from ranklog.answer.manifests import Piece, declared_ranks, flatten, leading, merge, topology
from ranklog.errors import BadQuery
from ranklog.layout.keys import ManifestName
from ranklog.plan.parse import parse_query


def name(rank: int | None, attempt: int = 0, host: str = "", digest: str = "00") -> ManifestName:
    return ManifestName(attempt, rank, host, digest)


def regexes(pattern: str, flags: str, texts: Sequence[str]) -> list[bool]:
    return [re.search(pattern, text) is not None for text in texts]


PIECES = [
    Piece(
        name(0),
        {
            "rank": 0,
            "host": "n0",
            "groups": {"tp": [0, 2], "dp": [0, None]},
            "owner": "ada",
            "tags": {"team": "nlp", "nightly": ""},
            "config": {"optimizer": {"lr": 0.1, "betas": [0.9, 0.95]}, "flash": True, "warm": "1e-5"},
            "command": ["python", "train.py"],
            "started_ns": 5,
        },
    ),
    Piece(
        name(0, digest="01"),
        {
            "git": {"commit": "abc", "dirty": 1},
            "packages": {"torch": "2.4.0"},
            "machine": {"cpus": 8},
            "files": [{"path": "/job/base.yaml", "blake2b": "00"}],
            "drivers": {"nvidia": "550"},
            "accelerators": [{"name": "H100"}, {"name": "H100"}],
        },
    ),
    Piece(name(1), {"rank": 1, "host": "n0", "groups": {"tp": [1, 2], "dp": [0, None]}}),
    Piece(name(2), {"rank": 2, "host": "n1", "groups": {"tp": [0, 2], "dp": [1, None]}, "owner": "bob"}),
    Piece(name(2, digest="02"), {"drivers": {"nvidia": "535"}, "attachments": [{"path": "/b", "time_ns": 2}]}),
    Piece(name(1, digest="03"), {"attachments": [{"path": "/a", "time_ns": 1}]}),
]  # fmt: skip


def test_the_leading_rank_speaks_for_the_run_and_hosts_for_themselves() -> None:
    manifest = merge(PIECES)

    assert (manifest["owner"], manifest["git"]) == ("ada", {"commit": "abc", "dirty": 1})
    assert manifest["hosts"]["n0"]["drivers"] == {"nvidia": "550"}
    assert manifest["hosts"]["n1"]["drivers"] == {"nvidia": "535"}
    assert {rank: said["host"] for rank, said in manifest["ranks"].items()} == {
        "0": "n0",
        "1": "n0",
        "2": "n1",
    }
    assert [item["path"] for item in manifest["attachments"]] == ["/a", "/b"]


def test_a_rank_speaks_louder_than_its_launcher() -> None:
    launcher = Piece(
        name(None, host="n0"),
        {"owner": "root", "command": ["torchrun", "train.py"], "cwd": "/job", "started_ns": 9},
    )
    manifest = merge([*PIECES, launcher])

    assert (manifest["owner"], manifest["cwd"]) == ("ada", "/job")
    assert manifest["command"] == ["python", "train.py"]
    assert manifest["launch_command"] == ["torchrun", "train.py"]
    assert merge([launcher])["command"] == ["torchrun", "train.py"]


def test_pieces_merge_in_any_order() -> None:
    assert merge(PIECES[::-1]) == merge(PIECES)


def test_the_newest_attempt_leads_and_its_lowest_rank() -> None:
    names = [name(0, 0), name(3, 1), name(2, 1), name(2, 1, digest="01")]

    assert leading(names) == names[2:]
    launchers = [name(None, 1, "n1"), name(None, 1, "n0")]
    assert leading([*names, *launchers]) == [*names[2:], launchers[1]]
    assert leading(launchers) == launchers[1:]
    assert leading([]) == []
    assert declared_ranks(names) == {0: frozenset({0}), 1: frozenset({2, 3})}


def test_the_topology_counts_hosts_and_groups() -> None:
    manifest = merge(PIECES)

    assert topology(manifest, {3: "n1"}) == {
        "hosts": 2,
        "ranks_per_host": 2,
        "groups": {"tp": 2, "dp": 2},
        "accelerators": 2,
    }
    assert topology({}, {0: "a", 1: "a", 2: "b"})["ranks_per_host"] == [1, 2]
    assert topology({}, {}) == {"hosts": 0, "groups": {}}


def test_keys_are_flattened_with_dots() -> None:
    assert flatten({"a": {"b": [1, None]}, "c": "x"}) == {"a.b.0": 1, "a.b.1": None, "c": "x"}


ROW: dict[str, Any] = {
    "run": "llama",
    "run_id": "llama@17",
    "state": "failed",
    "attempts": [{"attempt": 0, "exit_code": 0}, {"attempt": 1, "exit_code": -9}],
    "ranks": [0, 1, 2],
    "hosts": ["n0", "n1"],
    "lines": 12,
    "last_iteration": 120,
    "world_size": 4,
    "owner": "ada",
    "topology": {"hosts": 2, "groups": {"tp": 2}},
}


@pytest.mark.parametrize(
    ("query", "holds"),
    [
        ("", True),
        ("config.optimizer.lr>0.05 git.dirty:1", True),
        ("config.optimizer.lr>0.1", False),
        ("config.optimizer.lr:0.1", True),
        ("config.optimizer.betas.1:0.95", True),
        ("config.flash:true", True),
        ("config.flash:false", False),
        ("config.warm<0.001", True),
        ("config.warm:1e-5", True),
        ("config.optimizer:*", True),
        ("config.other:null", True),
        ("config.other>1", False),
        ("NOT config.other>1", True),
        ("config.other!=1", False),
        ("owner:ada", True),
        ("owner!=ada", False),
        ("owner:a*", True),
        ("owner:/^a/", True),
        ("tags.team:nlp tag.nightly:*", True),
        ("packages.torch:2.*", True),
        ("packages.torch:/^2[.]4/", True),
        ("rank:2", True),
        ("rank:7", False),
        ("rank:0-1", True),
        ("host:n1", True),
        ("world_size>=4", True),
        ("exit_code:-9", True),
        ("iteration>100", True),
        ("drivers.nvidia:535", True),
        ("drivers.nvidia:550", True),
        ("accelerator:H100", True),
        ("topology.groups.tp:2", True),
        ("state:failed", True),
        ("nlp", True),
        ("nightly", True),
        ("file:base.yaml", True),
        ("base.yaml", True),
        ("train.py", True),
        ("/train[.]py/", True),
        ("bert", False),
        ("bert OR owner:ada", True),
        ("attempt:1", True),
    ],
)
def test_a_query_holds_for_a_run(query: str, holds: bool) -> None:
    expr = parse_query(query, now_ns=0).expr
    check_terms(expr)

    assert facts_hold(expr, run_facts(ROW, merge(PIECES)), regexes) is holds


@pytest.mark.parametrize(
    "query", ["level>=ERROR", "near(error, time, 5s)", "a OR NOT call_site:x.py:3"]
)
def test_terms_on_lines_are_refused(query: str) -> None:
    with pytest.raises(BadQuery, match="run"):
        check_terms(parse_query(query, now_ns=0).expr)


def test_a_key_that_no_run_has_is_named() -> None:
    facts = run_facts(ROW, merge(PIECES))
    expr = parse_query("config.lrr:1 owner:x env.X:1 config.optimizer:*", now_ns=0).expr

    assert unknown_keys(expr, [facts]) == ["config.lrr", "environment.X"]
