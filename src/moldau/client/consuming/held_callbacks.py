"""The functions that an application has left with a consumer: listeners of rebalances, and callbacks of commits.

They may refer to the consumer, as a listener that commits does. The consumer's thread would keep such a consumer for
ever if it held them. So the consumer itself holds them, and its thread has a `StandIn` of each: once nobody holds the
consumer, a stand-in does nothing.
"""

import weakref
from collections.abc import Callable
from typing import Any


class HeldCallbacks:
    """Those of one consumer. A function is let go of with its stand-in."""

    def __init__(self) -> None:
        self._held: weakref.WeakKeyDictionary[StandIn, Callable[..., Any]] = weakref.WeakKeyDictionary()

    def stand_in(self, function: Any) -> Any:
        """What the consumer's thread gets in place of a function. What cannot be called is returned as it is."""
        if not callable(function):
            return function
        made = StandIn(self)
        self._held[made] = function
        return made

    def call(self, stand_in: "StandIn", *arguments: Any) -> Any:
        """Call the function that this one stands for."""
        return self._held[stand_in](*arguments)


class StandIn:
    """Calls a function as long as somebody holds the consumer that it was left with."""

    def __init__(self, callbacks: HeldCallbacks):
        self._callbacks = weakref.ref(callbacks)

    def __call__(self, *arguments: Any) -> Any:
        callbacks = self._callbacks()
        return None if callbacks is None else callbacks.call(self, *arguments)
