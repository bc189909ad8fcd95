"""`ApiTimes`: times of requests by API and traffic, from the brokers' metrics, shared by all pages that show them."""

import asyncio
from collections.abc import Callable, Iterable
from typing import NamedTuple

from moldau.client.administration.request_times import (
    FAMILY,
    Buckets,
    RequestRate,
    checked_urls,
    request_metrics,
    requests_between,
    requests_in,
    traffic_in,
)
from moldau.errors import MoldauError

EACH_S = 2.0
"""Brokers are asked this often at most, however many pages are open."""
FORGOTTEN_S = 30.0
"""A look that is older is no beginning of a rate: nobody has watched since."""
SHOWN = 5
LASTS = 0.95
"""What is left of a measure at the next look: those that are plotted do not change with each."""


class CountersLook(NamedTuple):
    """The counters of all brokers that answered; `problems` has a sentence for each other one."""

    at_s: float
    buckets: Buckets
    sums: dict[str, float]
    traffic: dict[str, float]
    answered: frozenset[str]
    problems: list[str]


class ApiTimes:
    """`urls` are those of brokers' metrics; `now_s` is a monotonic clock. Belongs to one loop. Raises `MoldauError` for
    an address that is none."""

    def __init__(self, urls: Iterable[str], now_s: Callable[[], float]):
        self._urls = checked_urls(urls)
        self._now_s = now_s
        self._asking = asyncio.Lock()
        self._latest: CountersLook | None = None
        self.rates: list[RequestRate] = []
        """Those between the latest two looks; empty before there are two."""
        self.traffic: dict[str, float] = {}
        """Records and bytes per second between them, of all topics and brokers together."""
        self._spent: dict[str, float] = {}
        """API -> the time that its requests took together, the later the more it counts."""

    def __bool__(self) -> bool:
        return bool(self._urls)

    @property
    def problems(self) -> list[str]:
        """Why brokers did not answer at the latest look."""
        return [] if self._latest is None else self._latest.problems

    async def look(self) -> None:
        """Ask the brokers, unless somebody just has."""
        async with self._asking:
            before = self._latest
            if before is not None and self._now_s() - before.at_s < EACH_S * 0.9:
                return
            now = self._latest = await self._asked()
            # Sums over other brokers than before would have steps that are no requests.
            follows = before is not None and now.at_s - before.at_s < FORGOTTEN_S and now.answered == before.answered
            self.rates = requests_between(before, now) if before is not None and follows else []
            self.traffic = {}
            if before is not None and follows:
                took_s = max(now.at_s - before.at_s, 1e-9)
                for name, count in now.traffic.items():
                    self.traffic[name] = round(max(count - before.traffic.get(name, count), 0.0) / took_s, 1)
            spent = {rate.api: rate.requests_per_second * rate.average_ms for rate in self.rates}
            for api in {*self._spent, *spent}:
                self._spent[api] = LASTS * self._spent.get(api, 0.0) + spent.get(api, 0.0)

    async def _asked(self) -> CountersLook:
        texts, problems, answered = [], [], set()
        found = await asyncio.gather(
            *(asyncio.to_thread(request_metrics, url) for url in self._urls), return_exceptions=True
        )
        for url, text in zip(self._urls, found, strict=True):
            if isinstance(text, str):
                texts.append(text)
                answered.add(url)
                if FAMILY not in text:
                    problems.append(f"{url} has no {FAMILY}: it is not the metrics of a broker of Moldau")
            elif isinstance(text, MoldauError):
                problems.append(str(text))
            else:
                raise text
        text = "\n".join(texts)
        return CountersLook(self._now_s(), *requests_in(text), traffic_in(text), frozenset(answered), problems)

    def series(self) -> dict[str, float]:
        """Numbers for plots, of the APIs that have taken most time of late: `average Produce` and `p99 Produce`, in
        ms."""
        most = sorted(self._spent, key=lambda api: (-self._spent[api], api))[:SHOWN]
        numbers = {}
        for rate in self.rates:
            if rate.api in most:
                numbers[f"average {rate.api}"] = round(rate.average_ms, 3)
                if rate.p99_ms != float("inf"):  # JSON has no such number
                    numbers[f"p99 {rate.api}"] = round(rate.p99_ms, 3)
        return numbers
