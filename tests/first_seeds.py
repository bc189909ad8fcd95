"""Where the search for a bug that is put in on purpose begins: at the seed that showed it when it was last looked for.

So one world or one story finds it again. When the code has changed, the search goes on from there, and
`python -m tests.first_seeds [WORDS]` looks again for the bugs with these words in their names, and writes down where.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path

FILE = Path(__file__).with_name("first_seeds.json")
KNOWN: dict[str, dict[str, int]] = json.loads(FILE.read_text())
"""By family (coordinators, clusters, logs) and name."""


def first_seed(family: str, name: str, usual: int) -> int:
    return KNOWN.get(family, {}).get(name, usual)


def main() -> int:
    from tests.crash_points import mutations as logs
    from tests.worlds import cluster_bugs
    from tests.worlds import mutations as coordinators

    families: dict[str, tuple[list[str], Callable[[str], tuple[int, str] | None]]] = {
        "coordinators": (list(coordinators.MUTATIONS), coordinators.found),
        "clusters": (list(cluster_bugs.BUGS), cluster_bugs.found),
        "logs": (list(logs.MUTATIONS), logs.found),
    }
    words, missed = " ".join(sys.argv[1:]), 0
    for family, (names, found) in families.items():
        known = KNOWN.setdefault(family, {})
        for name in known.keys() - set(names):
            del known[name]
        for name in (name for name in names if words in name):
            seen = found(name)
            missed += seen is None
            print(f"{family}: {name}: {f'seed {seen[0]}: {seen[1]}' if seen else 'NOT FOUND'}", flush=True)
            if seen:
                known[name] = seen[0]
            FILE.write_text(json.dumps(KNOWN, indent=1, sort_keys=True) + "\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
