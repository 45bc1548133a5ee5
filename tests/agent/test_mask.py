"""Masking: what is a secret goes, what only looks like one stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranklog.agent.mask import KEY_LINES_MAX, KeyBlocks, Masker, load_rules
from ranklog.errors import BadRule

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"
SECRETS = [
    ("password=hunter2", "password=[masked:password]"),
    ("DB_PASSWORD: hunter2x", "DB_PASSWORD: [masked:password]"),
    ("db_password='a b c'", "db_password='[masked:password]'"),
    ("token=abcdef123456", "token=[masked:token]"),
    ("HF_TOKEN=hf_" + "a1" * 17, "HF_TOKEN=[masked:huggingface_token]"),
    ("login hf_" + "A1" * 17, "login [masked:huggingface_token]"),
    ("WANDB_API_KEY=" + "a1b2" * 10, "WANDB_API_KEY=[masked:api_key]"),
    ('{"api_key": "sk-proj-abc123def456ghi789jkl"}', '{"api_key": "[masked:api_key]"}'),
    ("postgres://joe:s3cret@db:5432/x", "postgres://joe:[masked:connection_string]@db:5432/x"),
    ("redis://:s3cret@cache", "redis://:[masked:connection_string]@cache"),
    ("Authorization: Bearer abcdef0123456789xyz", "Authorization: Bearer [masked:authorization]"),
    ("curl -H bearer abcdef0123456789xyz", "curl -H bearer [masked:authorization]"),
    ("--hub-token abc12345678 --lr 3", "--hub-token [masked:argument] --lr 3"),
    (
        "AWS_SECRET_ACCESS_KEY=wJalr/K7MDENG/bPxRfiCYEXAMPLEKEY1",
        "AWS_SECRET_ACCESS_KEY=[masked:secret]",
    ),
    ("key id AKIAIOSFODNN7EXAMPLE in use", "key id [masked:aws_key] in use"),
    ("ASIAIOSFODNN7EXAMPLE", "[masked:aws_key]"),
    ("pushed with ghp_" + "a1B2" * 9, "pushed with [masked:github_token]"),
    ("glpat-" + "a1B2" * 5, "[masked:gitlab_token]"),
    ("xoxb-123456789012-abcdef", "[masked:slack_token]"),
    ("AIza" + "a1B2c" * 7, "[masked:google_key]"),
    (f"session {JWT}", "session [masked:jwt]"),
    ("npm_" + "a1B2" * 9, "[masked:npm_token]"),
    ("sk_live_" + "a1B2" * 6, "[masked:stripe_key]"),
    (
        "GET https://b.s3/x?X-Amz-Signature=0123456789abcdef0123&y=1",
        "GET https://b.s3/x?X-Amz-Signature=[masked:signature]&y=1",
    ),
]
INNOCENT = [
    "num_tokens=5",
    "tokens 18961",
    "tokenizer=gpt2-abc1234567890",
    "use_cls_token=True",
    "use_cls_token",
    "max_position_embeddings=4096",
    "eos_token=</s>",
    "pad_token='<pad>'",
    "mask_token=extra_id_99_of_100",
    "bos_token_id=151643",
    "token_count=12345678901",
    "tokens_per_second: 123456789",
    "password=None",
    "password: wrong",
    "api_key=${OPENAI_API_KEY}",
    "password=${DB_PASS} host=db",
    "api_key=None",
    "secret santa",
    "key=layer.0.attention.weight",
    "cache_key=abc12345678",
    "PWD=/home/joe/exp12",
    "https://example.com/a@b",
    "task-sk-learn-1234567890123456789012",
    "the key: value store has 12345678 keys",
    "query_key=0.123456789",
    "-----BEGIN CERTIFICATE-----",
]


@pytest.mark.parametrize(("text", "masked"), SECRETS, ids=[text[:24] for text, _ in SECRETS])
def test_a_secret_is_masked_alone_and_among_other_lines(text: str, masked: str) -> None:
    lines = [b"before", text.encode(), b"after"]
    masker = Masker()

    assert masker.lines(lines) == 1
    assert lines == [b"before", masked.encode(), b"after"]
    assert Masker().text(text.encode()) == masked.encode()
    assert sum(masker.counts.values()) >= 1


@pytest.mark.parametrize("text", INNOCENT)
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    lines = [text.encode()]
    assert Masker().lines(lines) == 0
    assert lines == [text.encode()]


@settings(max_examples=200)
@given(
    st.lists(
        st.one_of(
            st.sampled_from([text for text, _ in SECRETS] + INNOCENT),
            st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\n")),
        ),
        max_size=12,
    )
)
def test_a_batch_is_masked_as_its_lines_alone_and_masking_again_changes_nothing(
    texts: list[str],
) -> None:
    lines = [text.encode() for text in texts]
    alone = [Masker().text(line) for line in lines]
    Masker().lines(lines)

    assert lines == alone
    again = list(lines)
    Masker().lines(again)
    assert again == lines


@pytest.mark.parametrize(
    "body", [b"a" * 400_000, b"ab.cd-" * 60_000, b"x://" * 90_000, b"--" * 90_000]
)
def test_long_lines_without_an_end_are_done_with(body: bytes) -> None:
    """Patterns that look from every byte to the end of the line would take minutes here."""
    lines = [body + b" password=hunter2 key=1 --token "]
    assert Masker().lines(lines) == 1
    assert lines[0].endswith(b" password=[masked:password] key=1 --token ")


def test_metadata_is_masked_by_its_name_and_by_its_value() -> None:
    masker = Masker()
    found = masker.metadata(
        {"api_key": "abcdefgh12345678", "loss": 2.5, "url": "redis://:pw@h", "token": "", "n": 7}
    )

    assert found == {
        "api_key": "[masked:api_key]",
        "loss": 2.5,
        "url": "redis://:[masked:connection_string]@h",
        "token": "",
        "n": 7,
    }
    numbers = {"loss": 2.5, "num_tokens": 5}
    assert masker.metadata(numbers) is numbers


def test_a_private_key_is_masked_in_one_record_and_over_lines() -> None:
    key = b"-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabcd\n-----END RSA PRIVATE KEY-----"
    assert Masker().text(b"key:\n" + key + b"\nend") == b"key:\n[masked:private_key]\nend"

    masker = Masker()
    blocks = KeyBlocks(masker)
    first, second = [b"key:", *key.split(b"\n")[:2]], [*key.split(b"\n")[2:], b"end"]
    blocks.lines(first)
    blocks.lines(second)
    mask = b"[masked:private_key]"
    assert first + second == [b"key:", mask, mask, mask, mask, b"end"]
    assert masker.counts["private_key"] == 1


def test_a_private_key_without_an_end_masks_no_more_than_so_many_lines() -> None:
    blocks = KeyBlocks(Masker())
    lines = [b"-----BEGIN PRIVATE KEY-----", *[b"x"] * (KEY_LINES_MAX + 5)]
    blocks.lines(lines)

    assert lines.count(b"x") == 5


def test_masking_can_be_switched_off() -> None:
    masker = Masker(enabled=False)
    lines = [b"password=hunter2"]
    assert masker.lines(lines) == 0
    assert masker.text(lines[0]) == b"password=hunter2"
    assert masker.metadata({"password": "hunter2"}) == {"password": "hunter2"}


def test_rules_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    path.write_text('[{"kind": "badge", "literal": "Badge", "pattern": "badge (\\\\d+)"}]')
    lines = [b"badge 1234 shown", b"no number"]
    Masker(load_rules(path)).lines(lines)
    assert lines == [b"badge [masked:badge] shown", b"no number"]


@pytest.mark.parametrize(
    "text", ["", "{}", '[{"kind": "x"}]', '[{"kind":"x","literal":"y","pattern":"("}]']
)
def test_rules_that_are_none_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "rules.json"
    path.write_text(text)
    with pytest.raises(BadRule, match="no masking rules"):
        load_rules(path)
