"""`moldau registry`: run a schema registry, whose schemas are in a topic."""

import asyncio
import gc
from pathlib import Path
from typing import Annotated

from moldau.cli.command_line import Argument, Group, Option
from moldau.cli.options import BOOTSTRAP, BootstrapServer
from moldau.cli.security.passwords import password_in, typed_password
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
    users: Annotated[
        Path | None, Option(metavar="FILE", help="The users that may ask, and their rights; see `registry password`.")
    ] = None,
    tls_certificate: Annotated[
        Path | None, Option(metavar="FILE", help="Listen with TLS: certificates, in PEM.")
    ] = None,
    tls_key_password_file: Annotated[
        str | None, Option(metavar="FILE", help="The password of the key, in the first line of a file.")
    ] = None,
    tls_key: Annotated[Path | None, Option(metavar="FILE", help="The key, if it is in a file of its own.")] = None,
) -> int:
    """
    Run a schema registry with Confluent's REST interface until SIGTERM or Ctrl-C. Needs the extra `registry`.

    When it serves it prints `listening on http://HOST:PORT`. It waits 30 s for brokers that do not answer at the start.
    Schemas are kept in a compacted topic, in the form of Confluent's registry: an existing topic of that registry is
    used. Several instances on one topic share the work: one writes, the others forward changes to it.

    Examples:

      moldau registry start

      moldau registry start -b broker1:9092,broker2:9092 --host 0.0.0.0 --replication-factor 3
    """
    gc.disable()  # what modules make while they are imported stays: to look for garbage takes a tenth of the start
    try:
        from moldau.registry.server import RegistryServer, RegistrySettings
        from moldau.registry.topic import SchemasTopicSettings
    except ImportError as missing:
        raise ConfigError(f"the registry needs {missing.name}: {how_to_install('registry')}") from None
    finally:
        gc.enable()
    log_to_stderr()
    if tls_key is not None and tls_certificate is None:
        raise ConfigError("--tls-key needs --tls-certificate")
    if advertised and not advertised.startswith(("http://", "https://")):
        raise ConfigError(f"--advertised {advertised!r} is not an address such as http://registry-1:8081")
    key_password = "" if tls_key_password_file is None else password_in(tls_key_password_file)
    where = SchemasTopicSettings(topic, replication_factor)
    tls = tls_certificate, tls_key, key_password
    settings = RegistrySettings(host, port, where, advertised.rstrip("/"), users, *tls)
    return asyncio.run(until_signal(RegistryServer(bootstrap_server, settings)))


@app.command()
def password(
    user: Annotated[str, Argument("NAME", help="The user.")],
    password_file: Annotated[
        str | None,
        Option("--password-file", metavar="FILE", help="Read the password from this file; - is the input."),
    ] = None,
) -> None:
    """
    Print the line of a user for the file of `registry start --users`. It has a hash of the password, not the password.

    Examples:

      moldau registry password ann >> users.properties

      echo 'rights.ann=read:*,write:orders-*' >> users.properties
    """
    import os

    from moldau.registry.access_rules import hashed

    if not user or ":" in user or user.split() != [user]:
        raise ConfigError(f"{user!r} is not a name: it may have no colon and no space")
    given = password_in(password_file) if password_file is not None else typed_password(user)
    print(f"user.{user}={hashed(given.encode(), os.urandom(16)).text()}")
