"""What secrets look like: where one might be, what kind it is, and what is none.

`GATE` and `LITERALS` are looked for in lower-cased bytes of many lines at once; each alternative of the
gate is anchored on a letter that is rare in logs, which makes it three times as fast, and begins with
that letter: with one that begins with a set of them, `re` looks at every byte, five times as slow.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ranklog.produce.secrets import TOKEN_NAMES
from ranklog.produce.token_forms import FORMS

# --- where a secret might be: over lower-cased bytes ----------------------------------------------
_COLOURS = rb"(?:\x1b\[[0-9;]{0,16}m){0,3}"
# Behind a name, to what it is set to: `=`, `": `, `'] = `, `\": `, a change of colour and `=`.
_NAMED = rb"(?=\\{0,3}[\"'\])}]{0,2}" + _COLOURS + rb"\s{0,40}[=:])"
GATE = re.compile(
    rb"|".join(
        [
            rb"w(?<=passw)(?=ord|d)",
            rb"p(?<=passp)hrase",
            rb"w(?<=pw)d" + _NAMED,
            rb"pass" + _NAMED,
            rb"k(?<=cook)ie[\"']?\s{0,3}:",
            rb"w(?=andb[ .]login)",
            rb"w(?<=aw)s4-hmac",
            rb"\?sig=",
            rb"&sig=",
            rb"k(?<=tok)en" + _NAMED,
            rb"key" + _NAMED,
            rb"key_id" + _NAMED,
            rb"-(?<=sk-)",
            rb"k(?<=ak)ia[0-9a-z]{16}",
            rb"k(?<=sk)[0-9a-z+/]{32}",
            rb"p(?<=dap)i[0-9a-f]{32}",
            rb"v(?<=hv)[sb]\.",
            rb"~(?<=q~)[0-9a-z_~.\-]{31}",
            rb":aa[0-9a-z_\-]{33}",
            # by the length of what is before, each of which is dear
            rb"_(?<=hf_|r8_)",
            rb"_(?<=[rs]k_)(?:live|test|prod)_",
            rb"_(?<=gh[pousr]_|npm_|rl[ik]_|gsk_|do[opr]_|glc_|lin_)",
            rb"_(?<=dckr_|glsa_|lsv2_|pcsk_|figd_)",
            rb"_(?<=wandb_|whsec_|shp[acps][ats]_)",
            rb"_(?<=github_|sntrys_)",
            rb"-(?<=xai-|key-)[0-9a-z]{32}",
            rb"-(?<=gldt-|glrt-|glft-|pypi-|pplx-|nrak-|pmak-|tvly-)",
            rb"-(?<=glpat-|glptt-|glcbt-|glimt-|gloas-|nvapi-|tskey-|x-amz-)",
            rb"-(?<=glsoat-|gocspx-|x-goog-)",
            rb"xox[abeoprs]-",
            rb"xapp-",
            rb"k(?<=hook)s\.slack\.com/",
            rb"z(?<=aiz)a",
            rb"j(?<=eyj)",
            rb"-----begin",
            rb"-----end",
            rb"-(?<=--)(?:[a-z0-9]{1,20}[_-]){0,3}(?:token|(?:api|access)[_-]key) ",
            rb"://(?:[^/\s]{0,512}|(?::|[^/\s:@]{1,255}:(?![0-9]{0,5}/))[^\s@]{1,255})@",
        ]
    )
)
LITERALS = (b"secret", b"credential", b"authorization", b"bearer ", b"asia", b"ya29.", b"sg.")

# --- what it is: over the bytes as they are -------------------------------------------------------
# Whose `pass` is a password: `forward_pass`, `two_pass` and `first_pass` are none.
_OWNER = (
    rb"(?:db|database|sql|mysql|pg|postgres|postgresql|mongo|mongodb|redis|rabbitmq|amqp|mq|kafka|sasl"
    rb"|user|usr|admin|root|login|auth|account|client|service|smtp|mail|email|imap|ftp|sftp|ssh|ldap"
    rb"|proxy|http|https|vault|registry|docker|git|keystore|truststore|ssl|tls|cert|pfx|sudo|vnc|wifi"
    rb"|es|elastic|influx|grafana|jupyter|mlflow|minio|s3)"
)
# Whose `key` is a secret: `cache_key`, `sort_key`, `query_key` and `public_key` are none.
_SERVICE = (
    rb"(?:wandb|openai|anthropic|hf|huggingface|azure|aws|gcp|google|gemini|mistral|cohere|groq"
    rb"|openrouter|together|replicate|deepseek|datadog|dd|sentry|comet|neptune|clearml|langchain"
    rb"|langsmith|pinecone|swanlab|license|shared|subscription)"
)
# What is set to what. What goes before a name, as `db_` does, is no part of a match; see `whole_name`.
ASSIGNED = re.compile(
    rb"""(?ix)
    \[masked:[a-z0-9_]{1,40}\]  # what was masked before is passed over
    | (?: (?<![a-z0-9]) | (?<=[0-9;\[]m) ) (?=[a-z])  # a word begins, or does behind a colour
    (?P<name> (?P<password> (?:[a-z]{1,20})?password | passwd | passphrase | pwd | OWNER[_.-]?pass )
        | (?P<secret> (?:[a-z]{1,20})?secret (?:[_-]?access)? (?:[_-]?key)? | credentials? )
        | (?P<token> (?:[a-z]{1,20})?token )
        | (?P<api_key> (?:api|access|sharedaccess|account|auth|private|encryption|signing)[_-]?key(?:[_-]?id)?
            | SERVICE[_-]?key )
      )
    (?P<separator> \\{0,3}["'\])}]{0,2} COLOURS BLANKS [=:]>? BLANKS COLOURS )
    (?: (?:[bfru]{1,2}(?=["']))?  # as Python writes strings
        (?P<quote> \\{0,3}["'] )
        (?P<quoted> (?: (?!(?P=quote)) (?: [^\\\n] | \\\\\\["'] | \\(?!\\\\["']). ) ){1,4096} )
        (?: (?P=quote) | (?P<cut> (?=\n|\Z) ) )
      | (?! [bfru]{1,2}["'] | (?:none|null|true|false|\*{3,40})[,;&|] )  # `f(password=None,x)`
        (?P<bare> \$\{\w{1,256}\}
          # A password may hold delimiters, where what goes on behind one is no `name=`.
          | (?(token) PLAIN | (?(api_key) PLAIN | \(? PLAIN (?: JOIN PLAIN ){0,16} ) ) ) )
    """.replace(b"PLAIN", rb"""[^\s"',;&<>()\[\]{}|\x1b]{1,4096}""")
    .replace(b"JOIN", rb"""(?: [,;&|({] | [<>](?!/) | '(?=\w) ) (?! [\w.\-]{1,64}\s{0,3}[=:] )""")
    .replace(b"BLANKS", rb"(?: [ \t]{0,40} | \s{0,3} )")
    .replace(b"COLOURS", _COLOURS)
    .replace(b"OWNER", _OWNER)
    .replace(b"SERVICE", _SERVICE)
)
KINDS = ("password", "secret", "token", "api_key")


@dataclass(frozen=True, slots=True)
class Detail:
    """One form of secrets. `group`: what of a match is the secret; `name`: what its name is, if any.

    `literals`: one of them, in lower case, is in every line that has a match. Every repetition is
    bounded or anchored: a line of a megabyte must not take seconds.
    """

    kind: str
    literals: tuple[bytes, ...]
    pattern: re.Pattern[bytes]
    group: int = 0
    name: int = 0


def _detail(kind: str, literals: bytes, pattern: bytes, group: int = 0, name: int = 0) -> Detail:
    return Detail(kind, tuple(literals.split(b"|")), re.compile(pattern), group, name)


DETAILS = (
    *(_detail(kind, literals.encode(), pattern.encode()) for kind, literals, pattern in FORMS),
    _detail(
        "slack_webhook",
        b"hooks.slack.com/",
        rb"hooks\.slack\.com/(?:services|workflows)/([A-Za-z0-9/]{20,255})",
        group=1,
    ),
    _detail(
        "api_key",
        b"sk-",
        rb"(?<![A-Za-z0-9-])sk-(?=[A-Za-z_\-]{0,64}[0-9])[A-Za-z0-9_\-]{20,255}",
    ),
    _detail(
        "connection_string",
        b"://",
        # Digits behind a host, up to a slash, are a port. A password may hold `/` and `@`; the `/@`
        # of `host/@scope/` and an address behind a `?` are of a path.
        rb"(?<![A-Za-z0-9+.\-])[A-Za-z][A-Za-z0-9+.\-]{0,30}://"
        rb"(?:[^\s:/@\"'\[]{1,255}:(?![0-9]{0,5}[/?#,])|:)"
        rb"([^\s@\"']{1,255}(?:@(?:[^\s@\"'/]{1,255}|[^\s@\"'?]{1,255}(?<!/))){0,3})@(?![/?#]|sha256:)",
        1,
    ),
    _detail(
        "password",
        b"pass",
        rb"(?i)\buser(?:name)?[\"']?\s?[=:]\s?\S{1,128}[\s;,&]{1,3}pass[\"']?\s?[=:]\s?[\"']?"
        rb"([^\s\"';,&]{1,255})",
        1,
    ),
    _detail(
        "signature",
        b"x-amz-signature|x-goog-signature",
        rb"(?i)[?&]x-(?:amz|goog)-signature=([0-9a-f]{16,512})",
        1,
    ),
    _detail("signature", b"aws4-hmac", rb"\bSignature=([0-9a-f]{16,512})", 1),
    _detail("signature", b"sig=", rb"(?i)[?&]sig=([a-z0-9%+/=_\-]{20,512})", 1),
    _detail(
        "cookie",
        b"cookie",
        rb"(?i)\bcookie[\"']?\s{0,3}:\s{0,3}[\"']?"
        rb"([a-z0-9_.\-!#$%&*+^|~]{1,128}=[^\"'\r\n]{1,8192})",
        1,
    ),
    _detail("api_key", b"wandb_v", rb"\bwandb_v\d_[A-Za-z0-9_]{30,255}"),
    _detail(
        "api_key",
        b"wandb",
        rb"(?i)\bwandb(?:_api_key|[ .]login)\b[^\n]{1,24}?\b([0-9a-f]{40})\b",
        1,
    ),
    _detail(
        "authorization",
        b"authorization",
        rb"(?i)\bauthorization[\"']?\s{0,3}[=:]\s{0,3}[\"']?"
        rb"(?:(?:bearer|basic|token|digest)\s{1,3})?([^\s\"',;]{6,8192})",
        1,
    ),
    _detail(
        "argument",
        b"--",
        rb"--((?:[a-z0-9]{1,20}[_-]){0,3}(?:token|(?:api|access)[_-]key|secret(?:[_-](?:access[_-])?key)?"
        rb"|password|passwd)) ([^\s=-]\S{5,255})",
        group=2,
        name=1,
    ),
    _detail("authorization", b"bearer", rb"(?i)\bbearer\s{1,3}([A-Za-z0-9_\-.=+/~]{16,8192})", 1),
)
KEY_BEGIN = re.compile(rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----")
KEY_END = re.compile(rb"-----END [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----")
KEY_MASK = b"[masked:private_key]"
# Values that say there is none, or refer to one.
NO_SECRET = re.compile(
    rb"(?i)(?:none|null|nil|true|false|unset|set|missing|empty|redacted|hidden|required|optional"
    rb"|invalid|expired|yes|no|env|\*+|x{3,}|\.{2,}|%[sdr]|\$\{?\w+\}?|\[masked.*|\d{1,3})$"
)
# Tokens of a vocabulary, or of a text.
VOCABULARY = re.compile(TOKEN_NAMES.encode())
MIXED = re.compile(rb"(?=.*[A-Za-z])(?=.*[0-9])")
# Names whose value is a secret even if of letters alone; `secret` and `credentials` are words.
_CERTAIN = re.compile(rb"(?i)[a-z0-9][_.\-]?secret$|secret.{0,8}key$|(?:api|access)[_-]?key$")
# What of letters alone such a name has beside it that is none: how it is, or where code has it from.
_STATE = re.compile(
    rb"(?i)(?:not?[_-]?(?:set|found|needed|required|configured|provided)|(?:un|re)?changed|(?:un)?defined"
    rb"|provided|configured|disabled|detected|verified|validated|accepted|rejected|generated|retrieved"
    rb"|available|unavailable|anonymous|deprecated|supported|unsupported|placeholder|default|application-default"
    rb"|(?:your|change)[_-].*|<.*|%\(.*|optional|secretstr|str|string)$"
)
_CODE = re.compile(
    rb"(?i)[a-z_]\w{0,80}(?:\.[a-z_]\w{0,80}){1,8}$"
    rb"|(?:\w{1,80}_)?(?:(?:api|access|secret|private|auth|account)_?key|secret)(?:_id)?$"
)
# Behind a name: a sentence, as `: please enter` is and `: swordfish user: joe` is not; a call.
PROSE = re.compile(
    rb"(?i)\s?:\s{1,3}[a-z][a-z'-]{0,40}[.,!?]?[ ][a-z]{1,20}(?![\w.\-]{0,64}[\"']?\s{0,3}[=:])"
)
CALL = re.compile(rb"\s{0,3}[=:]\s{0,3}[A-Za-z_.]{1,160}[(\[]")


def whole_name(text: bytes, start: int, end: int) -> bytes:
    """Of the name that a match has the end of: all of it, `db_` of `db_password` too."""
    return re.split(rb"\[[0-9;]{0,16}m|[^\w.\-]", text[max(0, start - 128) : end])[-1]


def kind_of_name(name: bytes) -> str | None:
    """What kind of secret is set by that name, if any."""
    for match in ASSIGNED.finditer(name + b"=x"):
        if match["name"] is not None and match.end() == len(name) + 2:
            return next(kind for kind in KINDS if match[kind] is not None)
    return None


def is_secret(kind: str, name: bytes, value: bytes, *, spoken: bool = False) -> bool:
    """Whether what a name of that kind is set to can be one. `spoken`: as `name: value`, unquoted."""
    if NO_SECRET.match(value):
        return False
    is_path = value.startswith((b"/", b"~/"))
    if kind == "password":
        # `PWD=/home/x` and `passwd: /etc/passwd` are paths, `password: wrong` says how it is.
        if is_path and (spoken or name.lower().endswith(b"pwd")):
            return False
        return not spoken or len(value) >= 6
    if len(value) < 8 or is_path:
        return False
    if kind == "token" and value[:1] in b"<[" and value[-1:] in b">]":
        return False  # `<extra_id_99>`
    if len(value) >= 32 or MIXED.match(value):
        return True
    return bool(kind != "token" and _CERTAIN.search(name)) and not (
        _STATE.match(value) or _CODE.match(value)
    )
