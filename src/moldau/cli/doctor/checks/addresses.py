"""Diagnoses of addresses: where a client connects to first, and where the brokers tell it to go on.

A client asks a bootstrap server for the brokers, and from then on connects to the addresses that these advertise. So
the bootstrap can work while nothing else does. What is seen here is true of the machine that the doctor runs on, and
every sentence names it.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Final, NamedTuple

from moldau.cli.doctor.checks.diagnosis import Diagnosis, Severity

AREA: Final = "addresses"
LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
EVERYWHERE: Final = ("", "0.0.0.0", "::")
_NO_ADDRESS: Final = EVERYWHERE[1:]


class ConnectionAttempt(NamedTuple):
    """A connection that was tried. `addresses`: what the name resolves to. `unresolved`, `unreached`, `unanswered`: why
    it does not resolve, cannot be connected to, or does not answer as a broker; "" if it does. `cluster_id`: of the
    broker that answered, None if unknown."""

    host: str
    port: int
    addresses: tuple[str, ...] = ()
    unresolved: str = ""
    unreached: str = ""
    unanswered: str = ""
    cluster_id: str | None = None

    @property
    def works(self) -> bool:
        return not (self.unresolved or self.unreached or self.unanswered)

    @property
    def is_loopback(self) -> bool:
        return self.host in LOOPBACK or self.host.startswith("127.")

    def __str__(self) -> str:
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


class AddressFacts(NamedTuple):
    """`here` is the name of this machine, `cluster_id` the cluster that the bootstrap servers belong to; `brokers` are
    the advertised addresses by broker."""

    here: str
    bootstrap: Collection[ConnectionAttempt] = ()
    brokers: Mapping[int, ConnectionAttempt] = {}
    cluster_id: str | None = None


def of_addresses(facts: AddressFacts) -> list[Diagnosis]:
    return [*_of_bootstrap(facts), *_of_brokers(facts), *_doubled(facts)]


def _of_bootstrap(facts: AddressFacts) -> Iterator[Diagnosis]:
    none_works = not any(one.works for one in facts.bootstrap)
    severity = Severity.ERROR if none_works else Severity.WARNING
    for one in facts.bootstrap:
        if one.unresolved:
            problem = f"{facts.here} cannot resolve {one.host}, the name of a bootstrap server: {one.unresolved}."
            advice = "Correct the name, or add it to the name service of this machine."
        elif one.unreached:
            problem = f"No connection from {facts.here} to the bootstrap server {_at(one)}: {one.unreached}."
            advice = _why_unreached(one, "a broker runs there and listens on this port")
        elif one.unanswered:
            problem = f"The bootstrap server {one} is connected to, but does not answer as a broker: {one.unanswered}."
            advice = (
                "Name the security of its listener in --command-config (security.protocol=SSL, SASL_SSL or"
                " SASL_PLAINTEXT), or the port of another listener."
            )
        else:
            continue
        yield Diagnosis(severity, AREA, problem, advice)


def _of_brokers(facts: AddressFacts) -> Iterator[Diagnosis]:
    reached = next((one for one in facts.bootstrap if one.works), None)
    for broker, one in facts.brokers.items():
        tells = f"Broker {broker} tells clients to connect to {one}"
        better = reached.host if reached is not None and not reached.is_loopback else "HOST"
        set_it = f"Set advertised.listeners of broker {broker} to NAME://{better}:{one.port} and restart it"
        contained = (
            "; if it runs in a container, give it a listener of its own for clients outside, and publish its port"
        )
        if one.host in _NO_ADDRESS:
            yield Diagnosis(Severity.ERROR, AREA, f"{tells}, which is no address of a machine.", f"{set_it}.")
        elif one.is_loopback and reached is not None and not reached.is_loopback:
            problem = f"{tells}, which is {facts.here} itself there, though it was found at {reached}."
            yield Diagnosis(Severity.ERROR, AREA, problem, f"{set_it}{contained}.")
        elif one.unresolved:
            problem = f"{tells}, and {facts.here} cannot resolve {one.host}: {one.unresolved}."
            yield Diagnosis(Severity.ERROR, AREA, problem, f"{set_it}, with a name that clients resolve{contained}.")
        elif one.unreached:
            problem = f"{tells}, and no connection from {facts.here} to {_at(one)} comes about: {one.unreached}."
            yield Diagnosis(
                Severity.ERROR,
                AREA,
                problem,
                _why_unreached(one, f"advertised.listeners of broker {broker} names its host and port"),
            )
        elif one.unanswered:
            problem = f"{tells}, where no broker answers {facts.here}: {one.unanswered}."
            yield Diagnosis(Severity.ERROR, AREA, problem, f"{set_it}; look what else has that port.")
        elif None not in (one.cluster_id, facts.cluster_id) and one.cluster_id != facts.cluster_id:
            problem = f"{tells}, where a broker of another cluster answers ({one.cluster_id}, not {facts.cluster_id})."
            yield Diagnosis(Severity.ERROR, AREA, problem, f"{set_it}.")


def _doubled(facts: AddressFacts) -> Iterator[Diagnosis]:
    known: dict[tuple[str, int], int] = {}
    for broker, one in facts.brokers.items():
        first = known.setdefault((one.host, one.port), broker)
        if first != broker:
            yield Diagnosis(
                Severity.ERROR,
                AREA,
                f"Brokers {first} and {broker} both tell clients to connect to {one}.",
                "Set advertised.listeners of each to an address of its own.",
            )


def _at(one: ConnectionAttempt) -> str:
    others = [address for address in one.addresses if address != one.host]
    return f"{one} ({', '.join(others)})" if others else str(one)


def _why_unreached(one: ConnectionAttempt, setting: str) -> str:
    if "refused" in one.unreached.lower():
        return f"Look whether {setting}, and whether a container publishes the port."
    return f"Look for a firewall between this machine and {one.host}, and whether {setting}."
