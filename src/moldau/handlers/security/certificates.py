"""The certificates of a running broker's listeners: used anew when their files change, or the settings that name them.

An alteration of a setting is answered once the new files are in use, and refused if they cannot be. In a cluster this
broker can refuse only what it is asked itself; of an alteration by way of another broker it says in its log that it
keeps the old ones.
"""

import logging
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from moldau.cluster.state.image import Image
from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.config import BrokerConfig
from moldau.errors import ConfigError
from moldau.names import counted
from moldau.runtime import Runtime
from moldau.transport.listeners import ListenerTls
from moldau.transport.reloading import FileWatch

log = logging.getLogger(__name__)
AHEAD_DAYS = 14
"""The log warns of a certificate that ends within this time."""
LOOKED_AT_MS = 12 * 3_600_000
_DAY_S = 86_400


class Certificates:
    """`config` has the settings that `tls` was made from."""

    def __init__(self, tls: Mapping[str, ListenerTls], config: BrokerConfig, metadata: MetadataCache, runtime: Runtime):
        self._tls = tls
        self._config = config
        self._metadata = metadata
        self._runtime = runtime
        self._changes = metadata.image.broker_overrides
        self._watches = [
            FileWatch(partial(_files, one), partial(self._reload, one), runtime, one.seen) for one in tls.values()
        ]

    async def start(self) -> None:
        """Files that were set while the broker ran before are in use when it returns. Raises `ConfigError`."""
        config = self._metadata.config
        if config.own_settings != self._config.own_settings:
            for one in self._tls.values():
                await self._runtime.run(partial(one.reload, config, is_start=True))
        self._metadata.subscribe(self._follow)
        self._metadata.checks.append(self._check)
        for watch in self._watches:
            watch.start()

    async def stop(self) -> None:
        for watch in self._watches:
            await watch.stop()

    def _check(self, config: BrokerConfig) -> None:
        """Raises `ConfigError` if a listener could not use the files of these settings."""
        for one in self._tls.values():
            one.check(config)

    def _follow(self, image: Image, _: Sequence[str]) -> Coroutine[Any, Any, None] | None:
        if image.broker_overrides is self._changes:
            return None
        self._changes = image.broker_overrides
        return self._reload_all()

    async def _reload_all(self) -> None:
        for one in self._tls.values():
            await self._runtime.run(partial(self._reload, one))

    def _reload(self, one: ListenerTls) -> None:
        try:
            one.reload(self._metadata.config)
        except ConfigError as error:
            log.warning("%s. Those before stay in use until the files or the settings are changed again", error)
        else:
            log.info("the listener %s uses the certificates in its files as they are now", one.name)


def tell_of_ends(tls: Iterable[ListenerTls], now_ms: int) -> None:
    """Warn of certificates that have ended, or soon will."""
    for one in tls:
        left_s = one.valid_until_s - now_ms // 1000
        if left_s <= 0:
            line = "the certificate of the listener %s has expired: clients refuse it; put a new one into its file"
            log.warning(line, one.name)
        elif left_s < AHEAD_DAYS * _DAY_S:
            line = "the certificate of the listener %s expires in %s: put a new one into its file"
            log.warning(line, one.name, _days(left_s))


def _days(left_s: int) -> str:
    return counted(left_s // _DAY_S, "day") if left_s >= _DAY_S else "less than a day"


def _files(one: ListenerTls) -> Sequence[Path]:
    return one.files
