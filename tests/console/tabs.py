"""What the open pages of a browser ask a console for, again and again: `tabs.py URL SECONDS`. It prints which share of
the requests that were due it could make."""

import sys
import time
from urllib.request import Request, urlopen

EACH_S = {
    "/health": 10, "/pulse": 2, "/pulse/throughput": 2, "/topic-rows": 15, "/group-rows": 10, "/topics/topic-00042": 5,
    "/topics/topic-00042/pulse": 2, "/groups/group-0042": 3, "/topics/topic-00042/groups": 10,
}  # fmt: skip
"""Path -> seconds between two requests, as in the templates and in `plots.js`."""


def main(url: str, seconds: float) -> None:
    began_s = time.monotonic()
    due, made = dict.fromkeys(EACH_S, began_s), 0
    while True:
        path = min(due, key=lambda one: due[one])
        if due[path] >= began_s + seconds or time.monotonic() >= began_s + seconds:
            break
        time.sleep(max(due[path] - time.monotonic(), 0))
        due[path] += EACH_S[path]
        with urlopen(Request(url + path, headers={"HX-Request": "true"}), timeout=60) as part:
            part.read()
        made += 1
    print(made / sum(-(-seconds // each_s) for each_s in EACH_S.values()))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
