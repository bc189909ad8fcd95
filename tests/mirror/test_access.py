"""Access rights of mirrored topics are copied, if that is asked for."""

import asyncio
import re

import pytest

from moldau.client.administration.acls import Acl
from moldau.client.administration.admin import Admin
from moldau.mirror.access import to_add
from moldau.mirror.worker import MirrorSettings
from moldau.testing import Broker
from tests.mirror.mirroring import REFRESH_S, mirroring

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def right(resource: str, pattern: str = "literal", kind: str = "topic") -> Acl:
    return Acl(kind, resource, "User:ann", "read", pattern=pattern)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("acl", "is_copied"),
    [
        (right("orders"), True),
        (right("ord", "prefixed"), True),
        (right("pay", "prefixed"), False),
        (right("payments"), False),
        (right("*"), False),
        (right("orders", kind="group"), False),
    ],
)
def test_a_right_that_names_a_mirrored_topic_is_copied_once(acl: Acl, is_copied: bool) -> None:
    assert to_add([acl], [], ["orders"]) == ([acl] if is_copied else [])
    assert to_add([acl], [acl], ["orders"]) == []


def test_the_worker_copies_them() -> None:
    settings = {
        "authorizer.class.name": AUTHORIZER,
        "allow.everyone.if.no.acl.found": "true",
        "super.users": "User:ANONYMOUS",
    }
    with Broker(settings) as source, Broker(settings) as target:
        source.create_topic("orders", 1)
        with Admin(source.address) as admin, Admin(target.address) as there:
            admin.create_acls([right("orders"), right("payments")])

            async def scenario() -> None:
                async with mirroring(source, target, "orders") as mirror:
                    await mirror.stop()
                    mirror.settings = MirrorSettings(re.compile("orders"), refresh_s=REFRESH_S, acls=True)
                    mirror.start()
                    await mirror.until(lambda: "orders" in mirror.worker.copying.topics)
                    while not (found := await asyncio.to_thread(there.describe_acls)):
                        await asyncio.sleep(0.01)
                    assert found == [right("orders")]

            asyncio.run(scenario())
