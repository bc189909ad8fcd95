"""`MirrorQuestion`: which topics are mirrors of another cluster's, as their setting `mirror.source` says."""

from moldau.console.asking.topic_questions import TopicQuestions
from moldau.protocol.apis import DESCRIBE_CONFIGS
from moldau.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

MIRROR_SOURCE = "mirror.source"
"""The setting of a topic of Moldau's that is a mirror: the id of the cluster and of the topic there."""
FAILING_OVER = "failing-over"
"""In place of the cluster's id while a mirror stops being one."""
WORKERS = "moldau-mirror-"
"""How the name of the group of a mirror's workers begins; the id of the source follows."""
TOPIC, TOPICS_AT_ONCE = 2, 1_000


def cluster_of(source: str | None) -> str:
    """The id of the cluster in a value of `mirror.source`, or `FAILING_OVER`; "" if the topic is not a mirror."""
    return (source or "").partition("/")[0]


class MirrorQuestion(TopicQuestions):
    """The part of the console's admin client for mirrors."""

    async def mirrors(self) -> dict[str, str]:
        """Topic -> the id of the cluster that it mirrors, or `FAILING_OVER`; of the topics whose settings the user may
        see. Brokers that are not Moldau's know no such setting."""
        return await self._once("mirrors", self._mirrors)

    async def _mirrors(self) -> dict[str, str]:
        found, names = dict[str, str](), await self.topic_names()
        for at in range(0, len(names), TOPICS_AT_ONCE):
            wanted = [
                DescribeConfigsResource(resource_type=TOPIC, resource_name=name, configuration_keys=[MIRROR_SOURCE])
                for name in names[at : at + TOPICS_AT_ONCE]
            ]
            reply = await self._ask(DESCRIBE_CONFIGS, DescribeConfigsRequest(resources=wanted), "the sources of topics")
            for one in reply.results:
                for setting in one.configs:
                    if setting.name == MIRROR_SOURCE and (source := cluster_of(setting.value)):
                        found[one.resource_name] = source
        return found
