"""Which quota holds for a client, by its user and client id: the most specific one of eight levels, as in Kafka.

What clients use is measured together for the parts that the level names: a quota of a user for all client ids of that
user, one of the default user for each user apart. Pure.
"""

import ipaddress
from typing import NamedTuple

from moldau.cluster.state.quotas import CONNECTION, DEFAULT, OF_CLIENTS, Quotas


class Limit(NamedTuple):
    """A quota, and the user and client id whose use counts against it together, None for any."""

    value: float
    user: str | None
    client_id: str | None


class QuotaTable:
    """All quotas of a cluster at one moment."""

    def __init__(self, quotas: Quotas):
        self._limits: dict[str, dict[tuple[str | None, str | None], float]] = {key: {} for key in OF_CLIENTS}
        self._addresses: dict[str, float] = {}
        for entity, values in quotas.items():
            for key, value in values.items():
                if key == CONNECTION and entity.ip is not None:
                    self._addresses[_canonical(entity.ip)] = value
                elif key in self._limits:
                    self._limits[key][entity.user, entity.client_id] = value

    @property
    def limits_addresses(self) -> bool:
        return bool(self._addresses)

    def limit(self, key: str, user: str, client_id: str) -> Limit | None:
        """The quota of that kind for a client."""
        limits = self._limits[key]
        if not limits:
            return None
        for of_user, of_client in (
            (user, client_id),
            (user, DEFAULT),
            (user, None),
            (DEFAULT, client_id),
            (DEFAULT, DEFAULT),
            (DEFAULT, None),
            (None, client_id),
            (None, DEFAULT),
        ):
            value = limits.get((of_user, of_client))
            if value is not None:
                return Limit(value, None if of_user is None else user, None if of_client is None else client_id)
        return None

    def connection_rate(self, address: str) -> float | None:
        """How many connections a second may come from an address."""
        return self._addresses.get(address, self._addresses.get(DEFAULT))


def _canonical(address: str) -> str:
    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        return address
