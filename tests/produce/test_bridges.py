"""Beside other logging libraries: every line once, from where it was written."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.produce.test_session import Job


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def _needs(*names: str) -> pytest.MarkDecorator:
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {missing}")


@_needs("loguru")
def test_lines_of_loguru_have_its_level_place_and_bound_values(job: Job) -> None:
    job.run(
        "import ranklog\n"
        "from loguru import logger\n"
        "ranklog.init(run='r')\n"
        "logger.remove(); logger.add(ranklog.loguru_sink(), format='{message}', level=0)\n"
        "logger.success('saved {}', 3)\n"
        "def f():\n"
        "    logger.bind(shard=7).trace('read')\n"
        "f()\n"
        "try: 1 / 0\n"
        "except ZeroDivisionError: logger.exception('oops')"
    )

    saved, read, *group = job.collect()
    assert (saved.text, saved.level, saved.site, saved.logger) == (
        "saved 3",
        25,
        "<string>:5",
        "__main__",
    )
    assert (read.text, read.level, read.site, read.metadata) == (
        "read",
        5,
        "<string>:7",
        (("shard", 7),),
    )
    assert [group[0].text, group[-1].text] == ["oops", "ZeroDivisionError: division by zero"]
    assert {x.level for x in group} == {40}


@_needs("structlog")
def test_events_of_structlog_are_lines_and_go_on(job: Job) -> None:
    done = job.run(
        "import ranklog, structlog\n"
        "ranklog.init(run='r')\n"
        "structlog.configure(processors=[structlog.processors.add_log_level,\n"
        "    ranklog.structlog_processor, structlog.processors.JSONRenderer()])\n"
        "log = structlog.get_logger()\n"
        "log.bind(shard=7).warning('slow', took=1.5)\n"
        "try: 1 / 0\n"
        "except ZeroDivisionError: log.exception('oops')"
    )

    slow, *group = job.collect()
    assert (slow.text, slow.level, slow.site) == ("slow", 30, "<string>:6")
    assert slow.metadata == (("shard", 7), ("took", 1.5))
    assert [group[0].text, group[-1].text] == ["oops", "ZeroDivisionError: division by zero"]
    assert '"event": "slow"' in done.stdout


@_needs("absl")
def test_lines_of_absl_come_once_from_their_place(job: Job) -> None:
    job.run(
        "import ranklog\n"
        "from absl import logging\n"
        "ranklog.init(run='r')\n"
        "logging.set_verbosity(logging.INFO)\n"
        "logging.info('step %d', 3)\n"
        "logging.warning('slow')"
    )

    assert [(x.text, x.level, x.site, x.logger) for x in job.collect()] == [
        ("step 3", 20, "<string>:5", "absl"),
        ("slow", 30, "<string>:6", "absl"),
    ]


@_needs("opentelemetry.sdk._logs")
def test_a_handler_of_opentelemetry_beside_ours_sees_every_record(job: Job) -> None:
    done = job.run(
        "import logging, warnings\n"
        "warnings.simplefilter('ignore')\n"
        "import ranklog\n"
        "from opentelemetry.sdk._logs import LoggerProvider, LoggingHandler\n"
        "from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter as Memory\n"
        "from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor\n"
        "ranklog.init(run='r')\n"
        "memory, provider = Memory(), LoggerProvider()\n"
        "provider.add_log_record_processor(SimpleLogRecordProcessor(memory))\n"
        "logging.info('before')\n"
        "logging.getLogger().addHandler(LoggingHandler(logger_provider=provider))\n"
        "logging.getLogger('a.b').info('step %d', 3)\n"
        "print([x.log_record.body for x in memory.get_finished_logs()])"
    )

    assert done.stdout == "['step 3']\n"
    assert job.texts() == ["before", "step 3"]


def test_a_patch_of_logger_as_sentry_makes_sees_every_record_from_then_on(job: Job) -> None:
    done = job.run(
        "import ranklog, logging\n"
        "ranklog.init(run='r')\n"
        "seen = []\n"
        "before = logging.Logger.callHandlers\n"
        "def patched(self, record):\n"
        "    seen.append(record.getMessage()); return before(self, record)\n"
        "def work(n): logging.getLogger('a').info('step %d', n)\n"
        "work(1); work(2)\n"
        "logging.Logger.callHandlers = patched\n"
        "work(3); work(4)\n"
        "logging.Logger.callHandlers = before\n"
        "factory = logging.getLogRecordFactory()\n"
        "def enriched(*args, **more):\n"
        "    record = factory(*args, **more); record.trace_id = 'abc'; return record\n"
        "logging.setLogRecordFactory(enriched)\n"
        "work(5)\n"
        "print(seen)"
    )

    assert done.stdout == "['step 3', 'step 4']\n"
    lines = job.collect()
    assert [x.text for x in lines] == [f"step {n}" for n in range(1, 6)]
    assert {x.site for x in lines} == {"<string>:7"}
    assert [x.metadata for x in lines] == [()] * 4 + [(("trace_id", "abc"),)]


def test_somebody_elses_log_method_is_never_replaced(job: Job) -> None:
    done = job.run(
        "import logging\n"
        "before, seen = logging.Logger._log, []\n"
        "def theirs(self, *args, **more):\n"
        "    seen.append(args[1]); return before(self, *args, **more)\n"
        "logging.Logger._log = theirs\n"
        "import ranklog\n"
        "ranklog.init(run='r')\n"
        "logging.info('a')\n"
        "print(seen, logging.Logger._log is theirs); ranklog.close()\n"
        "logging.Logger._log = before\n"
        "ranklog.init(run='r')\n"
        "ours = logging.Logger._log\n"
        "def later(self, *args, **more):\n"
        "    seen.append(args[1]); return ours(self, *args, **more)\n"
        "logging.Logger._log = later\n"
        "logging.info('b'); ranklog.close()\n"
        "print(seen, ours is not before, logging.Logger._log is later)"
    )

    assert done.stdout == "['a'] True\n['a', 'b'] True True\n"
    assert sorted(job.texts()) == ["a", "b"]
