"""Places of ranks from what frameworks print at the start."""

from __future__ import annotations

import pytest

from ranklog.spmd.start_lines import LITERALS, groups_of_lines

_MEGATRON = (
    "using world size: 8, data-parallel-size: 2, tensor-model-parallel size: 2, "
    "pipeline-model-parallel size: 2 "
)
_MEGATRON_CORE = (
    "using world size: 8, data-parallel size: 1, context-parallel size: 2, hierarchical "
    "context-parallel sizes: None, tensor-model-parallel size: 2, pipeline-model-parallel size: 2"
)
_DEEPSPEED = "{ProcessCoord(pipe=0, data=0, model=0): 0, ProcessCoord(pipe=1, data=0, model=1): 3}"
_NEMO = "[NeMo I 2024-05-01 22:04:12 megatron_init:{}] All {} parallel group ranks: {}"
_TITAN = "[titan] 2025-01-01 10:00:00,000 - root - INFO - Building 2-D device mesh with "


def test_sizes_of_megatron_are_places_in_its_order() -> None:
    found = groups_of_lines([_MEGATRON], range(8))
    assert found[0] == {"pp": 0, "dp": 0, "tp": 0}
    assert found[3] == {"pp": 0, "dp": 1, "tp": 1}
    assert found[6] == {"pp": 1, "dp": 1, "tp": 0}


def test_a_context_stands_between_data_and_tensors() -> None:
    found = groups_of_lines([_MEGATRON_CORE], range(8))
    assert found[7] == {"pp": 1, "dp": 0, "cp": 1, "tp": 1}
    assert found[2] == {"pp": 0, "dp": 0, "cp": 1, "tp": 0}


def test_deepspeed_names_the_places_of_each_rank() -> None:
    assert groups_of_lines([_DEEPSPEED], range(4)) == {
        0: {"pp": 0, "dp": 0, "tp": 0},
        3: {"pp": 1, "dp": 0, "tp": 1},
    }


def test_nemo_lists_the_groups_of_each_dimension() -> None:
    lines = [
        _NEMO.format(276, "data", "[[0, 4], [1, 5], [2, 6], [3, 7]]").replace(
            "ranks:", "ranks with context parallel combined:"
        ),
        _NEMO.format(290, "context", "[[0], [1], [2], [3], [4], [5], [6], [7]]"),
        _NEMO.format(312, "tensor model", "[[0, 1, 2, 3], [4, 5, 6, 7]]"),
        _NEMO.format(351, "pipeline model", "[[0], [1], [2], [3], [4], [5], [6], [7]]"),
    ]
    found = groups_of_lines(lines, range(8))
    assert found[6] == {"dp": 1, "cp": 0, "tp": 2, "pp": 0}
    assert sorted(found) == list(range(8))


def test_a_device_mesh_is_said_outermost_first() -> None:
    found = groups_of_lines([_TITAN + "['pp', 'dp_shard'], [2, 4]"], range(8))
    assert found[5] == {"pp": 1, "dp_shard": 1}


@pytest.mark.parametrize("text", [_MEGATRON, _TITAN + "['dp_shard'], [8]"])
def test_sizes_of_another_number_of_ranks_tell_nothing(text: str) -> None:
    assert groups_of_lines([text], range(6)) == {}


@pytest.mark.parametrize(
    "text", [_MEGATRON, _MEGATRON_CORE, _DEEPSPEED, _NEMO.format(1, "data", "[[0, 1]]"), _TITAN]
)
def test_what_is_read_is_asked_for(text: str) -> None:
    assert any(literal in text for literal in LITERALS)
