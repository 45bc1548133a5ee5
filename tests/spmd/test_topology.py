"""Groups that explain sets of ranks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ranklog.spmd.start_lines import groups_of_lines
from ranklog.spmd.topology import Group, Topology, make_topology


def topology(ranks: int = 16, per_node: int = 4, tp: int = 2, pp: int = 2) -> Topology:
    groups = groups_of_lines(
        [
            f"using world size: {ranks}, data-parallel-size: {ranks // tp // pp}, "
            f"tensor-model-parallel size: {tp}, pipeline-model-parallel size: {pp}"
        ],
        range(ranks),
    )
    return make_topology(
        range(ranks),
        hosts={rank: f"gpu-{rank // per_node}" for rank in range(ranks)},
        local_ranks={rank: rank % per_node for rank in range(ranks)},
        groups=groups,
    )


def test_a_host_a_stage_and_a_tensor_group_are_named() -> None:
    found = topology()
    assert found.explain([4, 5, 6, 7]) == Group("node gpu-1", (4, 5, 6, 7))
    assert found.explain(range(8, 16)) == Group("pp=1", tuple(range(8, 16)))
    assert found.explain([2, 3]) == Group("tp group at dp=1, pp=0", (2, 3))
    assert found.explain(range(16)) == Group("all", tuple(range(16)))


def test_who_of_the_group_is_not_odd_and_who_is_beside_it_are_said() -> None:
    found = topology(ranks=32, per_node=8, tp=1, pp=1)
    assert found.explain([8, 9, 10, 11, 12, 13, 14]) == Group(
        "node gpu-1", tuple(range(8, 16)), exceptions=(15,)
    )
    assert found.explain([8, 9, 10, 11, 12, 13, 14, 15, 20]) == Group(
        "node gpu-1", tuple(range(8, 16)), others=(20,)
    )


def test_ranks_with_nothing_in_common_and_one_alone_have_no_group() -> None:
    assert topology().explain([1, 6]) is None
    assert topology().explain([3]) is None
    assert topology().explain([]) is None


@given(st.sets(st.integers(0, 15)))
def test_a_group_and_its_exceptions_are_the_set(odd: set[int]) -> None:
    group = topology().explain(odd)
    if group is not None:
        assert (set(group.ranks) - set(group.exceptions)) | set(group.others) == odd
