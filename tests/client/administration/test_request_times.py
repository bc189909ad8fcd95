"""Times of requests between two looks at what brokers tell Prometheus."""

import socket
import threading
from typing import NamedTuple

import pytest

from moldau import Admin
from moldau.client.administration.request_times import (
    Buckets,
    RequestRate,
    request_metrics,
    requests_between,
    requests_in,
    traffic_in,
)
from moldau.errors import MoldauError
from moldau.testing import Broker

INF = float("inf")


class Look(NamedTuple):
    at_s: float
    buckets: Buckets
    sums: dict[str, float]


def test_requests_are_read_from_histograms_of_all_brokers() -> None:
    one = (
        'moldau_request_duration_seconds_bucket{api="Fetch",le="0.01"} 98\n'
        'moldau_request_duration_seconds_bucket{api="Fetch",le="0.1"} 100\n'
        'moldau_request_duration_seconds_bucket{api="Fetch",le="+Inf"} 100\n'
        'moldau_request_duration_seconds_sum{api="Fetch"} 2.0\n'
        'moldau_request_duration_seconds_bucket{api="Produce",le="+Inf"} 0\n'
    )
    buckets, sums = requests_in(one + one)
    assert buckets["Fetch"] == {0.01: 196, 0.1: 200, INF: 200} and sums == {"Fetch": 4.0}
    before, now = Look(10.0, {}, {}), Look(12.0, buckets, sums)
    assert requests_between(before, now) == [RequestRate("Fetch", 100.0, pytest.approx(20.0), 100.0)]
    assert requests_between(now, now) == []


def test_a_broker_tells_about_its_requests_and_nothing_else() -> None:
    with Broker(metrics_port=0, metrics_host="127.0.0.1") as broker:
        with Admin(broker.address) as admin:
            admin.create_topic("orders")
        url = broker.metrics_url
        text = request_metrics(url)
    assert "CreateTopics" in requests_in(text)[0]
    assert {line.split("_bucket")[0].split()[-1] for line in text.splitlines() if "_bucket" in line} == {
        "moldau_request_duration_seconds"
    }
    assert "orders" not in text and "kafka_" not in text
    assert traffic_in(text + text) == {"records in": 0, "bytes in": 0, "bytes out": 0} and traffic_in("") == {}
    for wrong, says in (("file:///etc/passwd", "not a URL"), (url, "cannot be read")):
        with pytest.raises(MoldauError, match=says):
            request_metrics(wrong)


def test_a_server_that_speaks_no_http_is_an_error_in_a_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            with server.accept()[0] as connection:
                connection.recv(65_536)
                connection.sendall(b"SSH-2.0-server\r\n")

        answering = threading.Thread(target=answer)
        answering.start()
        with pytest.raises(MoldauError, match=r"/metrics cannot be read: SSH-2\.0-server"):
            request_metrics(f"http://127.0.0.1:{server.getsockname()[1]}/metrics")
        answering.join()
