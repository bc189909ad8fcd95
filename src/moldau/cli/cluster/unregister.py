"""`moldau cluster unregister`: the cluster forgets a broker that has left for good."""

from typing import Annotated

from moldau.cli.command_line import Argument
from moldau.cli.options import BOOTSTRAP, BootstrapServer, Json, reachable
from moldau.cli.output import note, print_json
from moldau.client.administration.admin import Admin
from moldau.names import counted


def unregister(
    broker: Annotated[int, Argument("BROKER", help="A broker that was stopped and will not come back.")],
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """
    Forget a broker that has left for good: nothing waits for it any more.

    It stays among the replicas of its partitions: `moldau cluster replace-broker`, or `drain-broker`, moves them to
    others, before or afterwards. A broker that is running is refused.

    Examples:

      moldau cluster unregister 3
    """
    with Admin(reachable(bootstrap_server)) as admin:
        admin.unregister_broker(broker)
        known = admin.list_topics(internal=True).values()
        left = sum(broker in part.replicas for topic in known for part in topic.partitions.values())
    if as_json:
        print_json({"unregistered": broker, "replicas": left})
    else:
        print(f"broker {broker} is forgotten")
    if left:
        kept = f"it is still a replica of {counted(left, 'partition')}"
        note(f"{kept}: `moldau cluster drain-broker {broker}` moves them")
