"""Which keys a store takes: what S3 takes, less what tools and emulators rewrite on the way."""

from __future__ import annotations

from ranklog.errors import BadInput
from ranklog.limits import KEY_BYTES_MAX

_REWRITTEN = frozenset({"", ".", ".."})


def check_key(key: str) -> bytes:
    """The key's UTF-8 bytes, which are also its sort key.

    Raises BadInput: over KEY_BYTES_MAX, no UTF-8, or with an empty, `.` or `..` component.
    """
    try:
        encoded = key.encode()
    except UnicodeEncodeError as error:
        raise BadInput(f"the key {key!r} is no UTF-8 text", hint="percent-encode it") from error
    if len(encoded) > KEY_BYTES_MAX:
        raise BadInput(
            f"a key of {len(encoded)} bytes; a store takes {KEY_BYTES_MAX}: {key[:60]!r}…",
            hint="use shorter names for tenant, run and launch",
        )
    if not _REWRITTEN.isdisjoint(key.split("/")):
        raise BadInput(
            f"the key {key!r} has a component that is empty, '.' or '..'",
            hint="percent-encode names that come from outside",
        )
    return encoded
