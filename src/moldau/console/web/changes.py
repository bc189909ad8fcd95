"""`log_change`: a line in the console's log for each change that was sent, with who sent it and what came of it.

The brokers log what their users do; without logins only the console knows where a change came from.
"""

import logging

from moldau.console.web.requests import PageRequest

logger = logging.getLogger(__name__)

FIELDS = (
    "name", "topic", "partition", "offset", "setting", "reset", "all", "way", "execute", "principal", "permission",
    "operation", "resource_type", "pattern", "resource", "host", "user", "client-id", "ip",
)  # fmt: skip
"""The fields of forms that are logged: no values of settings and no records, which may be secrets."""
CHARACTERS_MAX = 100


def log_change(request: PageRequest, status: int) -> None:
    """`status` is that of the answer: 303 for a change that was made, 400 and above for one that was not."""
    fields = {name: request.field(name)[:CHARACTERS_MAX] for name in FIELDS if request.field(name)}
    user = request.session.user[:CHARACTERS_MAX] or "somebody"
    logger.info("%r at %s sent %s %r: status %d", user, request.address, request.target[:500], fields, status)
