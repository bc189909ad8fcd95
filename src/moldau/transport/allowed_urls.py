"""Which URLs OAUTHBEARER may ask: a list in the environment, which those who write settings cannot change.

It is what Kafka's system property `org.apache.kafka.sasl.oauthbearer.allowed.urls` is: a job that is started with the
settings of others reads neither files nor servers that its operator has not listed (CVE-2025-27817).
"""

import os

from moldau.errors import ConfigError

VARIABLE = "MOLDAU_OAUTHBEARER_ALLOWED_URLS"


def check_allowed(setting: str, url: str) -> None:
    """Raises `ConfigError` for a URL that the list has not letter by letter. Without the variable all are allowed."""
    allowed = os.environ.get(VARIABLE)
    if allowed is not None and url not in (one.strip() for one in allowed.split(",")):
        raise ConfigError(f"{setting}={url!r} is not among the URLs that the environment variable {VARIABLE} allows")
