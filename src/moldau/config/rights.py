"""The settings of access rights: which authorizers are understood, and who the super users are."""

from typing import Protocol

from moldau.errors import ConfigError

AUTHORIZERS = (
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "kafka.security.authorizer.AclAuthorizer",
    "kafka.security.auth.SimpleAclAuthorizer",
)
"""Kafka's authorizers, whose rules are the same."""


class RightsConfig(Protocol):
    @property
    def authorizer_class_name(self) -> str: ...
    @property
    def super_users(self) -> str: ...
    @property
    def audit_log_file(self) -> str | None: ...
    @property
    def allow_everyone_if_no_acl_found(self) -> bool: ...


def check_authorizer(config: RightsConfig) -> None:
    """Raises `ConfigError`."""
    super_users(config)
    name = config.authorizer_class_name
    if name and name not in AUTHORIZERS:
        raise ConfigError(
            f"authorizer.class.name {name[:200]!r} is not known here: use {AUTHORIZERS[0]}, which takes access control "
            "lists, or remove it to start without access rights"
        )
    if not name and config.audit_log_file:
        raise ConfigError("audit.log.file is set but authorizer.class.name is not: nothing would be denied")
    if not name and (config.super_users or config.allow_everyone_if_no_acl_found):
        given = "super.users" if config.super_users else "allow.everyone.if.no.acl.found"
        raise ConfigError(
            f"{given} is set but authorizer.class.name is not, so every client could do everything: set "
            f"authorizer.class.name={AUTHORIZERS[0]}, or remove {given}"
        )


def super_users(config: RightsConfig) -> frozenset[str]:
    """The principals of `super.users`. Raises `ConfigError`."""
    names = [name for one in config.super_users.split(";") if (name := one.strip())]
    for name in names:
        if ":" not in name:
            raise ConfigError(
                f"super.users has principals of the form User:NAME, separated by semicolons: {name[:60]!r}"
            )
    return frozenset(names)
