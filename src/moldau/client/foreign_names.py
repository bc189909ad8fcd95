"""Names of settings that other clients have and ours do not: those of Java, librdkafka (and confluent-kafka),
kafka-python, aiokafka, KafkaJS and pykafka, and words that people try.

`judged` says what becomes of such a name. In a mapping, which may be the settings of a whole program, a name that only
tunes another client, or that belongs to the producer, consumer or admin client beside this one, has no effect. A name
that stands for something that the program does is answered with our word for it, or with "not yet". As an argument
every name is answered. Names are compared in lower case: KafkaJS writes `groupId`. Settings in `FIXED` ask for what our
clients do anyway, by some values; their other values are refused.
"""

from typing import NamedTuple

RENAMED = {
    "aiokafka": {"max.batch.size": "batch.size", "rebalance.timeout.ms": "max.poll.interval.ms"},
    "kafka-python": {"bootstrap.timeout.ms": "default.api.timeout.ms"},
    "Kafka 0.7": {
        "autocommit.enable": "enable.auto.commit",
        "autocommit.interval.ms": "auto.commit.interval.ms",
        "autooffset.reset": "auto.offset.reset",
        "broker.list": "bootstrap.servers",
        "fetch.size": "max.partition.fetch.bytes",
        "max.message.size": "max.request.size",
        "queue.time": "linger.ms",
        "rebalance.max.retries": "rebalance.retries.max",
        "zk.connect": "zookeeper.connect",
        "zk.connectiontimeout.ms": "zookeeper.connection.timeout.ms",
        "zk.sessiontimeout.ms": "zookeeper.session.timeout.ms",
    },
    "KafkaJS": {
        "brokers": "bootstrap.servers",
        "clientid": "client.id",
        "connectiontimeout": "socket.connection.setup.timeout.ms",
        "groupid": "group.id",
        "heartbeatinterval": "heartbeat.interval.ms",
        "idempotent": "enable.idempotence",
        "maxbytes": "fetch.max.bytes",
        "maxbytesperpartition": "max.partition.fetch.bytes",
        "maxinflightrequests": "max.in.flight.requests.per.connection",
        "maxwaittimeinms": "fetch.max.wait.ms",
        "metadatamaxage": "metadata.max.age.ms",
        "minbytes": "fetch.min.bytes",
        "rackid": "client.rack",
        "rebalancetimeout": "max.poll.interval.ms",
        "requesttimeout": "request.timeout.ms",
        "sessiontimeout": "session.timeout.ms",
        "transactionalid": "transactional.id",
        "transactiontimeout": "transaction.timeout.ms",
    },
    "pykafka": {
        "compression": "compression.type",
        "consumer.group": "group.id",
        "hosts": "bootstrap.servers",
        "required.acks": "acks",
        "zookeeper.hosts": "zookeeper.connect",
    },
    "Spark": {
        "kafka.bootstrap.servers": "bootstrap.servers",
        "kafka.group.id": "group.id",
        "startingoffsets": "auto.offset.reset",
    },
    "another client": {
        "address": "bootstrap.servers",
        "addresses": "bootstrap.servers",
        "bootstrap.server": "bootstrap.servers",
        "bootstrap.brokers": "bootstrap.servers",
        "broker": "bootstrap.servers",
        "broker.address": "bootstrap.servers",
        "group": "group.id",
        "group.name": "group.id",
        "host": "bootstrap.servers",
        "kafka.brokers": "bootstrap.servers",
        "kafka.servers": "bootstrap.servers",
        "password": "sasl.password",
        "server": "bootstrap.servers",
        "servers": "bootstrap.servers",
        "user": "sasl.username",
        "username": "sasl.username",
    },
    "librdkafka": {
        "auto.commit.enable": "enable.auto.commit",
        "batch.num.messages": "batch.size (in bytes)",
        "compression.codec": "compression.type",
        "fetch.error.backoff.ms": "retry.backoff.ms",
        "fetch.message.max.bytes": "max.partition.fetch.bytes",
        "fetch.wait.max.ms": "fetch.max.wait.ms",
        "max.in.flight": "max.in.flight.requests.per.connection",
        "message.max.bytes": "max.request.size",
        "message.send.max.retries": "retries",
        "message.timeout.ms": "delivery.timeout.ms",
        "metadata.broker.list": "bootstrap.servers",
        "queue.buffering.max.kbytes": "buffer.memory (in bytes)",
        "queue.buffering.max.messages": "buffer.memory (in bytes)",
        "queue.buffering.max.ms": "linger.ms",
        "queued.max.messages.kbytes": "fetch.max.bytes (in bytes)",
        "request.required.acks": "acks",
        "socket.timeout.ms": "request.timeout.ms",
        "sticky.partitioning.linger.ms": "linger.ms",
        "topic.metadata.refresh.interval.ms": "metadata.max.age.ms",
    },
}
"""Client -> its name of a setting -> Kafka's."""

