"""No key leaves in a manifest."""

from __future__ import annotations

import time

import pytest

from ranklog.produce.secrets import (
    MASK,
    is_secret_name,
    kept_environment,
    mask_command,
    mask_text,
)


@pytest.mark.parametrize(
    "name",
    "password db_password API_KEY api-key HF_TOKEN hub_token secret client_secret aws_secret_access_key "
    "RANKLOG_API_KEY private_key credentials auth WANDB_API_KEY webhook key db_pass pass "
    "user_token session_cookie".split(),
)
def test_a_secret_is_known_by_its_name(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    "tokens max_tokens tokenizer num_tokens_seen monkey keyframe author lr tokens_per_step "
    "attention_heads key_dim secretary_model use_cls_token pad_token eos_token model.bos_token "
    "forward_pass two_pass image_token token_count num_tokens git_sha".split(),
)
def test_names_of_training_are_no_secrets(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("https://me:pass@host/x", f"https://{MASK}@host/x"),
        ("see https://host:8080/x", "see https://host:8080/x"),
        ("hf_abcdefghijklmnopqrst", MASK),
        ("AKIAABCDEFGHIJKLMNOP and more", f"{MASK} and more"),
        ("Authorization: Bearer abcdefghijklmnop", f"Authorization: {MASK}"),
        ("step 12 loss 2.31", "step 12 loss 2.31"),
        ("Authorization: Basic dXNlcjpwYXNz", f"Authorization: {MASK}"),
        ("Cookie: sid=abc; x=1", f"Cookie: {MASK}"),
        ("db_pass=hunter2", f"db_pass={MASK}"),
        ("api_key=" + "0a1b2c3d4e" * 4, f"api_key={MASK}"),
        (
            "use_cls_token: x, pad_token=y forward_pass=3",
            "use_cls_token: x, pad_token=y forward_pass=3",
        ),
        (
            "commit 0123456789abcdef0123456789abcdef01234567",
            "commit 0123456789abcdef0123456789abcdef01234567",
        ),
        ('{"api_key": "abc", "lr": 1}', f'{{"api_key": "{MASK}", "lr": 1}}'),
        ("wandb:\n  api_key: abc\n  max_tokens: 5", f"wandb:\n  api_key: {MASK}\n  max_tokens: 5"),
        ("export HF_TOKEN=abc; x", f"export HF_TOKEN={MASK}; x"),
        (
            "password: null\neos_token_id=2 num_tokens=3",
            "password: null\neos_token_id=2 num_tokens=3",
        ),
    ],
)
def test_texts_that_look_like_keys_are_masked(text: str, masked: str) -> None:
    assert mask_text(text) == masked


def test_options_with_secret_names_lose_their_values() -> None:
    words = "train.py --api-key abc --lr 0.1 --hf-token=xyz --api-key --steps 3 --auth".split()

    assert mask_command(words) == [
        *f"train.py --api-key {MASK} --lr 0.1 --hf-token={MASK} --api-key".split(),
        *"--steps 3 --auth".split(),
    ]


def test_only_what_a_run_depends_on_is_kept_of_the_environment() -> None:
    environ = {
        "NCCL_DEBUG": "INFO",
        "AWS_SESSION_TOKEN": "a",
        "HF_TOKEN": "b",
        "HOME": "/root",
        "RANK": "3",
        "MINE": "4",
        "RANKLOG_ENVIRONMENT": "MINE",
        "SLURM_JOB_ID": "17",
        "TORCH_PROXY": "http://u:p@proxy",
    }

    assert kept_environment(environ) == {
        "HF_TOKEN": MASK,
        "MINE": "4",
        "NCCL_DEBUG": "INFO",
        "RANK": "3",
        "RANKLOG_ENVIRONMENT": "MINE",
        "SLURM_JOB_ID": "17",
        "TORCH_PROXY": f"http://{MASK}@proxy",
    }


@pytest.mark.parametrize(
    "unit", ["k", "a1", "a-", "a.", "token", "api_key", "password=", "a://", "sk-", "cookie: "]
)
def test_a_long_word_costs_by_its_length(unit: str) -> None:
    """The job waits for it, all its threads do. By the square of its length these take minutes."""
    text = unit * (50_000 // len(unit))
    began = time.thread_time()
    mask_text(text)
    is_secret_name(text)
    assert time.thread_time() - began < 10
