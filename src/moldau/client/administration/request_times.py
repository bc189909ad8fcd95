"""Times of requests by API, and traffic, from what brokers tell Prometheus (docs/metrics.md): rates between two
looks."""

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, Protocol

from moldau.errors import MoldauError

FAMILY: Final = "moldau_request_duration_seconds"
_BUCKET: Final = re.compile(FAMILY + r'_bucket\{.*?api="(\w+)".*?le="([^"]+)".*?\} ([0-9.e+]+)')
_SUM: Final = re.compile(FAMILY + r'_sum\{.*?api="(\w+)".*?\} ([0-9.e+-]+)')
TRAFFIC: Final = {
    "records in": "moldau_traffic_records_in_total",
    "bytes in": "moldau_traffic_bytes_in_total",
    "bytes out": "moldau_traffic_bytes_out_total",
}
"""What is counted of all topics together, and the name of its counter."""
_COUNTER: Final = re.compile(r"^(moldau_traffic_\w+_total) ([0-9.e+]+)", re.MULTILINE)
SLOWEST: Final = 0.99
ANSWER_BYTES_MAX: Final = 64 << 20
ANSWER_S: Final = 5.0
Buckets = Mapping[str, Mapping[float, float]]
"""API -> bound in seconds -> requests that took at most as long."""


class RequestRate(NamedTuple):
    """A row about an API; times in ms. `p99_ms` is the bound of the histogram below which 99 of 100 were."""

    api: str
    requests_per_second: float
    average_ms: float
    p99_ms: float


class RequestLook(Protocol):
    """The counters of all brokers at one moment; `sums` has the seconds of each API's requests together."""

    @property
    def at_s(self) -> float: ...

    @property
    def buckets(self) -> Buckets: ...

    @property
    def sums(self) -> Mapping[str, float]: ...


def requests_between(before: RequestLook, now: RequestLook) -> list[RequestRate]:
    """The APIs that took most time first; those without a request are left out. Pure."""
    took_s = max(now.at_s - before.at_s, 1e-9)
    found: list[tuple[float, RequestRate]] = []
    for api, counts in now.buckets.items():
        was = before.buckets.get(api, {})
        new = {bound: max(0.0, count - was.get(bound, 0.0)) for bound, count in sorted(counts.items())}
        total = new.get(float("inf"), 0.0)
        if total <= 0:
            continue
        spent_s = max(0.0, now.sums.get(api, 0.0) - before.sums.get(api, 0.0))
        p99_s = next(bound for bound, count in new.items() if count >= total * SLOWEST)
        found.append((spent_s, RequestRate(api, total / took_s, spent_s / total * 1000, p99_s * 1000)))
    return [row for _, row in sorted(found, key=lambda one: -one[0])]


def requests_in(text: str) -> tuple[dict[str, dict[float, float]], dict[str, float]]:
    """The histograms and sums of requests in what `/metrics` of brokers says. Pure."""
    buckets: dict[str, dict[float, float]] = {}
    for api, bound, count in _BUCKET.findall(text):
        per_bound = buckets.setdefault(api, {})
        per_bound[float(bound)] = per_bound.get(float(bound), 0.0) + float(count)
    sums: dict[str, float] = {}
    for api, seconds in _SUM.findall(text):
        sums[api] = sums.get(api, 0.0) + float(seconds)
    return buckets, sums


def traffic_in(text: str) -> dict[str, float]:
    """The sums of the counters of `TRAFFIC` in what `/metrics` of brokers says; empty if they have none. Pure."""
    names = {counter: name for name, counter in TRAFFIC.items()}
    sums: dict[str, float] = {}
    for counter, count in _COUNTER.findall(text):
        if name := names.get(counter):
            sums[name] = sums.get(name, 0.0) + float(count)
    return sums


def checked_urls(urls: Iterable[str]) -> list[str]:
    """Raises `MoldauError` unless each is the address of metrics."""
    given = [*urls]
    for url in given:
        if not url.startswith(("http://", "https://")):
            raise MoldauError(f"--metrics {url!r} is not a URL such as http://localhost:9404/metrics")
    return given


def request_metrics(url: str, timeout_s: float = ANSWER_S) -> str:
    """The part of a broker's metrics that is about requests and traffic; a broker of ours looks at no partition for it.
    Blocks, for at most `timeout_s` without a byte. Raises `MoldauError`."""
    (checked,) = checked_urls([url])
    import http.client  # these two import much
    import urllib.request

    try:
        names = "&".join(f"name%5B%5D={name}" for name in (FAMILY, *TRAFFIC.values()))
        asked = f"{checked}{'&' if '?' in checked else '?'}{names}"
        with urllib.request.urlopen(asked, timeout=timeout_s) as answer:
            text: bytes = answer.read(ANSWER_BYTES_MAX)
    except (OSError, ValueError, http.client.HTTPException) as failure:
        why = getattr(failure, "reason", None) or str(failure) or repr(failure)
        raise MoldauError(f"{url} cannot be read: {why}") from None
    return text.decode(errors="replace")
