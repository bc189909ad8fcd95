"""Metric families, and the two text formats that Prometheus reads. Pure.

A `Family` is one name with its type, its sentence and its samples, ready to be written. Source: Prometheus' "Exposition
formats" (text format 0.0.4) and the OpenMetrics specification 1.0. They differ in the name of a counter (OpenMetrics
leaves `_total` out of the lines that describe it), in the escapes of a sentence, and in the line that ends a text.
"""

import enum
import math
from collections.abc import Iterable
from typing import Final, NamedTuple

TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"
OPEN_METRICS: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"
OPEN_METRICS_NAME: Final = "application/openmetrics-text"
TOTAL: Final = "_total"


class MetricKind(enum.Enum):
    """The value is the word of the `# TYPE` line."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


class Family(NamedTuple):
    """`name` has no `_total`: the samples of a counter carry it. A sample is what follows the name in its line."""

    name: str
    kind: MetricKind
    sentence: str
    samples: list[str]


def gauge(name: str, sentence: str, samples: Iterable[tuple[str, float]]) -> Family:
    """A family of gauges; the text of each sample is its labels."""
    return Family(name, MetricKind.GAUGE, sentence, [f"{labels} {number(value)}" for labels, value in samples])


def one(name: str, sentence: str, value: float) -> Family:
    """A gauge without labels."""
    return Family(name, MetricKind.GAUGE, sentence, [f" {number(value)}"])


def counter(name: str, sentence: str, samples: Iterable[tuple[str, float]]) -> Family:
    """A family of counters; the text of each sample is its labels. `name` has no `_total`."""
    lines = [f"{TOTAL}{labels} {number(value)}" for labels, value in samples]
    return Family(name, MetricKind.COUNTER, sentence, lines)


def histogram(name: str, sentence: str, samples: Iterable[tuple[str, float]]) -> Family:
    """A family of histograms; the text of each sample is its suffix and labels."""
    return Family(name, MetricKind.HISTOGRAM, sentence, [f"{behind} {number(value)}" for behind, value in samples])


def label_value(text: str) -> str:
    """A label's value, with the three characters escaped that the formats do not allow as they are."""
    if "\\" in text or '"' in text or "\n" in text:
        return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return text


def labels(**values: object) -> str:
    """`{name="value",...}`, in the order given."""
    return "{" + ",".join(f'{name}="{label_value(str(value))}"' for name, value in values.items()) + "}"


def number(value: float) -> str:
    """A sample's value: whole numbers without a point, all others so that they read back as the same number."""
    if isinstance(value, int):
        return str(value)
    if math.isfinite(value):
        return repr(value)
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"


def text_of_family(family: Family, open_metrics: bool) -> str:
    """The lines of a family that has samples."""
    name, kind, sentence, samples = family
    described = name + TOTAL if kind is MetricKind.COUNTER and not open_metrics else name
    escaped = sentence.replace("\\", "\\\\").replace("\n", "\\n")
    about = escaped.replace('"', '\\"') if open_metrics else escaped
    # All samples are joined in one call: a large scrape has hundreds of thousands.
    return f"# HELP {described} {about}\n# TYPE {described} {kind.value}\n{name}" + f"\n{name}".join(samples) + "\n"


def text_of(families: Iterable[Family], open_metrics: bool) -> bytes:
    """The whole exposition; a family without a sample is left out."""
    parts = [text_of_family(family, open_metrics) for family in families if family.samples]
    return "".join([*parts, "# EOF\n" if open_metrics else ""]).encode()


def wants_open_metrics(accept: str) -> bool:
    """Whether a client with this Accept header prefers OpenMetrics to the text format: the one with the higher quality;
    OpenMetrics where both are named with the same one, as Prometheus' own libraries answer."""
    qualities = {"text/plain": 0.0, OPEN_METRICS_NAME: 0.0}
    for part in accept.split(","):
        media, *parameters = (piece.strip().lower() for piece in part.split(";"))
        if media in qualities:
            qualities[media] = max(qualities[media], _quality(parameters))
    return 0 < qualities[OPEN_METRICS_NAME] >= qualities["text/plain"]


def _quality(parameters: Iterable[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name == "q":
            try:
                return min(max(float(value), 0.0), 1.0)
            except ValueError:
                return 0.0
    return 1.0
