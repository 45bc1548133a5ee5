from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ranklog.produce import records, ring
from ranklog.produce.definitions import Definitions
from ranklog.produce.records import CALL, CONTEXT, DROP, LINE, SERIES, SITE, TELEMETRY
from ranklog.produce.ring import NO_ITERATION, Ring
from ranklog.produce.ring_reader import RingReader


def _through_a_ring(path: Path, kind: int, payload: bytes, iteration: int = 7) -> list[Any]:
    written = Ring.create(path, 4096)
    written.write(kind | 3 << 8, 1000, iteration, 9, payload, False)
    reader = RingReader(path)
    (body,) = reader.read()
    reader.close()
    written.close()
    definitions = Definitions()
    assert definitions.take([CALL, 3, 2, 20, "%d of %s"])
    assert definitions.take([SERIES, 3, ["loss"], {"layer": "h.3"}])
    return definitions.fields(body)


@pytest.mark.parametrize(
    ("kind", "payload", "fields"),
    [
        (
            ring.TEXT,
            "é\udc80".encode("utf-8", "surrogatepass"),
            [LINE, 1000, 20, 2, 9, 7, "é\udc80"],
        ),
        (
            ring.ARGUMENTS,
            records.encode((5, "x")),
            [LINE, 1000, 20, 2, 9, 7, "%d of %s", None, None, [5, "x"]],
        ),
        (ring.VALUES, records.encode([3]), [TELEMETRY, 1000, 9, 7, {"loss": 3}, {"layer": "h.3"}]),
        (ring.BODY, records.encode([LINE, 1, "plain"]), [LINE, 1, "plain"]),
    ],
)
def test_a_short_form_is_what_a_journal_would_hold(
    tmp_path: Path, kind: int, payload: bytes, fields: list[Any]
) -> None:
    if kind == ring.BODY:
        assert Definitions().fields(payload) == fields
    else:
        assert _through_a_ring(tmp_path / "r", kind, payload) == fields


def test_no_iteration_is_none(tmp_path: Path) -> None:
    fields = _through_a_ring(tmp_path / "r", ring.TEXT, b"", NO_ITERATION)

    assert fields == [LINE, 1000, 20, 2, 9, None, ""]


def test_definitions_are_told_from_other_records() -> None:
    definitions = Definitions()

    assert definitions.take([SITE, 1, "a.py:3", "f", None])
    assert definitions.take([CONTEXT, 2, 5, {"a": 1}])
    assert not definitions.take([DROP, 3, "disk full"])
    assert not definitions.take([LINE, 1, 2])
    assert definitions.sites == {1: ("a.py:3", "f", None)}
    assert definitions.contexts == {2: (5, {"a": 1})}


def test_a_number_that_nobody_defined_is_an_error(tmp_path: Path) -> None:
    written = Ring.create(tmp_path / "r", 4096)
    written.write(ring.TEXT | 4 << 8, 1000, 0, 0, b"x", False)
    reader = RingReader(tmp_path / "r")
    with pytest.raises(KeyError):
        Definitions().fields(reader.read()[0])
    with pytest.raises(ValueError, match="no record"):
        Definitions().fields(b"\x02short")
    reader.close()
    written.close()
