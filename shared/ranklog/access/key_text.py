"""Keys as text: `rlk_<tenant>.<id>.<secret>` of an API key, `rli_…` of an ingest key.

The tenant says where to look the key up and proves nothing: the secret does. Tenant and secret are
base64url without padding, so that a key is a token of RFC 6750 and has no letter that a shell minds.
"""

from __future__ import annotations

import base64
import binascii
import re
import secrets
from dataclasses import dataclass

from ranklog.errors import BadInput

API, INGEST = "api", "ingest"
_PREFIXES = {API: "rlk_", INGEST: "rli_"}
SECRET_BYTES = 32
_ID_BYTES = 6
_TEXT = re.compile(r"(rlk_|rli_)([A-Za-z0-9_-]{1,800})\.([0-9a-f]{12})\.([A-Za-z0-9_-]{43})")
ID = re.compile(r"[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class KeyText:
    """A key in parts. Never printed but once, when it is made."""

    kind: str
    tenant: str
    key_id: str
    secret: bytes

    def render(self) -> str:
        """What the user keeps."""
        tenant = _packed(self.tenant.encode("utf-8", "surrogatepass"))
        return f"{_PREFIXES[self.kind]}{tenant}.{self.key_id}.{_packed(self.secret)}"


def new_key(kind: str, tenant: str) -> KeyText:
    """A key of 256 random bits."""
    return KeyText(kind, tenant, secrets.token_hex(_ID_BYTES), secrets.token_bytes(SECRET_BYTES))


def parse_key(text: str) -> KeyText | None:
    """The key, None for text that is none."""
    found = _TEXT.fullmatch(text)
    if found is None:
        return None
    kind = next(kind for kind, prefix in _PREFIXES.items() if prefix == found[1])
    try:
        tenant = _unpacked(found[2]).decode("utf-8", "surrogatepass")
        key = KeyText(kind, tenant, found[3], _unpacked(found[4]))
    except (binascii.Error, ValueError):
        return None
    # Base64 has several spellings of some bytes; a key has one.
    return key if key.render() == text else None


def parse_ingest_key(text: str) -> KeyText:
    """The key that frames are sealed with. Raises BadInput, which does not repeat it."""
    key = parse_key(text.strip())
    if key is None or key.kind != INGEST:
        raise BadInput(
            "that is no ingest key", hint="`ranklog keys create --ingest` makes one: rli_…"
        )
    return key


def _packed(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _unpacked(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