_TOKENS = "sasl_oauth_token_provider takes a function that returns a token"
_NO_PART_OF_TLS = "it chooses a part of TLS that Python has no choice of"
_OF_C = "it is for programs in C, and ssl.ca.location, ssl.certificate.location and ssl.key.location name files"
_NO_REVOCATION = "lists of revoked certificates are not read"
_DELIVERY = "on_delivery is an argument of send"
_LOGGING = "Python's logging has it, by the logger moldau"
_METRICS = "metrics() of a producer or consumer returns them at any time"
_VERSIONS = "each broker says which versions of the protocol it has"
_COMMITS = "offsets are committed by the group, for records that were processed"
_LISTENERS = "on_assigned, on_revoked and on_lost are arguments of subscribe"
_LOOP = "a client of moldau.aio belongs to the loop that runs when it is started"
_NO_PROXY = "proxies are not there yet"
_INTERCEPTORS = "interceptors takes objects"
_PROCESSED = "a record counts as processed when the next one is asked for"

_JAVA = "org.apache.kafka.common.security"

INSTEAD = {
    "api.version": _VERSIONS,
    "api.version.auto.timeout.ms": _VERSIONS,
    "api.version.fallback.ms": _VERSIONS,
    "api.version.request": _VERSIONS,
    "api.version.request.timeout.ms": _VERSIONS,
    "background.event.cb": "errors are raised by the call that they concern",
    "bootstrap.controllers": "every broker answers an admin client, bootstrap.servers names them",
    "broker.version.fallback": _VERSIONS,
    "config.providers": "they are looked up in a file of settings; here give the values themselves",
    "createpartitioner": "partitioner takes a function",
    "consume.cb": "process() of a consumer calls a function with each record",
    "consumer.timeout.ms": "poll() returns an empty list at its time-out",
    "debug": _LOGGING,
    "default.offset.commit.callback": "callback is an argument of commit_async",
    "default.topic.conf": "its settings are given with the others",
    "default.topic.config": "its settings are given with the others",
    "dr.cb": _DELIVERY,
    "dr.msg.cb": _DELIVERY,
    "enable.auto.offset.store": _PROCESSED,
    "exclude.internal.topics": "a pattern matches no internal topic, subscribe to it by its name",
    "enable.gapless.guarantee": "records behind one that has failed are sent all the same",
    "enable.partition.eof": "end_offset() of a consumer says where a partition ends",
    "error.cb": "errors are raised by the call that they concern, and logged while they are retried",
    "frombeginning": "auto.offset.reset is earliest",
    "from.beginning": "auto.offset.reset is earliest",
    "group.protocol.type": "groups of consumers have the type consumer",
    "interceptor.classes": _INTERCEPTORS,
    "kafka.client": "clients dial for themselves",
    "log.cb": _LOGGING,
    "log.level": _LOGGING,
    "log.queue": _LOGGING,
    "logger": _LOGGING,
    "loglevel": _LOGGING,
    "loop": _LOOP,
    "metric.reporters": _METRICS,
    "msg.order.cmp": "records of a partition keep their order",
    "oauthbearer.token.refresh.cb": _TOKENS,
    "offset.commit.cb": "callback is an argument of commit_async",
    "offset.store.method": _COMMITS,
    "offset.store.path": _COMMITS,
    "offset.store.sync.interval.ms": _COMMITS,
    "on.commit": "callback is an argument of commit_async",
    "on.delivery": _DELIVERY,
    "partitioner.cb": "partitioner takes a function",
    "partitioner.class": "partitioner takes round_robin or a function",
    "plugin.library.paths": _INTERCEPTORS,
    "enable.sasl.oauthbearer.unsecure.jwt": "tokens without a signature are not made",
    "https.ca.pem": "https.ca.location names a file",
    "proxy.url": _NO_PROXY,
    "queuing.strategy": "records of a partition keep their order",
    "rebalance.cb": _LISTENERS,
    "producer.type": "send returns before the record is delivered: wait for what it returns, or do not",
    "resolve.cb": "hosts are found by the system",
    "sasl": "security.protocol is SASL_SSL or SASL_PLAINTEXT, and the rest is in settings that begin with sasl",
    "sasl.client.callback.handler.class": _TOKENS,
    "sasl.login.callback.handler.class": _TOKENS,
    "sasl.login.class": _TOKENS,
    "sasl.oauthbearer.grant.type": _TOKENS,
    "sasl.oauthbearer.jwt.retriever.class": _TOKENS,
    "sasl.oauthbearer.jwt.validator.class": _TOKENS,
    "sasl.oauthbearer.method": _TOKENS,
    "security.providers": _NO_PART_OF_TLS,
    "serializer.class": "key.serializer and value.serializer take functions",
    "socks5.proxy": _NO_PROXY,
    "ssl": "security.protocol is SSL or SASL_SSL, and the rest is in settings that begin with ssl",
    "ssl.ca": _OF_C,
    "ssl.certificate": _OF_C,
    "ssl.engine.callback.data": _OF_C,
    "ssl.key": _OF_C,
    "ssl.ca.certificate.stores": "ssl.ca.location names the certificates",
    "ssl.certificate.verify.cb": "ssl.context takes a context of your own",
    "ssl.check.hostname": "ssl.endpoint.identification.algorithm is https or none",
    "ssl.crl.location": _NO_REVOCATION,
    "ssl.crlfile": _NO_REVOCATION,
    "ssl.curves.list": _NO_PART_OF_TLS,
    "ssl.engine.factory.class": "ssl.context takes a context of your own",
    "ssl.engine.id": _NO_PART_OF_TLS,
    "ssl.engine.location": _NO_PART_OF_TLS,
    "ssl.providers": _NO_PART_OF_TLS,
    "ssl.sigalgs.list": _NO_PART_OF_TLS,
    "statistics.interval.ms": _METRICS,
    "stats.cb": _METRICS,
    "throttle.cb": "metrics() of a producer has the time of requests, throttled or not",
    "topic": "send of a producer and subscribe of a consumer take it",
    "topics": "send of a producer takes one, and subscribe of a consumer takes them",
    "topic.blacklist": "subscribe takes a compiled pattern, which may leave topics out",
    "transaction.two.phase.commit.enable": "two-phase commit is not there yet",
}
"""Name -> our word for what it does, or that it is not there yet."""

