"""boto3 clients and their errors in our words. boto3 is imported when the first client is made."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

from ranklog.errors import (
    BadInput,
    Corrupt,
    NotFound,
    PreconditionFailed,
    RanklogError,
    StoreFull,
    Throttled,
    TooLarge,
    Unavailable,
)
from ranklog.limits import SCATTER_CONCURRENCY_MAX

_CONNECT_TIMEOUT_S = 5
_ATTEMPTS = 5

_BY_CODE: dict[str, type[RanklogError]] = {
    "NoSuchKey": NotFound,
    "NoSuchBucket": NotFound,
    "ResourceNotFoundException": NotFound,
    "PreconditionFailed": PreconditionFailed,
    "InvalidRange": Corrupt,
    "SlowDown": Throttled,
    "Throttling": Throttled,
    "ThrottlingException": Throttled,
    "TooManyRequestsException": Throttled,
    "RequestLimitExceeded": Throttled,
    "ProvisionedThroughputExceededException": Throttled,
    "RequestTimeout": Unavailable,
    "QuotaExceeded": StoreFull,
    "RequestTooLargeException": TooLarge,
    "EntityTooLarge": TooLarge,
}
_BY_STATUS: dict[int, type[RanklogError]] = {
    404: NotFound,
    412: PreconditionFailed,
    413: TooLarge,
    416: Corrupt,
    429: Throttled,
    507: StoreFull,
}
_OURS = frozenset(
    {
        "NoCredentialsError",
        "PartialCredentialsError",
        "CredentialRetrievalError",
        "NoRegionError",
        "ProfileNotFound",
        "ParamValidationError",
        "UnauthorizedSSOTokenError",
        "InvalidEndpointConfigurationError",
    }
)
# Credentials that are not valid any more, or not yet.
_CREDENTIALS = frozenset(
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "RequestExpired",
        "TokenRefreshRequired",
        "InvalidToken",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "UnrecognizedClientException",
        "InvalidSignatureException",
        "SignatureDoesNotMatch",
        "AccessDenied",
        "AccessDeniedException",
    }
)
_NO_CREDENTIALS = frozenset(
    {"NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError"}
)
# A client is made anew at most so often.
RENEW_S = 5.0
_HINT = "check the credentials, AWS_REGION, AWS_ENDPOINT_URL and the policy"


def aws_client(
    service: str,
    *,
    read_timeout_s: float = 60.0,
    attempts: int = _ATTEMPTS,
    region: str | None = None,
    profile: str | None = None,
) -> Any:
    """A client with bounded waits, for many threads. Raises BadInput where there is no boto3."""
    try:
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError
    except ImportError as error:
        raise BadInput("boto3 is not installed", hint="pip install 'ranklog[aws]'") from error
    config = Config(
        connect_timeout=_CONNECT_TIMEOUT_S,
        read_timeout=read_timeout_s,
        retries={"mode": "standard", "total_max_attempts": attempts},
        max_pool_connections=SCATTER_CONCURRENCY_MAX,
    )
    try:
        # A session of its own: making clients of the shared one is not safe among threads.
        return boto3.session.Session(profile_name=profile).client(
            service, region_name=region, config=config
        )
    except (BotoCoreError, ValueError) as error:
        raise translate(error, service) from error


def translate(error: Exception, what: str) -> RanklogError:
    """A botocore exception as one of our tree. `what`: the key or the function it was about."""
    response = getattr(error, "response", None)
    if not isinstance(response, dict):
        if type(error).__name__ in _OURS or isinstance(error, ValueError):
            return BadInput(f"{what}: {_one_line(error)}", hint=_HINT)
        return Unavailable(f"{what}: {_one_line(error)}", hint="check the network, then repeat")
    code = str(response.get("Error", {}).get("Code", ""))
    status = status_of(error)
    kind = _BY_CODE.get(code) or _BY_STATUS.get(status)
    if kind is None:
        kind = Unavailable if status >= 500 or status == 409 else BadInput
    hint = _HINT if kind in (BadInput, NotFound) else None
    if code == "NoSuchBucket":
        bucket = response.get("Error", {}).get("BucketName") or "NAME"
        hint = f"check its name, or make it: aws s3 mb s3://{bucket}"
    return kind(f"{what}: {_one_line(error)}", hint=hint)


def are_lost(error: Exception) -> bool:
    """Whether the credentials of a client are at fault: others may have been put in their place."""
    response = getattr(error, "response", None)
    code = str(response.get("Error", {}).get("Code", "")) if isinstance(response, dict) else ""
    return code in _CREDENTIALS or type(error).__name__ in _NO_CREDENTIALS


class Renewed:
    """A client, and a new one when its credentials ran out: of a session of its own, which reads the
    environment and files again. A client that was given is kept. Threads may share it."""

    def __init__(self, service: str, client: Any = None, *, region: str | None = None) -> None:
        self._service, self._region = service, region
        self._is_given = client is not None
        self.client = client if client is not None else aws_client(service, region=region)
        self._made_s = time.monotonic()

    def note(self, error: Exception) -> Exception:
        """The error, after a new client was made where that may help."""
        if not self._is_given and are_lost(error):
            now_s = time.monotonic()
            if now_s - self._made_s >= RENEW_S:
                self._made_s = now_s
                with suppress(RanklogError):
                    self.client = aws_client(self._service, region=self._region)
        return error


def status_of(error: Exception) -> int:
    """The HTTP status of a botocore ClientError; 0 where there is none."""
    response = getattr(error, "response", None) or {}
    return int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
