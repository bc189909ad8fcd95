"""What protects a broker, built from its settings in one place; imported only where any of it is configured.

tls     of the listeners                                              (`transport/listeners.py`)
gate    rights on whole requests, and the authorizer of all others    (`requests/gate.py`, `security/authorizer.py`)
"""

from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.config import BrokerConfig
from moldau.requests.gate import Gate
from moldau.transport.listeners import ListenerTls

_WITH_TLS = ("SSL", "SASL_SSL")


class Guards:
    """`tls`: the TLS of the listeners that have it, by name. Reads files, so it blocks. Raises `ConfigError`."""

    def __init__(self, config: BrokerConfig):
        self._config = config
        self.tls = {
            one.name: ListenerTls(one.name, one.protocol, config)
            for one in config.client_listeners
            if one.protocol in _WITH_TLS
        }

    def gate(self, metadata: MetadataCache) -> Gate:
        """The gate that every request passes; `metadata` is what the broker serves by."""
        config = self._config
        if not config.authorizer_class_name:
            return Gate()
        from moldau.handlers.rights import RIGHTS
        from moldau.requests.requirements import Requirements
        from moldau.security.authorizer import AclAuthorizer

        authorizer = AclAuthorizer(metadata.image, config.privileged, config.allow_everyone_if_no_acl_found)
        metadata.subscribe(authorizer.follow)
        return Gate([Requirements(RIGHTS)], authorizer=authorizer)
