"""The built functions as a running stack. All of it only where the marker is asked for: building takes a minute."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.artefacts import build as building
from tests.artefacts.stack import Options, Stack
from tests.servers import Server

Start = Callable[..., Stack]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what needs a build unless `-m` names it."""
    if "artefacts" in str(config.option.markexpr):
        return
    skip = pytest.mark.skip(reason="builds for a minute: python -m tests.artefacts journey")
    for item in items:
        if item.get_closest_marker("artefacts"):
            item.add_marker(skip)


@pytest.fixture(scope="session")
def built() -> Path:
    """The folder of a build for this machine."""
    try:
        return building.build()
    except building.NotHere as error:
        pytest.skip(str(error))


@pytest.fixture
def start(built: Path, tmp_path: Path, seaweedfs: Server, moto_server: Server) -> Iterator[Start]:
    """start(concurrency={…}, …) is a stack with its mappings running, unless `mappings` is False."""
    python = building.runtime_python(building.find_python())
    with ExitStack() as ending:

        def start_one(*, mappings: bool = True, **options: Any) -> Stack:
            options.setdefault("parameters", {"BatchWindowSeconds": 0})
            folder = tmp_path / "stack"
            stack = Stack(built, python, folder, seaweedfs, moto_server, Options(**options))
            ending.enter_context(stack)
            if mappings:
                stack.start_mappings()
            return stack

        yield start_one
