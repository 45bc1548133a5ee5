"""Fixtures that every package's tests share, and the rule that real logs are used where they lie."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.servers import moto_server, seaweedfs  # noqa: F401  (fixtures)

# A busy machine is slow, and that is no fault of a property.
settings.register_profile("ranklog", deadline=None)
settings.load_profile("ranklog")

# Real logs lie beside the checkout where a developer has them; RANKLOG_TEST_DATA names another place.
DATA = Path(os.environ.get("RANKLOG_TEST_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture(scope="session", autouse=True)
def private_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests leave nothing in the user's cache and configuration, and find nothing there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        yield


@pytest.fixture(autouse=True)
def private_rings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What processes of a test leave on tmpfs goes with it, and is small."""
    folder = Path(f"/dev/shm/ranklog-test-{os.getpid()}")
    monkeypatch.setenv("RANKLOG_RINGS", str(folder))
    monkeypatch.setenv("RANKLOG_RING_MIB", "1")
    yield
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(autouse=True)
def own_signal_handlers() -> Iterator[None]:
    """Commands that run in the test's process take signals for themselves; the next test has them back."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


_skipped_data_tests: list[str] = []

# A shell starts jobs in the background with SIGINT ignored, and children inherit that: tests of Ctrl-C
# would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real logs, or a skip."""
    if not (DATA / "formats.md").is_file():
        pytest.skip(f"no real logs at {DATA}")
    return DATA


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Remember data tests that were skipped although the data is there."""
    if report.skipped and "data" in report.keywords and DATA.is_dir():
        _skipped_data_tests.append(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A skipped data test beside existing data is a failure: it would hide what it should show."""
    if _skipped_data_tests and session.exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name them."""
    for name in _skipped_data_tests:
        terminalreporter.write_line(f"skipped although {DATA} exists: {name}", red=True)
