"""What must not leave the process in a manifest: values of secret names, and texts that look like keys.

Of the environment only variables of known kinds are kept at all: what a run depends on, not what it
may open.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ranklog.produce.token_forms import FORMS

MASK = "***"
# Names of tokens of a vocabulary, or of a text: `pad_token`, `use_cls_token`, `next_token`.
TOKEN_NAMES = (
    r"(?i)(?:^|[_.\-])(?:pad|padding|eos|bos|sos|unk|cls|class|sep|separator|mask|special|prompt|start"
    r"|end|stop|next|last|first|prev|previous|current|draft|sampled|generated|predicted|input|output"
    r"|target|image|img|video|audio|vision|boi|eoi|fim|prefix|middle|suffix|think|added|dummy"
    r"|placeholder|per|max|min|num|dist|register|mem|sink)[_\-]?token$"
)
_NAME = re.compile(
    r"(?i)(pass(word|wd|phrase)|secrets?|credentials?|(^|[_.\-])(keys?|token|auth|cookie|pass|pwd)"
    r"|api_?key|access_?key|(api|access|auth|hf|hub|wandb|bearer)_?token|signature|webhook|dsn)$"
)
# What a training's configuration calls so and is no secret.
_PASSES = r"(?:forward|backward|first|second|last|single|one|two|multi|full|each|every|per|warmup|low|high)"
_HARMLESS = re.compile(rf"{TOKEN_NAMES}|(?:^|[_.\-]){_PASSES}[_.\-]pass$")
# Keys of services by their own look, and the password in an address.
_TEXT = re.compile(
    r"(?P<scheme>\b[a-z][a-z0-9+.\-]{0,30}://)[^\s/@:]*:[^\s/@]+(?=@)"
    r"|\b(?:sk-[\w\-]{16,}|hf_\w{16,}|gh[pousr]_\w{20,}|glpat-[\w\-]{16,}|AIza[\w\-]{30,})"
    + "".join(f"|{pattern}" for _, _, pattern in FORMS)
    + r"|(?i:\bbearer\s+[\w\-.=+/]{12,})|(?i:(?<=authorization: )\w+ [\w\-.=+/]{6,})"
    r"|(?i:(?<=cookie: )[\w.\-]+=[^\"'\r\n]+)"
)
# `api_key: "…"`, `HF_TOKEN=…`: in code, configuration and shells; `max_tokens=5` is none. What goes before is
# bounded and begins a word: within a long one each place would be a beginning, and a job waits for it.
_ASSIGNED = re.compile(
    r"(?i)(?<![\w.\-])(?P<name>[\w.\-]{0,128}?(?:(?:passw(?:or)?d|passphrase|(?:db|sql|user|admin|root|smtp|mail|redis|login)_?pass|secret|credential|(?:api|access|private)[_\-]?key)s?"
    r"|[_\-.]token|\btoken)[\"']?\s*[=:]\s*[\"']?)(?P<value>[^\s\"',;&}\])]+)"
)
_UNSET = frozenset(["none", "null", "true", "false", "***", "|", ">"])
_OPTION = re.compile(r"--?([\w.\-]+)(=.*)?$", re.DOTALL)

_KEPT = (
    "RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE GROUP_RANK ROLE_RANK NODE_RANK NNODES HOSTNAME "
    "MASTER_ADDR MASTER_PORT JOB_COMPLETION_INDEX VIRTUAL_ENV CONDA_DEFAULT_ENV CONDA_PREFIX "
    "LD_LIBRARY_PATH LD_PRELOAD PYTHONPATH PYTHONHASHSEED PYTHONUNBUFFERED LANG LC_ALL TZ USER"
).split()
_KEPT_PREFIXES = tuple(
    (
        "TORCH PYTORCH NCCL_ RCCL_ CUDA_ CUBLAS CUDNN NVIDIA_ NVTE_ ROCM HIP_ HSA_ GLOO_ UCX_ FI_ "
        "OFI_ EFA_ IB_ MLX OMP_ MKL_ KMP_ OPENBLAS SLURM_ PMI PMIX OMPI_ MPI PET_ JOBSET_ XLA_ JAX_ "
        "TPU_ TRITON TF_ HF_ TRANSFORMERS_ ACCELERATE_ FSDP_ DEEPSPEED MEGATRON TITAN_ PRIMUS_ "
        "RANKLOG_ RAY_ LIGHTNING"
    ).split()
)


def is_secret_name(name: str) -> bool:
    """Whether a key, variable or option of that name holds what nobody else may see."""
    return _NAME.search(name) is not None and _HARMLESS.search(name) is None


def mask_text(text: str) -> str:
    """The text without keys of services, passwords in addresses, values of secret names."""
    text = _TEXT.sub(lambda found: f"{found['scheme'] or ''}{MASK}", text)
    return _ASSIGNED.sub(_masked_value, text)


def _masked_value(found: re.Match[str]) -> str:
    name = found["name"].rstrip(" \t\"':=")
    if found["value"].lower() in _UNSET or _HARMLESS.search(name):
        return found[0]
    return f"{found['name']}{MASK}"


def mask_command(words: Sequence[str]) -> list[str]:
    """A command's words; the value of `--api-key VALUE` and `--token=VALUE` is masked."""
    masked: list[str] = []
    hide_next = False
    for word in words:
        option = _OPTION.fullmatch(word)
        if hide_next and option is None:
            masked.append(MASK)
            hide_next = False
            continue
        hide_next = False
        if option and is_secret_name(option[1].replace("-", "_")):
            hide_next = option[2] is None
            masked.append(word if hide_next else f"{word.partition('=')[0]}={MASK}")
        else:
            masked.append(mask_text(word))
    return masked


def kept_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that say what a run depends on; secret ones among them are masked."""
    more = environ.get("RANKLOG_ENVIRONMENT", "").split()
    kept = {}
    for name, value in sorted(environ.items()):
        if name in _KEPT or name in more or name.startswith(_KEPT_PREFIXES):
            kept[name] = MASK if is_secret_name(name) else mask_text(value)[:4096]
    return kept
