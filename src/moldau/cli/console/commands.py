"""`moldau console`: run the web console."""

import asyncio
from pathlib import Path
from typing import Annotated

from moldau.cli.beside.console_extra import needed
from moldau.cli.command_line import Option
from moldau.cli.options import BOOTSTRAP, BootstrapServer, CommandProperty, client_settings, reachable
from moldau.cli.security.passwords import password_in
from moldau.cli.until_signal import until_signal
from moldau.errors import ConfigError
from moldau.notices import log_to_stderr

Masks = Annotated[
    list[str] | None,
    Option(
        metavar="TOPICS:WHAT",
        help="Hide a part of records: key, value, header:NAME or $.path of JSON values; repeatable.",
    ),
]
Metrics = Annotated[
    list[str] | None,
    Option("--metrics", metavar="URL", help="A broker's /metrics, to plot times of requests; repeatable."),
]


def console(
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    host: Annotated[str, Option(help="The host to listen on.")] = "localhost",
    port: Annotated[int, Option(min=0, max=65_535, help="The port to listen on; 0 takes a free one.")] = 8090,
    name: Annotated[
        list[str] | None,
        Option(metavar="HOST", help="A further name that browsers reach it by, as behind a proxy; repeatable."),
    ] = None,
    read_only: Annotated[bool, Option(help="Refuse every change.")] = False,
    mask: Masks = None,
    schema_registry: Annotated[
        str, Option(metavar="URL", help="Decode and encode records by this schema registry.")
    ] = "",
    metrics: Metrics = None,
    tls_certificate: Annotated[
        Path | None, Option(metavar="FILE", help="Listen with TLS: certificates, in PEM.")
    ] = None,
    tls_key: Annotated[Path | None, Option(metavar="FILE", help="The key, if it is in a file of its own.")] = None,
    tls_key_password_file: Annotated[
        str | None, Option(metavar="FILE", help="The password of the key, in the first line of a file.")
    ] = None,
    command_property: CommandProperty = None,
) -> int:
    """
    Run the web console until SIGTERM or Ctrl-C. Needs the extra `console`.

    When it serves it prints `listening on http://HOST:PORT`. Where the brokers have logins (security.protocol=SASL_SSL
    or SASL_PLAINTEXT in --command-config), each user logs in with a name and password of the cluster and may do there
    what the cluster allows; otherwise the console is open to all who reach it, as the brokers are.

    Examples:

      moldau console

      moldau console -b broker1:9092,broker2:9092 --read-only --mask 'orders*:$.customer.email'

      moldau console --schema-registry http://localhost:8081 --metrics http://localhost:9404/metrics

      moldau console -b broker1:9093 --command-config client.properties --host 0.0.0.0 --tls-certificate console.pem
    """
    needed()
    from moldau.client.registry.schema_registry import SchemaRegistry
    from moldau.console.server import ConsoleServer, users_log_in
    from moldau.console.settings import ConsoleSettings
    from moldau.http.serving import TlsFiles

    log_to_stderr()
    if tls_key is not None and tls_certificate is None:
        raise ConfigError("--tls-key needs --tls-certificate")
    key_password = "" if tls_key_password_file is None else password_in(tls_key_password_file)
    client = client_settings(bootstrap_server, command_property, {})
    tls = TlsFiles(tls_certificate, tls_key, key_password)
    registry = SchemaRegistry(schema_registry) if schema_registry else None
    settings = ConsoleSettings(
        client, host, port, tuple(name or ()), read_only, tls, tuple(mask or ()), registry, tuple(metrics or ())
    )
    if not users_log_in(client):
        reachable(bootstrap_server)
    return asyncio.run(until_signal(ConsoleServer(settings)))
