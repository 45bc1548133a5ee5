"""AWS list prices: the one table that cost metrics, the model of scale and its page read.

US dollars in us-east-1, the first tier, without free tiers, discounts and taxes. GB is 10**9 bytes, or
2**30 where AWS meters so (S3, Kinesis): the difference of 7 % is on the dear side here, as all is taken per
10**9. A month has 730 hours, as AWS counts. `as_of` is when the figure was last seen stated for that
region; change figure and date together.
"""

from __future__ import annotations

from dataclasses import dataclass

REGION = "us-east-1"
GB = 1e9
HOURS_PER_MONTH = 730
SECONDS_PER_MONTH = HOURS_PER_MONTH * 3_600

_LAMBDA = "https://aws.amazon.com/lambda/pricing/"
_S3 = "https://aws.amazon.com/s3/pricing/"
_KINESIS = "https://aws.amazon.com/kinesis/data-streams/pricing/"
_API = "https://aws.amazon.com/api-gateway/pricing/"
_CLOUDWATCH = "https://aws.amazon.com/cloudwatch/pricing/"


@dataclass(frozen=True, slots=True)
class Price:
    """`usd` for `per` of what is metered; the page that says so, and when."""

    usd: float
    per: str
    source: str
    as_of: str

    def of(self, quantity: float) -> float:
        """Dollars for that many units of `per`."""
        return self.usd * quantity


LAMBDA_X86_GB_S = Price(0.0000166667, "GB-second", _LAMBDA, "2026-05-11")
LAMBDA_ARM_GB_S = Price(0.0000133334, "GB-second", _LAMBDA, "2026-05-11")
LAMBDA_REQUEST = Price(0.20 / 1e6, "request", _LAMBDA, "2026-05-11")

# LIST costs as much as PUT; DELETE nothing.
S3_PUT = Price(0.005 / 1e3, "PUT, COPY, POST or LIST request", _S3, "2026-03-13")
S3_LIST = Price(0.005 / 1e3, "PUT, COPY, POST or LIST request", _S3, "2026-03-13")
S3_GET = Price(0.0004 / 1e3, "GET request", _S3, "2026-03-13")
S3_STORED = Price(0.023, "GB-month, first 50 TB", _S3, "2026-03-13")

# On demand, standard. Records are rounded up to the next KiB.
KINESIS_IN = Price(0.08, "GB put", _KINESIS, "2026-05-05")
KINESIS_OUT = Price(0.04, "GB read, one consumer", _KINESIS, "2026-05-05")
KINESIS_STREAM_HOUR = Price(0.04, "stream hour", _KINESIS, "2026-05-05")
# Beyond 24 hours and up to 7 days.
KINESIS_RETAINED = Price(0.10, "GB-month", _KINESIS, "2026-05-05")
# On demand, advantage: for an account that pays for 25 MB/s at least, without stream hours.
KINESIS_ADVANTAGE_IN = Price(0.032, "GB put", _KINESIS, "2026-05-05")
KINESIS_ADVANTAGE_OUT = Price(0.016, "GB read, one consumer", _KINESIS, "2026-05-05")
KINESIS_ADVANTAGE_IN_BYTES_PER_S_MIN = 25e6
# Provisioned: reading is in the shard's hour; each 25 KB of a record is one unit.
KINESIS_SHARD_HOUR = Price(0.015, "shard hour", _KINESIS, "2026-05-05")
KINESIS_PUT_UNIT = Price(0.014 / 1e6, "PUT payload unit of 25 KB", _KINESIS, "2026-05-05")
# Beyond 24 hours and up to 7 days.
KINESIS_SHARD_RETAINED_HOUR = Price(0.02, "shard hour", _KINESIS, "2026-05-05")

# Each 512 KiB of a request is one.
API_REQUEST = Price(1.00 / 1e6, "request to an HTTP API, first 300 million", _API, "2026-03-13")

CLOUDWATCH_LOGS_IN = Price(0.50, "GB put", _CLOUDWATCH, "2026-06-01")
# Of what is stored compressed: AWS says to expect 0.15 of what was put.
CLOUDWATCH_LOGS_STORED = Price(0.03, "GB-month, compressed", _CLOUDWATCH, "2026-06-01")
CLOUDWATCH_LOGS_COMPRESSED = 0.15
CLOUDWATCH_LOGS_SCANNED = Price(0.005, "GB scanned by Logs Insights", _CLOUDWATCH, "2026-06-01")
CLOUDWATCH_METRIC = Price(0.30, "metric and month, first 10,000", _CLOUDWATCH, "2026-06-01")


def all_prices() -> dict[str, Price]:
    """Every price by its name here, for tables."""
    return {name: value for name, value in globals().items() if isinstance(value, Price)}


def lambda_usd(gb_s: float, requests: int = 1, *, arm: bool = False) -> float:
    """What invocations cost that took so many GB-seconds together."""
    rate = LAMBDA_ARM_GB_S if arm else LAMBDA_X86_GB_S
    return rate.of(gb_s) + LAMBDA_REQUEST.of(requests)
