"""`PageRefusal`: a request that is not carried out, with the sentence that the page shows."""

from moldau.errors import ConfigError, ErrorCode, KafkaError, MoldauError

FORBIDDEN, NOT_FOUND, BAD_GATEWAY, BAD_REQUEST, GATEWAY_TIMEOUT = 403, 404, 502, 400, 504
_MISSING = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_TOPIC_ID)
_DENIED = (
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)


class PageRefusal(MoldauError):
    """The text is one sentence for the user; `status` is that of HTTP."""

    def __init__(self, status: int, sentence: str):
        super().__init__(sentence)
        self.status = status


def refusal_of(failure: MoldauError, right: str = "") -> PageRefusal:
    """What to answer when the cluster, or one of our clients, refused; `right` is what the user needs for it."""
    if isinstance(failure, PageRefusal):
        return failure
    if isinstance(failure, KafkaError):
        if failure.code in _DENIED:
            needed = f". It needs the right {right}." if right else ""
            return PageRefusal(FORBIDDEN, f"Your user may not do this: {str(failure).rstrip('.')}{needed}")
        if failure.code in _MISSING:
            return PageRefusal(NOT_FOUND, str(failure))
        return PageRefusal(BAD_GATEWAY if failure.retriable else BAD_REQUEST, str(failure))
    return PageRefusal(BAD_REQUEST if isinstance(failure, ConfigError) else BAD_GATEWAY, str(failure))
