"""Python's logging with and without a record in between: the same lines, from the same places."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.reading import streams_in
from tests.produce.test_session import Job


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


PROGRAM = """
import logging
import ranklog
class Odd:
    def __str__(self): return "odd"
class Rude:
    def __str__(self): raise RuntimeError("no")
    def __repr__(self): return "<rude>"
def wrapped(message, *args): log.info(message, *args, stacklevel=2)
def success(self, message, *args): self._log(25, message, args)
logging.Logger.success = success
def named(name): logging.getLogger(name).info("by name")
ranklog.init(run="r", level="DEBUG")
OTHER
log = logging.getLogger("a.b")
log.setLevel(logging.DEBUG)
def say():
    log.info("plain")
    log.debug("%s of %d", "x", 3)
    log.info("%(a)s and %(b)d", {"a": 1, "b": 2})
    log.info("{'a': %s}", {"k": 1})
    log.info("%s %s", Odd(), 1.5)
    log.info("100%")
    log.info(f"text {3}")
    log.info(Odd())
    log.info("%d of %d", 1)
    log.info("big %d", 2**70)
    log.info("lone \\udc80 %s", "\\udc80")
    log.info("true %s %s", True, None)
    log.info("two\\nlines")
    log.info("x" * 3000)
    log.info("%s", Rude())
    log.warning("careful")
    log.info("with extra", extra={"shard": 7})
    log.log(25, "level 25")
    wrapped("from %s", "elsewhere")
    log.success("by a method of %s", "theirs")
    named("c"); named("d"); named("c")
    logging.info("by the module"); logging.log(15, "at %d", 15)
    logging.LoggerAdapter(log, {}).info("adapted")
    logging.disable(logging.INFO); log.info("disabled"); logging.disable(logging.NOTSET)
    for template in ("first %d", "second %d", "first %d"): log.info(template, 1)
say(); say()
log.setLevel(logging.INFO); log.debug("not"); log.info("last")
"""


def test_lines_are_the_same_with_and_without_another_handler(job: Job, tmp_path: Path) -> None:
    other = Job(tmp_path / "other")
    script = tmp_path / "program.py"
    script.write_text(PROGRAM.replace("OTHER", ""))
    runs = f"import runpy; runpy.run_path({str(script)!r})"
    alone = job.run(runs)
    lines = job.collect()
    script.write_text(
        PROGRAM.replace("OTHER", "logging.getLogger().addHandler(logging.NullHandler())")
    )
    beside = other.run(runs)
    others = other.collect()

    assert (alone.returncode, beside.returncode) == (0, 0)
    assert len(lines) > 50
    assert [(x.text, x.level, x.site, x.logger, x.metadata, x.group) for x in lines] == [
        (x.text, x.level, x.site, x.logger, x.metadata, x.group) for x in others
    ]
    texts = [x.text for x in lines]
    half = texts[: texts.index("plain", 1)]
    assert texts == [*half, *half, "last"]
    assert half[:9] == [
        "plain",
        "x of 3",
        "1 and 2",
        "{'a': {'k': 1}}",
        "odd 1.5",
        "100%",
        "text 3",
        "odd",
        "%d of %d (1,) (not formatted: TypeError('not enough arguments for format string'))",
    ]
    assert half[-3:] == ["first 1", "second 1", "first 1"]
    assert "disabled" not in texts


def test_a_handler_that_comes_later_gets_every_record_and_goes_again(job: Job) -> None:
    done = job.run(
        "import logging, ranklog\n"
        "class List(logging.Handler):\n"
        "    def emit(self, record): seen.append(record.getMessage())\n"
        "seen, log = [], logging.getLogger('a.b')\n"
        "ranklog.init(run='r')\n"
        "def work(n): log.info('line %d', n)\n"
        "work(0); work(1)\n"
        "extra = List(); logging.getLogger().addHandler(extra); work(2); work(3)\n"
        "logging.getLogger().removeHandler(extra); work(4); work(5)\n"
        "logging.getLogger('a').handlers = [extra]; work(6)\n"
        "logging.getLogger('a').handlers = []; work(7)\n"
        "log.addFilter(lambda record: record.args != (8,)); work(8); work(9); log.filters.clear()\n"
        "log.propagate = False; work(10); log.propagate = True; work(11)\n"
        "ranklog.close(); work(12)\n"
        "print(seen, logging.Logger._log.__module__)"
    )

    assert done.stdout == "['line 2', 'line 3', 'line 6'] logging\n"
    assert job.texts() == [f"line {n}" for n in (*range(8), 9, 11)]


def test_caplog_sees_what_it_would_and_so_do_we(job: Job, tmp_path: Path) -> None:
    test = tmp_path / "test_user.py"
    test.write_text(
        "import logging, ranklog\n"
        "ranklog.init(run='r')\n"
        "def test_it(caplog):\n"
        "    caplog.set_level(logging.INFO)\n"
        "    logging.getLogger('a').info('seen %d', 3)\n"
        "    assert caplog.messages == ['seen 3']\n"
        "    assert caplog.records[0].lineno == 5\n"
    )
    done = job.run(
        f"import pytest, sys; sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', {str(test)!r}]))"
    )

    assert done.returncode == 0, done.stdout
    assert job.texts() == ["seen 3"]


def test_a_full_ring_drops_and_counts_info_keeps_warnings_and_never_waits(job: Job) -> None:
    done = job.run(
        "import logging, ranklog, time\n"
        "ranklog.init(run='r')\n"
        "longest = 0\n"
        "for n in range(40_000):\n"
        "    start = time.thread_time_ns(); logging.info('line %d', n)\n"
        "    longest = max(longest, time.thread_time_ns() - start)\n"
        "for n in range(5): logging.warning('kept %d', n)\n"
        "ranklog.telemetry({'loss': 1.5})\n"
        "print(longest < 20e6)",
        RANKLOG_RING_MIB="1",
    )

    assert done.stdout == "True\n"
    assert done.stderr.count("ranklog: lines are dropped and counted: ring full") == 1
    lines = [x for x in job.collect() if x.channel == "logging"]
    texts = [x.text for x in sorted(lines, key=lambda x: x.seq)]
    assert texts[-5:] == [f"kept {n}" for n in range(5)]
    kept = len(texts) - 5
    assert texts[:kept] == [f"line {n}" for n in range(kept)]
    dropped: dict[str, int] = {}
    for entry in streams_in(job.stream):
        for drop in entry.drops:
            dropped[drop.reason] = dropped.get(drop.reason, 0) + drop.lines
    assert dropped == {"ring full: info": 40_000 - kept, "ring full: telemetry": 1}
