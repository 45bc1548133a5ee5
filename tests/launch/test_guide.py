"""The guide's lines against the code: what they name is there, what they type is understood."""

from __future__ import annotations

import ast
import importlib
import re
import shlex
from pathlib import Path

import pytest

import ranklog
from ranklog.cli.arguments import command_of, parse
from ranklog.launch.starters import starter_of
from ranklog.produce.identity import Surroundings, find_identity

GUIDE = (Path(__file__).parents[2] / "docs" / "launching.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", GUIDE, re.DOTALL)
SOURCES = "".join(path.read_text() for path in Path(ranklog.__file__).parent.rglob("*.py"))
COMMANDS = [
    line.partition("  #")[0]
    for kind, block in BLOCKS
    if kind == "sh"
    for line in block.splitlines()
    if "ranklog " in line
]
FRAMEWORKS = "torchrun Slurm Kubernetes Megatron TorchTitan Transformers Lightning Primus".split()


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_each_way_to_train_has_a_part_of_its_own(framework: str) -> None:
    assert re.search(rf"^## .*{framework}", GUIDE, re.MULTILINE)


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_of_the_guide_is_one_of_ours(line: str) -> None:
    words = shlex.split(line)
    ours = words[words.index("ranklog") + 1 :]

    found = parse(command_of(ours[0]), ours[1:])
    if ours[0] == "run":
        assert found.cmd_words, "runs nothing"
        starter = starter_of(words, {})
        assert starter is None or starter.advice() == ""  # ranklog run stands below srun, mpirun


def test_every_variable_of_the_guide_is_read() -> None:
    named = set(re.findall(r"\bRANKLOG_[A-Z_]+[A-Z]", GUIDE))

    assert len(named) > 4
    assert [name for name in sorted(named) if f'"{name}"' not in SOURCES] == []


def test_every_name_that_the_guide_imports_is_there() -> None:
    named = set(re.findall(r"ranklog\.frameworks\.(\w+)[. ](?:import )?(\w+)", GUIDE))

    assert {module for module, _ in named} == {"titan", "huggingface", "lightning"}
    for module, name in named:
        assert hasattr(importlib.import_module(f"ranklog.frameworks.{module}"), name)


def test_python_of_the_guide_is_python_and_init_takes_its_words() -> None:
    taken = set(ranklog.init.__code__.co_varnames[: ranklog.init.__code__.co_argcount])
    taken |= set(ranklog.init.__kwdefaults__ or {})
    for kind, block in BLOCKS:
        if kind != "python":
            continue
        tree = ast.parse(block.replace("…", "..."))
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        inits = [call for call in calls if ast.unparse(call.func) == "ranklog.init"]
        assert {word.arg for call in inits for word in call.keywords} <= taken


def test_a_pod_of_the_guide_s_jobset_is_a_rank_of_one_launch() -> None:
    """The variables that the guide has people set from a JobSet's labels."""
    pod = {
        "JOB_COMPLETION_INDEX": "1",
        "JOBSET_NAME": "llama",
        "JOB_INDEX": "2",
        "JOB_PARALLELISM": "4",
        "JOBSET_RESTART_ATTEMPT": "3",
    }
    assert all(f"`{name}`" in GUIDE for name in pod)
    who = find_identity(pod, Surroundings("n0", "train.py", "n0:1:1")).identity

    assert (who.run, who.launch, who.rank, who.attempt) == ("llama", "llama", 9, 3)