FIXED = {
    "api.version.request": ("true",),
    "config.providers": ("",),
    "enable.auto.offset.store": ("true",),
    "enable.gapless.guarantee": ("false",),
    "enable.partition.eof": ("false",),
    "exclude.internal.topics": ("true",),
    "group.protocol.type": ("consumer",),
    "interceptor.classes": ("",),
    "metric.reporters": ("", "org.apache.kafka.common.metrics.JmxReporter"),
    "offset.store.method": ("broker",),
    "security.providers": ("",),
    "enable.sasl.oauthbearer.unsecure.jwt": ("false",),
    "sasl.login.callback.handler.class": tuple(
        f"{_JAVA}.oauthbearer.{part}OAuthBearerLoginCallbackHandler" for part in ("", "secured.")
    ),
    "sasl.login.class": (f"{_JAVA}.oauthbearer.internals.OAuthBearerRefreshingLogin",),
    "sasl.oauthbearer.grant.type": ("client_credentials",),
    "sasl.oauthbearer.jwt.retriever.class": tuple(
        f"{_JAVA}.oauthbearer.{kind}JwtRetriever" for kind in ("Default", "ClientCredentials", "File")
    ),
    "sasl.oauthbearer.jwt.validator.class": tuple(
        f"{_JAVA}.oauthbearer.{kind}JwtValidator" for kind in ("Default", "Client")
    ),
    "sasl.oauthbearer.method": ("default", "oidc"),
    "partitioner.class": ("", "org.apache.kafka.clients.producer.internals.DefaultPartitioner"),
    "statistics.interval.ms": ("0",),
    "transaction.two.phase.commit.enable": ("false",),
}
"""Name -> the values that ask for what our clients do anyway."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


OWNERS = {
    "the admin client": frozenset({"bootstrap.controllers"}),
    "the producer and the consumer": _names(
        """interceptor.classes interceptors zookeeper.connect zookeeper.connection.timeout.ms
        zookeeper.session.timeout.ms zookeeper.ssl.cipher.suites zookeeper.ssl.client.enable
        zookeeper.ssl.enabled.protocols zookeeper.ssl.endpoint.identification.algorithm
        zookeeper.ssl.keystore.location zookeeper.ssl.keystore.password zookeeper.ssl.keystore.type
        zookeeper.ssl.protocol zookeeper.ssl.truststore.location zookeeper.ssl.truststore.password
        zookeeper.ssl.truststore.type"""
    ),
    "the consumer": _names(
        """allow.auto.create.topics auto.commit.interval.ms auto.offset.reset check.crcs client.rack
        enable.auto.commit exclude.internal.topics fetch.max.bytes fetch.max.wait.ms fetch.min.bytes group.id
        group.instance.id group.protocol group.remote.assignor heartbeat.interval.ms
        internal.throw.on.fetch.stable.offset.unsupported isolation.level key.deserializer
        max.partition.fetch.bytes max.poll.interval.ms max.poll.records partition.assignment.strategy
        rebalance.backoff.ms rebalance.retries.max
        session.timeout.ms share.acknowledgement.mode share.acquire.mode value.deserializer
        zookeeper.layout"""
    ),
    "the producer": _names(
        """acks audit.headers audit.interval.ms audit.topic audit.window.ms batch.size buffer.memory
        column.batch.size compression.gzip.level compression.lz4.level compression.type compression.zstd.level
        delivery.timeout.ms enable.idempotence key.serializer linger.ms max.block.ms
        max.in.flight.requests.per.connection max.request.size metadata.max.idle.ms partitioner
        partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms partitioner.class
        partitioner.ignore.keys retries transaction.timeout.ms transaction.two.phase.commit.enable
        transactional.id value.serializer"""
    ),
}
"""The names that one or two of the three clients have, Java's or ours."""

