"""Users with few rights: a page shows what they may see, and names the right that is missing for the rest."""

from collections.abc import Iterator

import pytest

from moldau import Admin, Producer, TopicPartition
from moldau.admin import Acl
from moldau.console.rights import RIGHTS
from moldau.console.routes import ROUTES
from moldau.console.settings import ConsoleSettings
from moldau.testing import Broker
from tests.console.browser import ScreenlessBrowser
from tests.console.conftest import served
from tests.console.test_guarded import logged_in

TP = TopicPartition("seen", 0)


@pytest.fixture(scope="module")
def narrow() -> Iterator[str]:
    """A console of a broker where `eva` may describe a topic and its group, and read nothing."""
    acls = [Acl("topic", "seen", "User:eva", "describe"), Acl("group", "readers", "User:eva", "describe")]
    users = {"admin": "admin-secret", "eva": "eva-secret"}
    with Broker({"super.users": "User:admin"}, users=users, acls=acls) as broker:
        broker.create_topic("seen", 1)
        client = broker.client_settings("admin")
        with Producer(client) as producer:
            for _ in range(3):
                producer.send("seen", b"secret").result()
        with Admin(client) as admin:
            admin.alter_group_offsets("readers", {TP: 1})
        yield from served(ConsoleSettings(client, "127.0.0.1", 0))


@pytest.fixture
def eva(narrow: str) -> Iterator[ScreenlessBrowser]:
    with logged_in(narrow, "eva", "eva-secret") as browser:
        browser.get("/new-topic")
        yield browser


def test_a_user_who_may_not_read_a_topic_sees_it_and_its_lag(eva: ScreenlessBrowser) -> None:
    for path in ("/topics/seen", "/topics/seen/pulse", "/topics/seen/groups", "/groups/readers"):
        assert eva.get(path).status == 200, path
    rows = eva.get("/topic-rows", HX_Request="true").text
    assert rows.endswith("seen 1 1 3 – 1 2"), "no size, and the lag"
    assert eva.get("/group-rows?sort=-lag", HX_Request="true").text.endswith("readers Empty classic 0 seen 2 –")
    assert '"bytes"' not in eva.get("/topics/seen/pulse").html


@pytest.mark.parametrize(
    ("path", "right"),
    [
        ("/topics/seen/settings", "DescribeConfigs on the topic seen"),
        ("/topics/seen/export", "Read on the topic seen"),
        ("/topics/seen/search", "Read on the topic seen"),
        ("/topics/other", "Describe on the topic other"),
        ("/groups/other", "Describe on the group other"),
        ("/transactions/t", "Describe on the transactional id t"),
        ("/brokers/1", "DescribeConfigs on the cluster"),
        ("/brokers/1/folders", "Describe on the cluster"),
        ("/acls", "Describe on the cluster"),
        ("/quotas", "DescribeConfigs on the cluster"),
        ("/moves", "Describe on the cluster"),
        ("/hanging?topic=seen", "Read on the topic"),
    ],
)
def test_a_page_names_the_right_that_it_lacks(eva: ScreenlessBrowser, path: str, right: str) -> None:
    page = eva.get(path)
    assert f"It needs the right {right}." in page.text, page.text


@pytest.mark.parametrize(
    ("path", "form", "right"),
    [
        ("/topics/seen/settings", {"setting": "retention.ms", "value": "1"}, "AlterConfigs on the topic seen"),
        ("/topics/seen/produce", {"key_as": "null", "value_as": "text"}, "Write on the topic seen"),
        ("/topics/seen/delete", {"confirm": "seen"}, "Delete on the topic seen"),
        ("/groups/readers/reset", {"way": "latest", "execute": "1"}, "Read on the group readers and on its topics"),
        (
            "/groups/readers/delete-offsets",
            {"topic": "seen", "confirm": "seen"},
            "Delete on the group readers and Read on the topic",
        ),
        ("/new-topic", {"name": "n"}, "Create on the cluster, or on a topic of that name"),
    ],
)
def test_a_change_names_the_right_that_it_lacks(
    eva: ScreenlessBrowser, path: str, form: dict[str, str], right: str
) -> None:
    page = eva.post(path, form)
    assert page.status in (400, 403) and f"It needs the right {right}." in page.text and ".." not in page.text, (
        page.text
    )


def test_rights_are_those_of_pages() -> None:
    assert RIGHTS.keys() <= {(route.method, route.pattern) for route in ROUTES}
