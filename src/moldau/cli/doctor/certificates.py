"""The certificates that the listeners of a broker's settings would use now, read as its start would read them."""

from moldau.cli.doctor.checks.certificates import CertificateFacts
from moldau.config import BrokerConfig
from moldau.errors import ConfigError
from moldau.transport.listeners import ListenerTls

_WITH_TLS = ("SSL", "SASL_SSL")


def certificate_facts(config: BrokerConfig, now_ms: int) -> list[CertificateFacts]:
    """Those of each listener with TLS. Blocks, since it reads files."""
    facts = []
    for listener in config.client_listeners:
        if listener.protocol in _WITH_TLS:
            dials = listener.name == config.inter_broker_listener
            try:
                tls = ListenerTls(listener.name, listener.protocol, config, dials, lambda: now_ms)
                facts.append(CertificateFacts(listener.name, tls.valid_until_s - now_ms // 1000))
            except ConfigError as failure:
                facts.append(CertificateFacts(listener.name, None, str(failure)))
    return facts
