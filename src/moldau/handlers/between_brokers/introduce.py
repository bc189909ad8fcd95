"""Introduce (key 30000, ours), version 0: a broker of the same cluster says who it is, first on its connection.

It is asked to prove that it knows the secret of the cluster, and then does. From then on the connection answers the
APIs between brokers too. Refused are a broker of another cluster, one that looks for another broker here, one without
the secret, one that the cluster does not show with that broker epoch, and one whose principal may not act as a broker
(CLUSTER_ACTION) where connections authenticate. The log says so: an address is advertised
wrongly or was reused, or somebody pretends to be a broker.
"""

import asyncio
import logging
from collections.abc import Callable

from moldau.cluster.state.image import Image
from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.errors import ErrorCode
from moldau.notices import Notices
from moldau.peers.proof import is_proof, proof
from moldau.protocol.apis import BETWEEN_BROKERS
from moldau.protocol.messages.introduce import IntroduceRequest, IntroduceResponse, PeerApiVersion
from moldau.randomness import Random
from moldau.requests.access import CLUSTER_ACTION
from moldau.requests.session import ANONYMOUS, Call, Introduction

notices = Notices(logging.getLogger(__name__))
ID_CHARS_MAX = 50
UNREGISTERED = -1
SHOWN_S, LOOK_S = 2.0, 0.02
"""How long a broker that has just registered is waited for, and how often the image is looked at."""


class Introduce:
    """`secret` returns the cluster's. `received` returns the latest image that has come from the controller: it may be
    long until this broker acts by it."""

    def __init__(
        self,
        metadata: MetadataCache,
        secret: Callable[[], bytes],
        received: Callable[[], Image],
        random: Random,
    ):
        self._metadata = metadata
        self._secret = secret
        self._received = received
        self._random = random

    async def __call__(self, request: IntroduceRequest, call: Call) -> IntroduceResponse:
        session = call.session
        refused = self._misdirected(request) or _unauthorized(call)
        if refused is None and not request.proof:
            session.challenge = self._random.uuid().bytes
            return IntroduceResponse(challenge=session.challenge)
        refused = refused or self._unproved(request, session.challenge) or await self._unknown(request)
        session.challenge = b""
        if refused is not None:
            code, why = refused
            # One line for all: who is refused may claim another id each time.
            notices.error("", "broker %d at %s was refused: %s", request.broker_id, call.client_host, why)
            return IntroduceResponse(error_code=code, error_message=why)
        session.become_broker(Introduction(request.broker_id, request.broker_epoch))
        return IntroduceResponse(
            api_keys=[
                PeerApiVersion(api_key=api.key, min_version=api.low, max_version=api.high)
                for api in BETWEEN_BROKERS.values()
            ]
        )

    def _misdirected(self, request: IntroduceRequest) -> tuple[ErrorCode, str] | None:
        own_cluster, own_id = self._metadata.image.cluster_id, self._metadata.broker_id
        if request.cluster_id != own_cluster:
            theirs = request.cluster_id[:ID_CHARS_MAX]
            return (
                ErrorCode.INCONSISTENT_CLUSTER_ID,
                f"this is a broker of cluster {own_cluster}, not of {theirs}",
            )
        if request.expected_id != own_id:
            return ErrorCode.BROKER_NOT_AVAILABLE, f"this is broker {own_id}, not {request.expected_id}"
        if request.broker_id == own_id:
            return ErrorCode.DUPLICATE_BROKER_REGISTRATION, f"this is broker {own_id} itself: two brokers have its id"
        return None

    def _unproved(self, request: IntroduceRequest, challenge: bytes) -> tuple[ErrorCode, str] | None:
        expected = proof(self._secret(), challenge, request.broker_id, request.broker_epoch, request.expected_id)
        if challenge and is_proof(request.proof, expected):
            return None
        return ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "it has not proved that it knows the secret of the cluster"

    async def _unknown(self, request: IntroduceRequest) -> tuple[ErrorCode, str] | None:
        """Refuse an epoch that is not the broker's in the image. Its registration may reach this broker only now."""
        asked_id, epoch = request.broker_id, request.broker_epoch
        if epoch == UNREGISTERED:
            return None  # its session is over, and it still has to know what changes: see `FollowCluster`

        until_s = asyncio.get_running_loop().time() + SHOWN_S
        broker = self._received().brokers.get(asked_id)
        while broker is None or broker.epoch < epoch:
            if asyncio.get_running_loop().time() > until_s:
                break
            await asyncio.sleep(LOOK_S)
            broker = self._received().brokers.get(asked_id)
        if broker is not None and broker.epoch == epoch:
            return None
        known = "no such broker" if broker is None else f"it with epoch {broker.epoch}"
        return ErrorCode.STALE_BROKER_EPOCH, f"it says that its broker epoch is {epoch}; the cluster shows {known}"


def _unauthorized(call: Call) -> tuple[ErrorCode, str] | None:
    """Where connections authenticate, the principal needs the right too; the proof alone decides about others."""
    principal = call.session.principal
    if principal == ANONYMOUS or call.may(CLUSTER_ACTION):
        return None
    return ErrorCode.CLUSTER_AUTHORIZATION_FAILED, f"{principal} has no right to CLUSTER_ACTION"
