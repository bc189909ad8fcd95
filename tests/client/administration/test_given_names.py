"""Calls that take several names refuse one, whose letters would be names."""

import pytest

from moldau.client.administration.admin import Admin
from moldau.errors import ConfigError
from moldau.names import TopicPartition


def test_a_text_does_not_delete_the_topics_that_its_letters_name(bootstrap: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topics(["x", "y", "z"])
        with pytest.raises(ConfigError, match="delete_topics takes topics as a list of texts, not 'xyz'"):
            admin.delete_topics("xyz")
        assert {"x", "y", "z"} <= set(admin.list_topics())
        admin.delete_topics(["x", "y", "z"])


def test_an_election_that_does_not_exist_is_refused(bootstrap: str) -> None:
    with Admin(bootstrap) as admin, pytest.raises(ConfigError, match="election='x' is not one of preferred, unclean"):
        admin.elect_leaders([TopicPartition("x", 0)], election="x")  # type: ignore[arg-type]
