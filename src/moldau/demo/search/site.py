"""The site: a search box over a few texts, on http.server. Each search becomes a record, partitioned by class of user.

    python -m moldau.demo.search site --bootstrap-server localhost:9092 --port 8000

The page is answered when the record is in the producer's buffer: the log delays no visitor. SIGTERM and SIGINT stop the
site after the records have been delivered. For learning: it is not a server for the open internet.
"""

import html
import logging
import signal
import threading
import uuid
from datetime import UTC, datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from moldau.client.administration.admin import Admin
from moldau.client.producing.delivery import Delivered
from moldau.client.producing.producer import Producer
from moldau.demo.search.searches import CLASSES, TOPIC, WrongSearch, by_class, search_of, to_json
from moldau.errors import ErrorCode, KafkaError, MoldauError
from moldau.net.server import cannot_listen

TEXTS = (
    "The Vltava is the longest river in the Czech Republic.",
    "Smetana wrote a symphonic poem about the river Moldau.",
    "A log is an ordered sequence of records.",
    "Kafka was born in Prague.",
)
PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Search</title>
<form action="/search"><input name="q" value="{keyword}" aria-label="keyword"> <input name="user" value="{user}"
aria-label="user"> <button>Search</button></form>{found}</html>"""
HOST = "127.0.0.1"
REQUEST_SECONDS_MAX = 10

logger = logging.getLogger(__name__)


class Site(ThreadingHTTPServer):
    """The server; its handlers share one producer."""

    daemon_threads = True

    def __init__(self, port: int, producer: Producer):
        try:
            super().__init__((HOST, port), SearchHandler)
        except OSError as error:
            raise MoldauError(f"{cannot_listen(error, HOST, port).strerror}: --port chooses another") from None
        self.producer = producer


class SearchHandler(BaseHTTPRequestHandler):
    """Answers `/` and `/search?q=KEYWORD&user=NAME`."""

    server: Site
    timeout = REQUEST_SECONDS_MAX

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        if address.path == "/":
            self._answer(HTTPStatus.OK, PAGE.format(keyword="", user="guest", found=""))
        elif address.path == "/search":
            given = parse_qs(address.query)
            self._search(given.get("q", [""])[0], given.get("user", ["guest"])[0])
        else:
            self._answer(HTTPStatus.NOT_FOUND, "There is no such page.")

    def _search(self, keyword: str, user: str) -> None:
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        try:
            search = search_of(uuid.uuid4().hex, user, keyword, time)
        except WrongSearch as wrong:
            self._answer(HTTPStatus.BAD_REQUEST, html.escape(str(wrong)))
            return
        try:
            self.server.producer.send(TOPIC, to_json(search), search.user, on_delivery=_log_failure)
        except MoldauError as failure:
            logger.error("a search was not logged: %s", failure)
        matching = [text for text in TEXTS if search.keyword in text.lower()] or ["Nothing was found."]
        listed = "".join(f"<p>{html.escape(text)}</p>" for text in matching)
        page = PAGE.format(keyword=html.escape(search.keyword), user=html.escape(search.user), found=listed)
        self._answer(HTTPStatus.OK, page)

    def _answer(self, status: HTTPStatus, page: str) -> None:
        body = page.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Searches are logged in the topic, not on standard error."""


def _log_failure(error: MoldauError | None, _: Delivered | None) -> None:
    if error is not None:
        logger.error("a search was not logged: %s", error)


def create_topic(bootstrap: str) -> None:
    """Create the topic, with a partition for each class, unless it exists."""
    with Admin(bootstrap) as admin:
        try:
            admin.create_topic(TOPIC, partitions=len(CLASSES), replication_factor=1)
        except KafkaError as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise


def run(bootstrap: str, port: int) -> None:
    """Serve until a signal comes; then deliver what is buffered."""
    create_topic(bootstrap)
    with (
        Producer(bootstrap, partitioner=by_class, audit_topic="_audit", client_id="search-site") as producer,
        Site(port, producer) as site,
    ):
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: threading.Thread(target=site.shutdown).start())
        print(f"listening on http://{HOST}:{site.server_port}/", flush=True)
        site.serve_forever(poll_interval=0.1)
