"""Tokens of services that are known by their own look, wherever they stand.

Each form is (kind, literals, pattern): one of the literals, in lower case and parted by `|`, is in every line that
has a match. A prefix alone is no form: behind it comes what only a token has, so that `task_test_1`, `msg.sender`
and `disk_live_bytes` are none. Forms are as the services describe them and as scanners of repositories look
for them.
"""

from __future__ import annotations

FORMS: tuple[tuple[str, str, str], ...] = (
    ("aws_key", "akia|asia", r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    ("aws_key", "absk", r"\bABSK[A-Za-z0-9+/]{109,269}={0,2}"),
    (
        "github_token",
        "gh|github_pat_",
        r"\b(?:gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_[A-Za-z0-9_]{22,255})",
    ),
    (
        "gitlab_token",
        "gl",
        r"\bgl(?:pat|ptt|dt|rt|cbt|soat|ft|imt|oas)-[A-Za-z0-9_\-]{20,255}",
    ),
    ("slack_token", "xox|xapp-", r"\b(?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{10,255}"),
    ("huggingface_token", "hf_", r"\bhf_[A-Za-z0-9]{30,255}"),
    ("google_key", "aiza", r"\bAIza[0-9A-Za-z_\-]{35}"),
    (
        "google_token",
        "ya29.|gocspx-",
        r"\b(?:ya29\.[0-9A-Za-z_\-]{20,2048}|GOCSPX-[0-9A-Za-z_\-]{28})",
    ),
    (
        "jwt",
        "eyj",
        r"\beyJ[A-Za-z0-9_\-]{8,4096}\.[A-Za-z0-9_\-]{8,8192}\.[A-Za-z0-9_\-]{0,4096}",
    ),
    (
        "ranklog_key",
        "rlk_|rli_",
        r"\brl[ik]_[A-Za-z0-9_\-]{1,800}\.[0-9a-f]{12}\.[A-Za-z0-9_\-]{43}",
    ),
    ("npm_token", "npm_", r"\bnpm_[A-Za-z0-9]{36}"),
    ("pypi_token", "pypi-", r"\bpypi-[A-Za-z0-9_\-]{50,512}"),
    (
        "stripe_key",
        "k_|whsec_",
        r"\b(?:[rs]k_(?:live|test|prod)_[0-9A-Za-z]{20,255}|whsec_[0-9A-Za-z+/]{32,64}={0,2})",
    ),
    ("sendgrid_key", "sg.", r"\bSG\.[A-Za-z0-9_\-]{16,32}\.[A-Za-z0-9_\-]{32,64}"),
    ("twilio_key", "sk", r"\bSK[0-9a-f]{32}\b"),
    ("mailgun_key", "key-", r"(?<![\w-])key-[0-9a-f]{32}\b"),
    ("telegram_token", ":aa", r"(?<![\w:.-])[0-9]{8,10}:AA[A-Za-z0-9_\-]{33}(?![A-Za-z0-9_\-])"),
    ("digitalocean_token", "_v1_", r"\bdo[opr]_v1_[0-9a-f]{64}"),
    ("docker_token", "dckr_", r"\bdckr_[po]at_[A-Za-z0-9_\-]{27,64}"),
    ("databricks_token", "dapi", r"\bdapi[0-9a-f]{32}(?:-[0-9])?\b"),
    ("azure_secret", "q~", r"(?<![A-Za-z0-9_~.])[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.\-]{31,34}"),
    ("vault_token", "hvs.|hvb.", r"\bhv[sb]\.[A-Za-z0-9_\-]{24,512}"),
    (
        "grafana_token",
        "glsa_|glc_ey",
        r"\b(?:glsa_[A-Za-z0-9]{32}_[0-9A-Fa-f]{8}|glc_ey[A-Za-z0-9+/]{32,400}={0,2})",
    ),
    # of models and of those who train them
    (
        "api_key",
        "gsk_|r8_|pplx-|xai-|nvapi-|lsv2_|pcsk_|tvly-",
        r"\b(?:gsk_[A-Za-z0-9]{48,64}|r8_[A-Za-z0-9]{37}\b|pplx-[A-Za-z0-9]{40,64}|xai-[A-Za-z0-9]{60,120}"
        r"|nvapi-[A-Za-z0-9_\-]{60,80}|lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}"
        r"|pcsk_[A-Za-z0-9]{4,8}_[A-Za-z0-9]{40,80}|tvly-[A-Za-z0-9\-]{30,64})",
    ),
    (
        "service_token",
        "shp|lin_api_|figd_|sntrys_|nrak-|pmak-|tskey-",
        r"\b(?:shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}|lin_api_[A-Za-z0-9]{40}|figd_[A-Za-z0-9_\-]{40,64}"
        r"|sntrys_[A-Za-z0-9+/=_]{60,512}|NRAK-[A-Z0-9]{27}|PMAK-[0-9a-f]{24}-[0-9a-f]{34}"
        r"|tskey-(?:api|auth|client)-[A-Za-z0-9]{8,32}-[A-Za-z0-9]{20,64})",
    ),
)
