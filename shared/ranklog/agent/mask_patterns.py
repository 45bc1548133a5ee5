"""What secrets look like: where one might be, what kind it is, and what is none.

`GATE` and `LITERALS` are looked for in lower-cased bytes of many lines at once; each alternative of the
gate is anchored on a letter that is rare in logs, which makes it three times as fast.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# --- where a secret might be: over lower-cased bytes ----------------------------------------------
_NAMED = rb"(?=[\"'\])}]{0,2}\s{0,3}[=:])"
GATE = re.compile(
    rb"|".join(
        [
            rb"w(?<=passw)(?=ord|d)",
            rb"p(?<=passp)hrase",
            rb"w(?<=pw)d" + _NAMED,
            rb"k(?<=tok)en" + _NAMED,
            rb"key" + _NAMED,
            rb"key_id" + _NAMED,
            rb"-(?<=sk-)",
            rb"k(?<=ak)ia[0-9a-z]{16}",
            rb"_(?<=gh[pousr]_)",
            rb"_(?<=github_)pat_",
            rb"-(?<=glpat-)",
            rb"xox[abeoprs]-",
            rb"_(?<=hf_)",
            rb"_(?<=npm_)",
            rb"-(?<=pypi-)",
            rb"_live_",
            rb"z(?<=aiz)a",
            rb"j(?<=eyj)",
            rb"-----begin",
            rb"-----end",
            rb"-(?<=--)(?:[a-z0-9]+-){0,3}(?:token|api-key|secret|passwd) ",
            rb"://[^/\s]*@",
            rb"-(?<=x-amz-)signature",
        ]
    )
)
LITERALS = (b"secret", b"credential", b"authorization", b"bearer ", b"asia")

# --- what it is: over the bytes as they are -------------------------------------------------------
ASSIGNED = re.compile(
    rb"""(?ix)
    (?<![a-z0-9])
    (?P<name> (?:[a-z0-9]{1,40}[_.-]){0,6}?
      (?: (?P<password> password | passwd | passphrase | pwd )
        | (?P<secret> (?:[a-z]{1,20})?secret (?:[_-]?access)? (?:[_-]?key)? | credentials? )
        | (?P<token> (?:[a-z]{1,20})?token )
        | (?P<api_key> (?:api|access|account|auth|private|encryption|signing)[_-]?key(?:[_-]?id)? )
      ) )
    (?P<separator> ["'\])}]{0,2} \s{0,3} [=:]>? \s{0,3} )
    (?: (?P<quote>["']) (?P<quoted>[^"'\n]{1,4096}) (?P=quote)
      | (?P<bare> [^\s"',;&<>()\[\]{}|]{1,4096}) )
    """
)
KINDS = ("password", "secret", "token", "api_key")


@dataclass(frozen=True, slots=True)
class Detail:
    """`group`: what of a match is the secret."""

    kind: str
    pattern: re.Pattern[bytes]
    group: int = 0


def _detail(kind: str, pattern: bytes, group: int = 0) -> Detail:
    return Detail(kind, re.compile(pattern), group)


DETAILS = (
    _detail("aws_key", rb"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    _detail("github_token", rb"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{22,})"),
    _detail("gitlab_token", rb"\bglpat-[A-Za-z0-9_\-]{20,}"),
    _detail("slack_token", rb"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    _detail("api_key", rb"(?<![A-Za-z0-9-])sk-(?=[A-Za-z_\-]*[0-9])[A-Za-z0-9_\-]{20,}"),
    _detail("huggingface_token", rb"\bhf_[A-Za-z0-9]{30,}"),
    _detail("google_key", rb"\bAIza[0-9A-Za-z_\-]{35}"),
    _detail("jwt", rb"\beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]*"),
    _detail("npm_token", rb"\bnpm_[A-Za-z0-9]{36}"),
    _detail("pypi_token", rb"\bpypi-[A-Za-z0-9_\-]{50,}"),
    _detail("stripe_key", rb"\b[rs]k_live_[0-9A-Za-z]{20,}"),
    _detail("connection_string", rb"[A-Za-z][A-Za-z0-9+.\-]*://[^\s:/@\"']*:([^\s@\"']+)@", 1),
    _detail("signature", rb"(?i)[?&]x-amz-signature=([0-9a-f]{16,})", 1),
    _detail(
        "authorization",
        rb"(?i)\bauthorization[\"']?\s{0,3}[=:]\s{0,3}[\"']?"
        rb"(?:(?:bearer|basic|token|digest)\s+)?([^\s\"',;]{6,})",
        1,
    ),
    _detail(
        "argument",
        rb"--(?:[a-z0-9]+-){0,3}(?:token|api-key|secret|password|passwd) ([^\s-]\S{5,})",
        1,
    ),
    _detail("authorization", rb"(?i)\bbearer\s+([A-Za-z0-9_\-.=+/~]{16,})", 1),
)
KEY_BEGIN = re.compile(rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----")
KEY_END = re.compile(rb"-----END [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----")
KEY_MASK = b"[masked:private_key]"
# Values that say there is none, or refer to one.
NO_SECRET = re.compile(
    rb"(?i)(?:none|null|nil|true|false|unset|set|missing|empty|redacted|hidden|required|optional"
    rb"|invalid|expired|yes|no|env|\*+|x{3,}|\.{2,}|%[sdr]|\$\{?\w+\}?|\[masked.*|\d{1,5})$"
)
# Tokens of a vocabulary.
VOCABULARY = re.compile(
    rb"(?i)(?:pad|eos|bos|unk|cls|sep|mask|special|prompt|start|end)[_-]?token$"
)
MIXED = re.compile(rb"(?=.*[A-Za-z])(?=.*[0-9])")


def is_secret(kind: str, value: bytes, separator: bytes) -> bool:
    """Whether what a name of that kind is set to can be one."""
    if NO_SECRET.match(value) or value.startswith((b"/", b"~/")):  # a path, as $PWD is
        return False
    if kind == "password":
        # `password: wrong format` is a sentence.
        return b"=" in separator or b":" not in separator or len(value) >= 6
    if len(value) < 8:
        return False
    return len(value) >= 32 or bool(MIXED.match(value))
