"""`moldau groups`: list, describe, delete, delete-offsets, reset-offsets."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from moldau.cli.command_line import Argument, Group, Option, UsageError
from moldau.cli.options import BOOTSTRAP, BootstrapServer, Json, reachable
from moldau.cli.output import done_one_by_one, note, print_json, print_table
from moldau.client.administration.admin import Admin, GroupDescription
from moldau.client.administration.group_offsets import parse_partitions
from moldau.errors import ConfigError, ErrorCode, KafkaError
from moldau.names import TopicPartition, counted

if TYPE_CHECKING:
    from moldau.client.lag import Lag

app = Group("groups", {"reset-offsets": "moldau.cli.groups.reset:reset_offsets"})


@app.command("list")
def list_groups(bootstrap_server: BootstrapServer = BOOTSTRAP, as_json: Json = False) -> None:
    """
    List the consumer groups, their types (classic, or consumer: the consumer protocol) and their states.

    Examples:

      moldau groups list
    """
    with Admin(reachable(bootstrap_server)) as admin:
        groups = admin.list_groups()
    if as_json:
        listed = [
            {"group": g.group_id, "type": g.type, "state": g.state, "protocol_type": g.protocol_type} for g in groups
        ]
        print_json(listed)
    else:
        rows = [[g.group_id, g.type, g.state, g.protocol_type] for g in groups]
        print_table(["GROUP", "TYPE", "STATE", "PROTOCOL TYPE"], rows)


@app.command()
def describe(
    groups: Annotated[list[str] | None, Argument("[GROUP...]", help="Groups, unless --all is given.")] = None,
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    all_groups: Annotated[bool, Option("--all", help="All groups.")] = False,
    as_json: Json = False,
) -> None:
    """
    Describe groups: members, their partitions, committed offsets, ends and lag: records that were not read, and the
    seconds since the oldest of them was written. - stands for what is not known.

    Examples:

      moldau groups describe billing

      moldau groups describe billing --json
    """
    if bool(groups) == all_groups:
        raise UsageError("give groups, or --all")
    with Admin(reachable(bootstrap_server)) as admin:
        described = [
            _description(admin, group) for group in groups or sorted(one.group_id for one in admin.list_groups())
        ]
    if as_json:
        print_json(described)
        return
    for number, group in enumerate(described):
        members = len(group["members"])
        what = f"{group['group']}  {group['type']}  {group['state']}  {members} member{'s'[: members != 1]}"
        print(f"{chr(10) if number else ''}{what}")
        headers = ["TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "SECONDS", "MEMBER", "CLIENT", "HOST"]
        print_table(headers, [list(p.values()) for p in group["partitions"]])
        idle = [m for m in group["members"] if not m["partitions"]]
        for member in idle:
            print(f"member {member['member_id']} of client {member['client_id']} has no partitions")


def _description(admin: Admin, group_id: str) -> dict[str, Any]:
    committed = admin.group_offsets(group_id)
    try:
        group = admin.describe_group(group_id)
    except KafkaError as failure:
        if failure.code != ErrorCode.GROUP_ID_NOT_FOUND or not committed:
            raise
        group = GroupDescription(group_id, "classic", "Empty", "", [])
    members = group.members
    owners = {tp: m for m in members for tp in m.partitions}
    offsets = {tp: committed[tp].offset if tp in committed else None for tp in sorted({*committed, *owners})}
    lags = _lags(admin, offsets)
    partitions = []
    for tp, offset in offsets.items():
        lag, owner = lags.get(tp), owners.get(tp)
        partitions.append(
            {
                "topic": tp.topic,
                "partition": tp.partition,
                "committed": offset,
                "end": lag.end if lag else None,
                "lag": lag.records if lag else None,
                "lag_seconds": lag.seconds if lag else None,
                "member_id": owner.member_id if owner else None,
                "client_id": owner.client_id if owner else None,
                "host": owner.client_host if owner else None,
            }
        )
    described = [
        {
            "member_id": m.member_id,
            "client_id": m.client_id,
            "host": m.client_host,
            "partitions": [{"topic": tp.topic, "partition": tp.partition} for tp in m.partitions],
        }
        for m in members
    ]
    return {
        "group": group_id,
        "type": group.type,
        "state": group.state,
        "members": described,
        "partitions": partitions,
    }


def _lags(admin: Admin, offsets: Mapping[TopicPartition, int | None]) -> "dict[TopicPartition, Lag]":
    """Those of the partitions whose topics still exist, and that have a leader."""
    existing = admin.list_topics(internal=True)
    led = {}
    for tp, offset in offsets.items():
        topic = existing.get(tp.topic)
        if topic is None or tp.partition not in topic.partitions:
            continue
        if topic.partitions[tp.partition].leader >= 0:
            led[tp] = offset
        else:
            note(f"{tp} has no leader: its end and its lag are not known")
    return admin.lags(led) if led else {}


@app.command()
def delete(
    groups: Annotated[list[str], Argument("GROUP...", help="One or more groups without members.")],
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """
    Delete groups that have no members, with their committed offsets.

    Examples:

      moldau groups delete billing
    """
    with (
        done_one_by_one("deleted", "deleted group {}", as_json) as deleted,
        Admin(reachable(bootstrap_server)) as admin,
    ):
        for group in groups:
            admin.delete_group(group)
            deleted.append(group)


@app.command("delete-offsets")
def delete_offsets(
    group: Annotated[str, Argument("GROUP", help="The group.")],
    topics: Annotated[list[str], Argument("TOPIC[:PARTITION,...]...", help="Topics, or some of their partitions.")],
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """
    Delete the committed offsets of a group, for topics to which none of its members subscribes.

    Examples:

      moldau groups delete-offsets billing old-orders

      moldau groups delete-offsets billing orders:7
    """
    asked = [parse_partitions(text) for text in topics]
    with Admin(reachable(bootstrap_server)) as admin:
        committed = admin.group_offsets(group)
        wanted = {
            tp: None
            for name, numbers in asked
            for tp in committed
            if tp.topic == name and tp.partition in (numbers or [tp.partition])
        }
        if not wanted:
            raise ConfigError(f"group {group} has committed nothing there")
        admin.delete_group_offsets(group, wanted)
    note(f"group {group} has no offsets of {counted(len(wanted), 'partition')} any more")
    if as_json:
        print_json({"group": group, "deleted": [{"topic": tp.topic, "partition": tp.partition} for tp in wanted]})
