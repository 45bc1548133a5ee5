"""AWS as the model knows it: limits and times, each with where it is from. Prices are in
`ranklog.objectives.prices`.

`source` "assumed" marks what AWS publishes no figure for; all of these are on the slow side of what is
usually seen. Quotas are the defaults of an account in us-east-1; `raisable` ones are raised on request.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.bench.scale.times import Lognormal

AS_OF = "2026-11-30"
_KINESIS = "https://docs.aws.amazon.com/streams/latest/dev/service-sizes-and-limits.html"
_KINESIS_DELAY = "https://docs.aws.amazon.com/streams/latest/dev/enhanced-consumers.html"
_MAPPING = "https://docs.aws.amazon.com/lambda/latest/dg/with-kinesis.html"
_LAMBDA = "https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html"
_SCALING = "https://docs.aws.amazon.com/lambda/latest/dg/scaling-behavior.html"
_S3 = "https://docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance.html"
_API = "https://docs.aws.amazon.com/apigateway/latest/developerguide/limits.html"
ASSUMED = "assumed"


@dataclass(frozen=True, slots=True)
class Limit:
    """A number with its unit and source."""

    value: float
    unit: str
    source: str
    raisable: bool = False


LIMITS = {
    "shard in": Limit(1e6, "bytes/s", _KINESIS),
    "shard records": Limit(1_000, "records/s", _KINESIS),
    "shard out": Limit(2e6, "bytes/s", _KINESIS),
    "stream on demand": Limit(10e9, "bytes/s", _KINESIS, True),
    "stream on demand, new": Limit(4e6, "bytes/s", _KINESIS),
    "shards of an account": Limit(20_000, "shards", _KINESIS, True),
    "stream doubles in": Limit(900, "s", _KINESIS),
    "propagation": Limit(0.2, "s, one consumer, in the mean", _KINESIS_DELAY),
    "poll": Limit(1.0, "s between polls of a shard", _MAPPING),
    "payload": Limit(6e6, "bytes of an invocation", _LAMBDA),
    "concurrency": Limit(1_000, "environments of an account", _LAMBDA, True),
    "scaling": Limit(100, "new environments/s of a function", _SCALING),
    "function time": Limit(900, "s", _LAMBDA),
    "vCPU": Limit(1_769, "MB of memory for one", _LAMBDA),
    "S3 PUT": Limit(3_500, "PUT/s of a partitioned prefix", _S3),
    "S3 GET": Limit(5_500, "GET/s of a partitioned prefix", _S3),
    "API requests": Limit(10_000, "requests/s of an account", _API, True),
    "invoke": Limit(0.015, "s around a warm invocation", ASSUMED),
    "cold start": Limit(0.35, "s to start a sandbox, beside imports", ASSUMED),
    "gateway": Limit(0.015, "s of the HTTP API", ASSUMED),
    "CPU": Limit(1.0, "of a core here is a Lambda vCPU", ASSUMED),
}
# S3 says 100 to 200 ms for small requests; bytes come at some 80 MB/s of one connection (its own advice:
# 85 to 90 MB/s of one request).
S3_TIMES = Lognormal(0.10, 0.25)
S3_BYTES_PER_S = 85e6


def limit(name: str) -> float:
    """The value of one."""
    return LIMITS[name].value
