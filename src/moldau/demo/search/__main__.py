"""`python -m moldau.demo.search site` runs the site, `... analyse` prints what was searched for."""

import argparse
import sys

from moldau.demo.search.analysis import activity, searches_of, top_keywords
from moldau.demo.search.site import run
from moldau.errors import MoldauError
from moldau.pipeline.session import errors_in_a_sentence, own_session

ROWS_SHOWN = 1_000
PORT_MAX = 65_535


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m moldau.demo.search", description="The worked example.")
    parser.add_argument("what", choices=("site", "analyse"))
    parser.add_argument("--bootstrap-server", "-b", default="localhost:9092")
    parser.add_argument("--port", type=int, default=8000, help="the site's port; 0 for any free one")
    parser.add_argument("--period", default="1 hour", help="the length of a period, such as '10 minutes'")
    given = parser.parse_args()
    if not 0 <= given.port <= PORT_MAX:
        parser.error(f"--port must be 0 to {PORT_MAX}, not {given.port}")
    try:
        if given.what == "site":
            run(given.bootstrap_server, given.port)
        else:
            analyse(given.bootstrap_server, given.period)
    except (MoldauError, OSError) as error:
        print(f"error: {getattr(error, 'strerror', None) or error}", file=sys.stderr)
        return 1
    return 0


def analyse(bootstrap: str, period: str) -> None:
    """Print the activity of each class and its three most frequent keywords in each period. Raises `MoldauError`."""
    with own_session("search log") as spark, errors_in_a_sentence():
        searches = searches_of(spark, bootstrap, stream=False)
        activity(searches, period).orderBy("window", "class").show(ROWS_SHOWN, truncate=False)
        ranked = top_keywords(searches, period, k=3).orderBy("window", "class", "rank")
        ranked.show(ROWS_SHOWN, truncate=False)


if __name__ == "__main__":
    sys.exit(main())
