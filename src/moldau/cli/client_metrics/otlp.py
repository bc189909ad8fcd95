"""What a client has pushed, decoded for people: OTLP metrics, one row for each value. Pure.

Source: `opentelemetry/proto/metrics/v1/metrics.proto` of OpenTelemetry's specification, by its own Python package.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from moldau.errors import ConfigError
from moldau.names import how_to_install


class MetricValue(NamedTuple):
    """One value of a metric. `kind` is gauge, sum, histogram, exponential_histogram or summary; of the latter three
    `value` is the sum of `times` values."""

    name: str
    value: float | None
    kind: str
    unit: str
    attributes: Mapping[str, object]
    times: int | None = None


class NotMetrics(ValueError):
    """A payload that is not OTLP."""


def metric_values(payload: bytes) -> Iterator[MetricValue]:
    """The values of a push. Raises `NotMetrics`, and `ConfigError` if the package that reads them is missing."""
    try:
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
    except ImportError:
        raise ConfigError(f"reading metrics needs opentelemetry-proto: {how_to_install('telemetry')}") from None
    try:
        data = MetricsData.FromString(payload)
    except DecodeError:
        raise NotMetrics("it is not OTLP") from None
    for resource in data.resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                kind = metric.WhichOneof("data")
                for point in getattr(metric, kind).data_points if kind else ():
                    yield _value(metric, kind, point)


def _value(metric: Any, kind: str, point: Any) -> MetricValue:
    attributes = {one.key: _any(one.value) for one in point.attributes}
    if kind in ("gauge", "sum"):
        which = point.WhichOneof("value")
        return MetricValue(metric.name, getattr(point, which) if which else None, kind, metric.unit, attributes)
    return MetricValue(metric.name, point.sum, kind, metric.unit, attributes, point.count)


def _any(value: Any) -> object:
    which = value.WhichOneof("value")
    found = getattr(value, which) if which else None
    return found if isinstance(found, bool | int | float | str) else str(value).strip() if which else None
