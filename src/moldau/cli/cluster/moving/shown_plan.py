"""The effect of a plan on each broker, before and after it, for people and for `--json`. Pure."""

from typing import Any

from moldau.cli.cluster.moving.cluster_layout import ClusterLayout, MovePlan
from moldau.names import counted

_UNITS = ("B", "KB", "MB", "GB", "TB", "PB")


def size_text(size: float) -> str:
    """Bytes with three digits, in powers of 1,000."""
    for unit in _UNITS:
        if size < 1000 or unit == _UNITS[-1]:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.3g} {unit}"
        size /= 1000
    raise AssertionError("the last unit takes any size")


def summary(layout: ClusterLayout, plan: MovePlan) -> dict[str, Any]:
    """What `--json` prints of a plan."""
    after, copies = layout.after(plan), layout.copies(plan)
    held = (layout.bytes_by_broker(), after.bytes_by_broker())
    replicas = (layout.replicas_by_broker(), after.replicas_by_broker())
    leaders = (layout.leaders_by_broker(), after.leaders_by_broker())
    known = sorted({*layout.brokers, *replicas[0], *replicas[1]})
    moved = [tp for tp in plan if {*plan[tp]} != {*layout.partitions[tp].replicas}]
    return {
        "partitions_moved": len(moved),
        "partitions_reordered": len(plan) - len(moved),
        "bytes_copied": sum(copies.values()),
        "brokers": [
            {
                "broker": one,
                "rack": layout.brokers[one].rack if one in layout.brokers else None,
                "running": one in layout.brokers,
                "bytes": held[0][one],
                "bytes_after": held[1][one],
                "replicas": replicas[0][one],
                "replicas_after": replicas[1][one],
                "preferred_leader_of": leaders[0][one],
                "preferred_leader_of_after": leaders[1][one],
            }
            for one in known
        ],
        "plan": [
            {
                "topic": tp.topic,
                "partition": tp.partition,
                "replicas": [*layout.partitions[tp].replicas],
                "replicas_after": [*plan[tp]],
                "bytes_copied": copies[tp],
            }
            for tp in sorted(plan)
        ],
    }


def sentence(shown: dict[str, Any]) -> str:
    moved, reordered = shown["partitions_moved"], shown["partitions_reordered"]
    if not moved and not reordered:
        return "nothing has to move"
    moves, gets = "moves" if moved == 1 else "move", "gets" if reordered == 1 else "get"
    parts = [f"{counted(moved, 'partition')} {moves}, {size_text(shown['bytes_copied'])} to copy"]
    if reordered:
        parts.append(f"{counted(reordered, 'partition')} {gets} another preferred leader")
    return "; ".join(parts)


def rows(shown: dict[str, Any]) -> list[list[Any]]:
    """The table of brokers: each column before and after."""
    return [
        [
            f"{one['broker']}{'' if one['running'] else ' (down)'}",
            one["rack"],
            _both(size_text(one["bytes"]), size_text(one["bytes_after"])),
            _both(one["replicas"], one["replicas_after"]),
            _both(one["preferred_leader_of"], one["preferred_leader_of_after"]),
        ]
        for one in shown["brokers"]
    ]


HEADERS = ("BROKER", "RACK", "BYTES", "REPLICAS", "PREFERRED LEADER OF")


def _both(before: object, after: object) -> str:
    return f"{before} -> {after}" if before != after else str(before)
