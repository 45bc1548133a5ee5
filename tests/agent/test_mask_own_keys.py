"""Our own keys are secrets too, wherever they stand."""

from __future__ import annotations

import pytest

from ranklog.access.key_text import API, INGEST, new_key
from ranklog.agent.mask import Masker
from ranklog.produce.secrets import mask_text


@pytest.mark.parametrize("kind", [API, INGEST])
@pytest.mark.parametrize("tenant", ["acme", "a/b c", "é" * 50])
def test_a_key_is_masked_in_lines_metadata_and_manifests(kind: str, tenant: str) -> None:
    key = new_key(kind, tenant).render()
    masker, lines = Masker(), [b"plain", f"started with {key}, fine".encode()]
    assert masker.lines(lines) == 1
    assert lines == [b"plain", b"started with [masked:ranklog_key], fine"]
    assert key not in str(masker.metadata({"note": f"use {key}"}))
    assert masker.counts["ranklog_key"] == 2
    assert key.rpartition(".")[2] not in mask_text(f"ranklog tail {key}")


def test_what_only_begins_like_a_key_stays() -> None:
    lines = [b"rlk_ is a prefix", b"curli_cue", b"rli_x.y"]
    assert Masker().lines(list(lines)) == 0


def test_with_the_switch_off_nothing_is_masked_or_counted() -> None:
    key = new_key(API, "t").render()
    masker = Masker(enabled=False)
    assert (masker.text(key.encode()), masker.counts.total()) == (key.encode(), 0)
