"""What an image says that one broker leads, and the same image without it."""

from hypothesis import given

from moldau.cluster.state.image import NO_LEADER, Image
from moldau.cluster.state.own_leaderships import led_topics, without_leaderships
from tests.cluster.drawn_images import IMAGES

ME = 1


@given(IMAGES)
def test_only_the_leaders_of_partitions_that_it_leads_are_gone(image: Image) -> None:
    led = led_topics(image, ME)
    stripped = without_leaderships(image, ME)
    assert led_topics(stripped, ME) == []
    assert set(led) == {name for name, topic in image.topics.items() if stripped.topics[name] is not topic}
    for name in led:
        for before, after in zip(image.topics[name].partitions, stripped.topics[name].partitions, strict=True):
            assert after == (before._replace(leader=NO_LEADER) if before.leader == ME else before)
        assert stripped.topics_by_id[image.topics[name].id] is stripped.topics[name]
