import pytest

from moldau.errors import ErrorCode, KafkaError, ProtocolViolation, RebootstrapRequired
from moldau.peers.negotiation import IntendedBroker, Versions, read_versions, versions_request
from moldau.protocol import codec
from moldau.protocol.apis import API_VERSIONS, END_TXN, FETCH, HEARTBEAT, PRODUCE
from moldau.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse, FinalizedFeatureKey


def answer(version: int, error: ErrorCode = ErrorCode.NONE, **ranges: tuple[int, int]) -> bytes:
    keys = {"produce": PRODUCE.key, "fetch": FETCH.key, "api_versions": API_VERSIONS.key}
    response = ApiVersionsResponse(
        error_code=error,
        api_keys=[ApiVersion(api_key=keys[n], min_version=low, max_version=high) for n, (low, high) in ranges.items()],
    )
    return codec.write_reply(API_VERSIONS, version, 1, response)[4:]


def test_both_speak_the_highest_version_that_both_know() -> None:
    versions = read_versions(4, answer(4, produce=(0, 9), fetch=(4, 99)))
    assert isinstance(versions, Versions)
    assert versions.of(PRODUCE) == 9


def test_this_end_can_hold_an_api_at_an_older_version() -> None:
    versions = Versions({PRODUCE.key: (0, 13), FETCH.key: (4, 18)}, {PRODUCE.key: 12}, {"transaction.version": 2})
    assert (versions.of(PRODUCE), versions.of(FETCH)) == (12, 18)


@pytest.mark.parametrize(("level", "produce", "end"), [(2, 12, 5), (1, 11, 4), (0, 11, 4)])
def test_versions_that_go_with_transactions_2_need_the_finalized_feature(level: int, produce: int, end: int) -> None:
    response = ApiVersionsResponse(
        api_keys=[ApiVersion(api_key=key, max_version=12) for key in (PRODUCE.key, END_TXN.key)],
        finalized_features=[FinalizedFeatureKey(name="transaction.version", max_version_level=level)] if level else [],
    )
    versions = read_versions(4, codec.write_reply(API_VERSIONS, 4, 1, response)[4:])
    assert isinstance(versions, Versions)
    assert (versions.of(PRODUCE), versions.of(END_TXN)) == (produce, end)


@pytest.mark.parametrize("offer", [(0, 2), (99, 100)])
def test_no_version_in_common_is_an_error_that_names_the_api(offer: tuple[int, int]) -> None:
    with pytest.raises(KafkaError, match="Produce") as refused:
        Versions({PRODUCE.key: offer}).of(PRODUCE)
    assert refused.value.code == ErrorCode.UNSUPPORTED_VERSION


def test_an_api_that_is_not_offered_is_an_error_too() -> None:
    with pytest.raises(KafkaError, match=r"Heartbeat .*none"):
        Versions({}).of(HEARTBEAT)


def test_an_old_broker_is_greeted_again_in_a_version_it_knows() -> None:
    assert read_versions(4, answer(0, ErrorCode.UNSUPPORTED_VERSION, api_versions=(0, 2))) == 2
    assert read_versions(4, answer(0, ErrorCode.UNSUPPORTED_VERSION)) == 0


@pytest.mark.parametrize(("version", "offered"), [(4, 4), (4, 99), (4, -1), (0, -1), (0, -2)])
def test_a_broker_that_refuses_what_it_offers_or_offers_nothing_is_not_asked_forever(
    version: int, offered: int
) -> None:
    with pytest.raises(ProtocolViolation):
        read_versions(version, answer(0, ErrorCode.UNSUPPORTED_VERSION, api_versions=(offered, offered)))


@pytest.mark.parametrize("version", range(API_VERSIONS.high + 1))
def test_the_greeting_names_the_broker_that_is_meant_from_version_5_on(version: int) -> None:
    for intended in (None, IntendedBroker("c", 7)):
        frame = versions_request(version, 1, "me", intended)[4:]
        request = codec.read_request(API_VERSIONS, version, frame, codec.read_header(frame).body)
        named = (None, -1) if intended is None or version < 5 else intended
        assert (request.cluster_id, request.node_id) == named


def test_a_broker_that_is_not_meant_says_so() -> None:
    refused = ApiVersionsResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)
    with pytest.raises(RebootstrapRequired, match="the address of another broker or cluster"):
        read_versions(5, codec.write_reply(API_VERSIONS, 5, 1, refused)[4:])


def test_the_greeting_names_the_software() -> None:
    frame = versions_request(3, 1, "me")[4:]
    header = codec.read_header(frame)
    request = codec.read_request(API_VERSIONS, 3, frame, header.body)
    assert (header.client_id, request.client_software_name) == ("me", "moldau")