TUNING = _names(
    """broker.address.family broker.address.ttl builtin.features client.dns.lookup compression.level
        connections.max.idle.ms consume.callback.max.messages coordinator.query.interval.ms
        delivery.report.only.error enable.incremental.fetch.sessions
        enable.metrics.push enable.random.seed enabled.events fetch.queue.backoff.ms internal.termination.signal
        log.connection.close log.thread.name message.copy.max.bytes metadata.recovery.rebootstrap.trigger.ms
        metric.group.prefix metrics.enabled metrics.num.samples metrics.recording.level metrics.sample.window.ms
        opaque open.cb closesocket.cb connect.cb socket.cb produce.offset.report
        sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.header.urlencode sasl.oauthbearer.scope.claim.name
        sasl.oauthbearer.sub.claim.name
        queue.buffering.backpressure.threshold queued.min.messages receive.buffer.bytes
        receive.message.max.bytes reconnect.backoff.jitter.ms reconnect.backoff.max.ms reconnect.backoff.ms
        selector send.buffer.bytes socket.blocking.max.ms socket.connection.setup.timeout.max.ms
        socket.keepalive.enable socket.max.fails socket.nagle.disable socket.options socket.receive.buffer.bytes
        socket.send.buffer.bytes topic.metadata.propagation.max.ms topic.metadata.refresh.fast.cnt
        ssl.keymanager.algorithm ssl.protocol ssl.provider ssl.secure.random.implementation ssl.trustmanager.algorithm
        topic.metadata.refresh.fast.interval.ms topic.metadata.refresh.sparse"""
)
"""Names that tune how another client does what ours do in a way of their own."""

_OF_OTHER_LOGINS = {
    "sasl.kerberos.": "Kerberos is not supported",
    "sasl.login.": "logins are renewed when connections need them",
    "sasl.oauthbearer.expected.": "brokers check tokens",
    "sasl.oauthbearer.jwks.": "brokers check tokens",
}
"""What names begin with that have no effect -> why."""
_OF_MADE_TOKENS = ("sasl.oauthbearer.assertion.", "sasl.oauthbearer.metadata.")
_OF_REGISTRY = ("schema.registry.", "basic.auth.", "bearer.auth.")
_OF_SECURITY = ("enable.sasl.", "https.", "sasl.", "security.", "ssl.")


class Judgement(NamedTuple):
    """What becomes of a setting: it has `no_effect`, or, given as an argument or if it has, `answer` is the reason."""

    no_effect: bool
    answer: str


def judged(name: str, value: object, client: str, *, plaintext: bool) -> Judgement | None:
    """What becomes of a setting that a client does not have; None for a name that no client has. `client` is one of
    `OWNERS`. `plaintext`: the settings ask for a connection without TLS and SASL, so that theirs have no effect."""
    dotted = name.replace("_", ".").lower()
    if plaintext and dotted.startswith(_OF_SECURITY):
        return Judgement(True, "it is for connections with TLS or SASL")
    if dotted.startswith(_OF_REGISTRY):
        return Judgement(True, "a SchemaRegistry has it")
    library, kafka = next(((one, names[dotted]) for one, names in RENAMED.items() if dotted in names), ("", dotted))
    for owner, names in OWNERS.items():
        if kafka.partition(" ")[0] in names and client not in owner:
            return Judgement(True, f"{owner} has it")
    if library:
        return Judgement(False, f"that is {library}'s name, Kafka's is {kafka}")
    if dotted in INSTEAD:
        fixed = [text.lower() for text in FIXED.get(dotted, ())]
        return Judgement(value is None or str(value).strip().lower() in fixed, INSTEAD[dotted])
    if dotted.startswith(_OF_MADE_TOKENS):
        return Judgement(False, _TOKENS)
    for beginning, why in _OF_OTHER_LOGINS.items():
        if dotted.startswith(beginning):
            return Judgement(True, why)
    known = dotted in TUNING or any(dotted in names for names in OWNERS.values())
    return Judgement(True, "it tunes another client: leave it out") if known else None
