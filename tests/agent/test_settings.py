from __future__ import annotations

import pytest

from ranklog.agent.quota import QUOTA_BYTES
from ranklog.agent.settings import options_from, parse_quota, parse_sampling
from ranklog.errors import BadInput


def test_without_variables_secrets_are_masked_nothing_is_sampled_and_the_quota_is_usual() -> None:
    options = options_from({})

    assert options.masker.enabled
    assert options.sampler() is None
    assert options.quota_bytes == QUOTA_BYTES


def test_variables_say_otherwise() -> None:
    options = options_from(
        {"RANKLOG_MASK": "0", "RANKLOG_SAMPLE": "10:100", "RANKLOG_SPOOL_QUOTA": "500M"}
    )

    assert not options.masker.enabled
    assert options.sampler() is not None
    assert options.sampler() is not options.sampler()  # every process has buckets of its own
    assert options.quota_bytes == 500 << 20


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("", QUOTA_BYTES),
        ("2GiB", 2 << 30),
        ("64mb", 64 << 20),
        ("99999999", 99_999_999),
        ("1", 32 << 20),
    ],
)
def test_a_quota_is_a_size(text: str, size: int) -> None:
    assert parse_quota(text) == size


@pytest.mark.parametrize("text", ["much", "-1", "2PiB", "1.5G"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="is no size"):
        parse_quota(text)


@pytest.mark.parametrize("text", ["0", "-1", "x", "1:0", "1:x", "nan"])
def test_what_is_no_sampling_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="is no sampling"):
        parse_sampling(text)
