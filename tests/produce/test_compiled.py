"""The compiled form of the hot path: the bytes of the Python form, whatever is said; no crash, no leak."""

from __future__ import annotations

import gc
import os
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import ranklog
from ranklog.produce import context, records
from ranklog.produce.compiled import hot
from ranklog.produce.identity import Identity
from ranklog.produce.producer import Producer
from ranklog.produce.ring import BODY, HEAD, HEADER_BYTES, PAD
from ranklog.produce.ring_reader import RingReader

ROOT = Path(__file__).parents[2]
IDENTITY = Identity("t", "r", "l", 0, "h", 0, 0, 1)
pytestmark = pytest.mark.skipif(hot is None, reason="the compiled form was not built here")


def _said(folder: Path, seed: int, form: str) -> tuple[list[object], bytes]:
    """Ring (times as zero) and definitions of a process that says what `seed` tells it."""
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "tests.produce.saying", str(folder), str(seed)],
        env={**os.environ, "RANKLOG_COMPILED": form, "PYTHONPATH": str(ROOT / "shared")},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"compiled: {form == '1'}"), done.stdout
    assert (folder / "process.lines").read_bytes() == b""
    found = _without_times((folder / "process.ring").read_bytes())
    return found, (folder / "process.defs").read_bytes()


def _without_times(ring: bytes) -> list[object]:
    """Header page, then each record: its bytes, and the fields of those that hold their time within."""
    size = len(ring) - HEADER_BYTES
    head = int.from_bytes(ring[8 * HEAD : 8 * HEAD + 8], "little")
    assert 0 < head < size  # one lap, so that nothing is overwritten
    found: list[object] = [ring[:HEADER_BYTES]]
    at = HEADER_BYTES
    while at < HEADER_BYTES + head:
        length, kind = int.from_bytes(ring[at : at + 3], "little"), ring[at + 4]
        end = at + 32 + (length + 7 & ~7)
        assert 0 < kind < PAD
        found.append(ring[at : at + 8] + ring[at + 16 : at + 32])
        if kind == BODY:
            fields = records.decode(ring[at + 32 : at + 32 + length])
            found.append([fields[0], *fields[2:]])
        else:
            found.append(ring[at + 32 : end])
        at = end
    return [*found, ring[at:]]


@pytest.mark.parametrize("seed", range(6))
def test_both_forms_write_the_same_bytes(tmp_path: Path, seed: int) -> None:
    compiled, definitions = _said(tmp_path / "compiled", seed, "1")
    python, pythons = _said(tmp_path / "python", seed, "0")

    assert len(compiled) > 2_000
    assert compiled == python
    assert definitions == pythons


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Producer]:
    context.reset()
    found = Producer(tmp_path / "spool", IDENTITY)
    yield found
    found.close()
    context.reset()


def test_no_reference_is_left_or_taken(made: Producer) -> None:
    call = made.call("f.py", 1, "f", "log", 20)
    template, text, surrogate = "t %s %d", "text " * 3, "\udc80" * 3
    number, odd, value = 12345678, object(), 2.5
    for _ in range(2):
        made.line(call, template, ("a", 1))
    kept = (call, template, text, surrogate, number, odd, value, made, made.ring, None, True)
    gc.collect()
    before = [sys.getrefcount(each) for each in kept]
    blocks = sys.getallocatedblocks()
    for _ in range(2_000):
        made.line(call, template, (text, number))
        made.line(call, template, (surrogate, True))
        made.line(call, template, (odd, value))
        made.line(call, text)
        made.line(call, surrogate)
        with pytest.raises(TypeError):
            made.line()  # type: ignore[call-arg]
    gc.collect()
    after = [sys.getrefcount(each) for each in kept]

    assert after[:-2] == before[:-2]
    # None and True belong to everybody; from 3.12 on they are not counted.
    assert abs(after[-1] - before[-1]) < 1_000 > abs(after[-2] - before[-2])
    assert sys.getallocatedblocks() - blocks < 2_000


