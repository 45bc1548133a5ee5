"""Measures into CloudWatch: one line of the function's log in the embedded metric format (EMF) per tenant.

Each metric is put by `service` and by `service` and `tenant`. CloudWatch takes at most 100 values of a metric
in a line: of more times, a hundred that have the same quantiles.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from aws_lambda_powertools.metrics.provider.cloudwatch_emf.cloudwatch import (
    AmazonCloudWatchEMFProvider,
)

from ranklog.objectives import names
from ranklog.objectives.histogram import Histogram, edge
from ranklog.objectives.measures import Measures

# Powertools writes a line as soon as it has 100: one less stays one line.
_VALUES_MAX = 99


def put_metrics(
    service: str,
    tenant: str | None,
    measures: Measures,
    gauges: Mapping[str, float | None] | None = None,
    *,
    stack_wide: bool = True,
    **about: str | None,
) -> None:
    """One line, nothing where nothing was measured. A gauge that is None is not known; one with the name of a
    count stands for it, so that a zero is told. `about` stands beside the metrics and is none. Not
    `stack_wide`: by service and tenant alone."""
    given = {name: value for name, value in (gauges or {}).items() if value is not None}
    if not measures and not given:
        return
    line = AmazonCloudWatchEMFProvider(
        metric_set={},
        dimension_set={},
        metadata_set={},
        default_dimensions={},
        namespace=names.NAMESPACE,
        service=service,
    )
    if tenant is not None and stack_wide:
        line.add_dimensions(service=service, tenant=tenant)
    elif tenant is not None:
        line.add_dimension("tenant", tenant)
    for name, text in sorted(about.items()):
        line.add_metadata(name, text)
    for name, count in sorted(measures.counts.items()):
        if name in given or name == names.COST:  # a metric costs money, and cost_usd says it
            continue
        line.add_metric(name, names.BY_NAME[name].unit, count)
    for name, times in sorted(measures.ms.items()):
        for value in samples(times):
            line.add_metric(name, names.BY_NAME[name].unit, value)
    for name, value in sorted(given.items()):
        line.add_metric(name, names.BY_NAME[name].unit, value)
    line.flush_metrics()


def samples(times: Histogram) -> list[float]:
    """All values, each the upper edge of its bucket, or of many so many that stand for as many each."""
    if times.count <= _VALUES_MAX:
        return [edge(bucket) for bucket in sorted(times.buckets.elements())]
    shares = (Fraction(2 * at + 1, 2 * _VALUES_MAX) for at in range(_VALUES_MAX))
    found = (times.quantile(share) for share in shares)
    return [value for value in found if value is not None]
