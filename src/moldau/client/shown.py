"""What clients show of themselves as text (`repr`): which client, its name and brokers, and what it is doing."""

from collections.abc import Iterable

from moldau.client.settings import ClientSettings

SHOWN = 5


def shown(kind: str, settings: ClientSettings, *states: str) -> str:
    """`<moldau.Producer 'shop' at localhost:9092, 1 record waiting>`; states that are empty are left out."""
    of = ", ".join([f"{settings.client_id!r} at {settings.brokers_text}", *filter(None, states)])
    return f"<moldau.{kind} {of}>"


def some(names: Iterable[object]) -> str:
    """The first names of several, and how many more there are."""
    texts = [str(name) for name in names]
    more = len(texts) - SHOWN
    return ", ".join(texts[:SHOWN]) + (f" and {more:,} more" if more > 0 else "")
