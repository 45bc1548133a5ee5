"""One tree of errors. A message is lower case and says what, why and what next.

RanklogError
├── BadInput            400  the caller's words: query, regex, rule, option, path
│   ├── BadQuery             with the position in the query
│   └── BadRule              with the position in the rule
├── Unauthorized        401  no key, or one that nobody has, or no more
├── Forbidden           403  a key, but not for this
│   ├── Unsigned             a frame without the MAC that its tenant requires
│   └── Forged               a frame whose MAC is of none of its tenant's keys
├── NotFound            404  run, stream, object, store
├── AlreadyExists       409  a create-once PUT met an object (not an error for most callers)
├── PreconditionFailed  412  If-Match did not hold
├── TooLarge            413  a limit of limits.py
├── Throttled           429  retryable
│   └── OverQuota            with the seconds until it may be asked again
├── Corrupt             500  bytes that are not what their name says
├── NewerVersion        500  written by a newer ranklog
├── StoreFull           507  disk full or quota
├── Unavailable         503  retryable: network, 5xx, time-out
└── Cancelled           503  nobody waits for it any more: the client was closed
"""

from __future__ import annotations

from typing import ClassVar


class RanklogError(Exception):
    """Base of all. `message` is one line; `hint` is the next step; `position` counts characters."""

    kind: ClassVar[str] = "error"
    http_status: ClassVar[int] = 500
    retryable: ClassVar[bool] = False

    def __init__(
        self, message: str, *, hint: str | None = None, position: int | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.position = position

    def to_json(self) -> dict[str, object]:
        """The member `error` of `interfaces`: kind, message, hint, position."""
        return {
            "kind": self.kind,
            "message": self.message,
            "hint": self.hint,
            "position": self.position,
        }

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class BadInput(RanklogError):
    """The caller's words can't be used as they are."""

    kind = "bad_input"
    http_status = 400


class BadQuery(BadInput):
    """A query that does not parse, or asks what can't be answered."""

    kind = "bad_query"


class BadRule(BadInput):
    """A parse-and-extract rule that is refused."""

    kind = "bad_rule"


class Unauthorized(RanklogError):
    """No key, one that nobody has, or one that was revoked or has expired."""

    kind = "unauthorized"
    http_status = 401


class Forbidden(RanklogError):
    """A key, but not for this."""

    kind = "forbidden"
    http_status = 403


class Unsigned(Forbidden):
    """A frame without the MAC that its tenant requires."""

    kind = "unsigned"


class Forged(Forbidden):
    """A frame whose MAC is of none of its tenant's keys."""

    kind = "forged"


class NotFound(RanklogError):
    """Nothing by that name."""

    kind = "not_found"
    http_status = 404


class AlreadyExists(RanklogError):
    """A create-once PUT met an object of that key."""

    kind = "already_exists"
    http_status = 409


class PreconditionFailed(RanklogError):
    """The object is not the one that was named (If-Match)."""

    kind = "precondition_failed"
    http_status = 412


class TooLarge(RanklogError):
    """Over a limit; the message names it."""

    kind = "too_large"
    http_status = 413


class Throttled(RanklogError):
    """Asked to slow down."""

    kind = "throttled"
    http_status = 429
    retryable = True


class OverQuota(Throttled):
    """A tenant has used what it may; `retry_after_s` says when to come again."""

    kind = "over_quota"

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        position: int | None = None,
        retry_after_s: int = 1,
    ) -> None:
        super().__init__(message, hint=hint, position=position)
        self.retry_after_s = retry_after_s


class Corrupt(RanklogError):
    """Bytes that are not what their name or header says."""

    kind = "corrupt"


class NewerVersion(RanklogError):
    """Written by a newer ranklog than this one."""

    kind = "newer_version"


class StoreFull(RanklogError):
    """Disk full or quota reached."""

    kind = "store_full"
    http_status = 507


class Unavailable(RanklogError):
    """A service did not answer, or not in time."""

    kind = "unavailable"
    http_status = 503
    retryable = True


class Cancelled(RanklogError):
    """Nobody waits for it any more."""

    kind = "cancelled"
    http_status = 503
