"""`moldau registry`: run a schema registry, whose schemas are in a topic."""

import asyncio
from typing import Annotated

from moldau.cli.command_line import Group, Option
from moldau.cli.options import BOOTSTRAP, BootstrapServer, reachable
from moldau.cli.until_signal import until_signal
from moldau.errors import ConfigError
from moldau.names import how_to_install
from moldau.notices import log_to_stderr

app = Group("registry")


@app.command()
def start(
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    host: Annotated[str, Option(help="The host to listen on.")] = "localhost",
    port: Annotated[int, Option(min=0, max=65_535, help="The port to listen on; 0 takes a free one.")] = 8081,
    topic: Annotated[str, Option(help="The topic with the schemas; it is created if it does not exist.")] = "_schemas",
    replication_factor: Annotated[
        int, Option(min=-1, help="The replicas of a new topic; -1 is the broker's default.")
    ] = -1,
    advertised: Annotated[
        str, Option(metavar="URL", help="Where other instances reach this one; by default http://HOST:PORT.")
    ] = "",
) -> int:
    """
    Run a schema registry with Confluent's REST interface until it is told to stop. Needs the extra `registry`.

    When it serves it prints `listening on http://HOST:PORT`. Schemas are kept in a compacted topic, in the form of
    Confluent's registry: a topic of theirs is taken over. Several instances on one topic share the work: one writes,
    the others forward changes to it. SIGTERM and Ctrl-C stop it.

    Examples:

      moldau registry start

      moldau registry start -b broker1:9092,broker2:9092 --host 0.0.0.0 --replication-factor 3
    """
    try:
        from moldau.registry.server import RegistryServer, RegistrySettings
        from moldau.registry.topic import SchemasTopicSettings
    except ImportError as missing:
        raise ConfigError(f"the registry needs {missing.name}: {how_to_install('registry')}") from None
    log_to_stderr()
    if advertised and not advertised.startswith(("http://", "https://")):
        raise ConfigError(f"--advertised {advertised!r} is not an address such as http://registry-1:8081")
    settings = RegistrySettings(host, port, SchemasTopicSettings(topic, replication_factor), advertised.rstrip("/"))
    return asyncio.run(until_signal(RegistryServer(reachable(bootstrap_server), settings)))