def test_fields_of_any_value_lead_to_no_write_outside_the_ring(tmp_path: Path) -> None:
    """In a process of its own, which would end by a signal."""
    program = (
        "import random, sys\n"
        "from pathlib import Path\n"
        "from ranklog.produce.producer import Producer\n"
        "from ranklog.produce import telemetry\n"
        "from tests.produce.test_compiled import IDENTITY\n"
        "made = Producer(Path(sys.argv[1]), IDENTITY)\n"
        "telemetry.attach(made)\n"
        "call = made.call('f.py', 1, 'f', 'log', 20)\n"
        "made.line(call, 't %d', (1,)); telemetry.telemetry({'loss': 1.0, 'x': 2})\n"
        "ring, source = made.ring, random.Random(1)\n"
        "odd = [0, 1, 7, 8, 4096, 2**20, 2**63 - 9, 2**63 - 1, 2**63, 2**64 - 9, 2**64 - 1]\n"
        "for _ in range(20_000):\n"
        "    for name in ('head', 'inline_limit', 'lap'): setattr(ring, name, source.choice(odd))\n"
        "    ring.limit = ring.reserve_limit = 0\n"
        "    ring.offset = source.choice([-2**63, -4096, -8, 0, 4096, 2**20, 2**63 - 1])\n"
        "    hot = type(made).__mro__[1].line\n"
        "    before = ring.head\n"
        "    call.text_word = source.choice([0, -1, 2**63 - 1, 258])\n"
        "    try: hot(made, call, 'x' * source.randrange(600))\n"
        "    except Exception: pass\n"
        "    try: telemetry.telemetry({'loss': 1.0, 'x': 2})\n"
        "    except Exception: pass\n"
        "print('lives', file=sys.stdout, flush=True); import os; os._exit(0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "spool")],
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'shared'}:{ROOT}"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert (done.returncode, done.stdout) == (0, "lives\n"), done.stderr


def test_types_refuse_what_is_none_of_theirs() -> None:
    assert hot is not None
    ring = hot.RingFields()
    for wrong in (b"", bytes(8192), None, bytearray(8)):
        with pytest.raises((TypeError, ValueError, BufferError)):
            ring.attach(wrong)
    ring.detach()
    with pytest.raises(TypeError):
        hot.LogMethod(print, object(), print, "logging.py")
    with pytest.raises(TypeError):
        hot.configure(1, 2, 3, 4, 5, 6, 7, 8, 9)
    for fields in (hot.CallFields(), hot.ProducerFields(), hot.HandlerFields()):
        assert not gc.collect() or fields
    with pytest.raises(AttributeError):
        hot.ProducerFields().line(hot.CallFields(), "x")
    with pytest.raises(AttributeError):
        hot.HandlerFields().handle(object())


def test_cycles_through_fields_are_collected() -> None:
    assert hot is not None
    gc.collect()

    class Own(hot.CallFields):  # type: ignore[misc]
        pass

    one, other = Own(), Own()
    one.owner, other.owner = other, one
    one.itself = one
    del one, other
    assert gc.collect() >= 2


def test_threads_in_both_forms_lose_nothing_and_tear_nothing(made: Producer) -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def say(name: int) -> None:
        call = made.call("f.py", name, "f", "log", 20)
        source = random.Random(name)
        for n in range(400):
            with context.context(shard=name):
                made.line(call, "%d:%d", (name, n))
            if source.random() < 0.3:
                made.emit(20, call.site, "whole")  # by Python, into the same ring

    threads = [threading.Thread(target=say, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(before)
    assert made.ring is not None
    reader = RingReader(made.ring.path)
    bodies = reader.read(1 << 24)
    reader.close()

    assert len(bodies) == made.records
    assert reader.damaged == 0
    assert sum(body[0] == 3 for body in bodies) == 3200 - 8  # of each call the first is a TEXT


def test_it_can_be_turned_off(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from ranklog.produce.compiled import hot; print(hot)"],
        env={**os.environ, "RANKLOG_COMPILED": "0", "PYTHONPATH": str(ROOT / "shared")},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == "None\n"
    assert ranklog.telemetry.__doc__
