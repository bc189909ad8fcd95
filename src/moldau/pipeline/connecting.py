"""How Spark reaches brokers that want TLS or a login: the options of both that are about security.

The driver and the tasks read the file of `clientConfig` where they run, so that its secrets are in no option, plan or
task. Spark itself hides the values of options whose name or value has `password`, `secret` or `token` in it; secrets
that it would show are refused as options.
"""

import os
from collections.abc import Mapping

from moldau.client.security.brokers import Brokers, settings_in
from moldau.errors import ConfigError
from moldau.pipeline.edges import OptionError

CLIENT_CONFIG = "clientConfig"
KAFKA = "kafka."
_BEGINNINGS = ("enable.ssl.", "https.", "sasl.", "security.", "ssl.")
_SHOWN_BY_SPARK = ("ssl.keystore.key", "ssl.key.pem", "sasl.oauthbearer.config")


def reached(addresses: str, values: Mapping[str, str]) -> str:
    """The addresses with what the options say about their security; `values` have names in lower case. Raises
    `OptionError`."""
    given = about_security({name.removeprefix(KAFKA): v for name, v in values.items() if name.startswith(KAFKA)})
    for name in _SHOWN_BY_SPARK:
        if name in given:
            raise OptionError(
                f"Option {KAFKA}{name} would be shown in Spark's plans: put {name} into a file, and name that by the"
                f" option {CLIENT_CONFIG}."
            )
    file = values.get(CLIENT_CONFIG.lower(), "")
    if not given and not file:
        return addresses
    brokers = Brokers(addresses, given, os.path.abspath(file) if file else "")
    try:
        settings_in(brokers)
    except ConfigError as error:
        raise OptionError(f"Option {CLIENT_CONFIG} names a file of no use: {error}.") from None
    return brokers


def about_security(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings of a client, with Kafka's names, that are about security."""
    return {name: value for name, value in settings.items() if name.startswith(_BEGINNINGS)}
