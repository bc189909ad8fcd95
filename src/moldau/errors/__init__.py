"""Moldau's exceptions, by the names that programs catch them with: `except moldau.errors.TopicAlreadyExists`.

`bases` has those that the others derive from, `kafka` those of Kafka's error codes, `clients` those that our clients
find by themselves. An exception names this module as its own, so that a traceback says where it is imported from.
"""

from moldau.error_codes import ErrorCode as ErrorCode
from moldau.errors.bases import *  # noqa: F403
from moldau.errors.clients import *  # noqa: F403
from moldau.errors.kafka import *  # noqa: F403

for _kind in [one for one in globals().values() if isinstance(one, type) and issubclass(one, Exception)]:
    _kind.__module__ = __name__
