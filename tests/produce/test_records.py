from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranklog.produce import records
from ranklog.produce.records import LINE

PLAIN = st.one_of(
    st.integers(-(2**63), 2**64 - 1), st.floats(), st.text(), st.booleans(), st.none()
)


@given(st.lists(PLAIN))
def test_fields_come_back_with_their_types(fields: list[Any]) -> None:
    back = records.decode(records.encode([LINE, *fields]))

    assert list(map(repr, back)) == list(map(repr, [LINE, *fields]))


@given(
    template=st.sampled_from(["%s", "%r", "%5s|", "%d", "%.3f", "%x", "%%", "%s %s", "a%", "%c"]),
    arguments=st.lists(PLAIN, min_size=1, max_size=3),
)
def test_formatting_later_gives_what_formatting_at_once_gives(
    template: str, arguments: list[Any]
) -> None:
    body = records.encode([LINE, 1, 20, 0, 0, None, template, None, None, tuple(arguments)])

    *_, late_template, _, _, late_arguments = records.decode(body)
    later = records.formatted(late_template, tuple(late_arguments))
    assert later == records.formatted(template, tuple(arguments))


def test_a_wrong_format_is_evidence() -> None:
    text = records.formatted("%d of %d", (1,))

    assert text.startswith("%d of %d (1,) (not formatted: TypeError(")


@pytest.mark.parametrize("body", [b"", b"\x80", b"\x90", b"\xc1", b"\x93\x01"])
def test_what_is_no_record_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match="no record"):
        records.decode(body)
