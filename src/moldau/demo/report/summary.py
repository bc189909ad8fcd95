"""The report's numbers for programs: `summary.json`."""

from typing import Any

from moldau.demo.report.contents import Contents

SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}


def summary_tree(contents: Contents) -> dict[str, Any]:
    """The summary as plain values."""
    stages = [
        {
            "name": stage.name,
            "records": stage.records,
            "seconds": round(stage.seconds, 3),
            "records_per_second": round(stage.records_per_second),
        }
        for stage in contents.stages
    ]
    delays = {name: contents.timeline.delay(share) for name, share in SHARES.items()}
    return {
        "balanced": not contents.differences,
        "differences": list(contents.differences),
        "seconds": round(contents.seconds, 3),
        "topics": {book.topic: book.to_tree() for book in contents.books},
        "stages": stages,
        "loads": len(contents.timeline.commits),
        "delay_seconds": {name: None if value is None else round(value, 3) for name, value in delays.items()},
        "lag_records_max": max((lag.records for lag in contents.timeline.lags()), default=0),
        "bytes": {one.name: one.bytes for one in contents.stored},
    }
