"""The broker settings of Kafka 3.x to 4.4 that this broker does not have; a start names them in one warning.

A setting in `REFUSED` ends the start instead, because the broker would be less safe than the setting promises.

Source: all settings of a running Kafka 4.3.1 and 4.4.0, and the documentation of earlier releases. A name moves
from here to `broker` once this broker implements it.
"""

from moldau.config.setting import Setting, SettingType

# Any name that starts so is a setting of Kafka's: of one listener, of a plug-in, of another process in the same file.
PREFIXES = (
    "config.providers.",
    "controller.",
    "rsm.config.",
    "rlmm.config.",
)

NAMES: frozenset[str] = frozenset(
    """
    alter.config.policy.class.name alter.log.dirs.replication.quota.window.num
    alter.log.dirs.replication.quota.window.size.seconds
    auto.include.jmx.reporter
    background.threads
    broker.heartbeat.interval.ms broker.id.generation.enable broker.session.timeout.ms
    client.quota.callback.class
    config.providers
    control.plane.listener.name
    controller.performance.always.log.threshold.ms controller.performance.sample.period.ms
    controller.quorum.append.linger.ms controller.quorum.auto.join.enable controller.quorum.bootstrap.servers
    controller.quorum.election.backoff.max.ms controller.quorum.election.timeout.ms controller.quorum.fetch.max.bytes
    controller.quorum.fetch.snapshot.max.bytes controller.quorum.fetch.timeout.ms controller.quorum.request.timeout.ms
    controller.quorum.retry.backoff.ms controller.quorum.voters controller.socket.timeout.ms
    cordoned.log.dirs
    create.topic.policy.class.name
    delegation.token.master.key
    delete.records.purgatory.purge.interval.requests
    early.start.listeners
    eligible.leader.replicas.enable
    errors.deadletterqueue.auto.create.topics.enable errors.deadletterqueue.topic.name.prefix
    fetch.purgatory.purge.interval.requests
    follower.fetch.last.tiered.offset.enable
    group.consumer.regex.refresh.interval.ms
    group.coordinator.append.linger.ms group.coordinator.background.threads group.coordinator.cached.buffer.max.bytes
    group.coordinator.new.enable group.coordinator.threads
    group.share.assignment.interval.ms group.share.assignors group.share.delivery.count.limit
    group.share.heartbeat.interval.ms group.share.initialize.retry.interval.ms group.share.max.assignment.interval.ms
    group.share.max.delivery.count.limit group.share.max.heartbeat.interval.ms
    group.share.max.partition.max.record.locks group.share.max.record.lock.duration.ms
    group.share.max.session.timeout.ms group.share.max.share.sessions group.share.max.size
    group.share.min.assignment.interval.ms group.share.min.delivery.count.limit group.share.min.heartbeat.interval.ms
    group.share.min.partition.max.record.locks group.share.min.record.lock.duration.ms
    group.share.min.session.timeout.ms group.share.partition.max.record.locks group.share.persister.class.name
    group.share.record.lock.duration.ms group.share.session.timeout.ms group.streams.assignment.interval.ms
    group.streams.assignors group.streams.heartbeat.interval.ms group.streams.initial.rebalance.delay.ms
    group.streams.max.assignment.interval.ms group.streams.max.heartbeat.interval.ms
    group.streams.max.session.timeout.ms group.streams.max.size group.streams.max.standby.replicas
    group.streams.min.assignment.interval.ms group.streams.min.heartbeat.interval.ms
    group.streams.min.session.timeout.ms group.streams.num.standby.replicas
    group.streams.rack.aware.assignment.tags group.streams.session.timeout.ms
    group.streams.topology.description.plugin.class
    initial.broker.registration.timeout.ms
    inter.broker.protocol.version
    kafka.metrics.polling.interval.secs kafka.metrics.reporters
    log.dir.failure.timeout.ms
    log.message.downconversion.enable log.message.format.version
    log.message.timestamp.difference.max.ms
    metadata.log.dir metadata.log.max.record.bytes.between.snapshots metadata.log.max.snapshot.interval.ms
    metadata.log.segment.bytes metadata.log.segment.ms metadata.max.idle.interval.ms metadata.max.retention.bytes
    metadata.max.retention.ms
    metric.reporters
    metrics.num.samples metrics.recording.level metrics.sample.window.ms
    num.io.threads num.network.threads num.replica.alter.log.dirs.threads
    num.replica.fetchers
    offsets.commit.required.acks offsets.topic.commit.required.acks
    offsets.topic.compression.codec
    password.encoder.cipher.algorithm password.encoder.iterations password.encoder.key.length
    password.encoder.keyfactory.algorithm password.encoder.old.secret password.encoder.secret
    principal.builder.class
    process.roles
    producer.purgatory.purge.interval.requests
    queued.max.requests
    quota.consumer.default quota.producer.default
    remote.fetch.max.wait.ms remote.list.offsets.request.timeout.ms remote.log.index.file.cache.total.size.bytes
    remote.log.index.file.cache.ttl.ms remote.log.manager.copier.thread.pool.size
    remote.log.manager.copy.max.bytes.per.second remote.log.manager.copy.quota.window.num
    remote.log.manager.copy.quota.window.size.seconds remote.log.manager.expiration.thread.pool.size
    remote.log.manager.fetch.max.bytes.per.second remote.log.manager.fetch.quota.window.num
    remote.log.manager.fetch.quota.window.size.seconds remote.log.manager.follower.thread.pool.size
    remote.log.manager.task.interval.ms remote.log.manager.task.retry.backoff.max.ms
    remote.log.manager.task.retry.backoff.ms remote.log.manager.task.retry.jitter remote.log.manager.thread.pool.size
    remote.log.metadata.custom.metadata.max.bytes remote.log.metadata.manager.class.name
    remote.log.metadata.manager.class.path remote.log.metadata.manager.impl.prefix
    remote.log.metadata.manager.listener.name remote.log.reader.max.pending.tasks remote.log.reader.threads
    remote.log.storage.manager.class.name remote.log.storage.manager.class.path remote.log.storage.manager.impl.prefix
    remote.log.storage.system.enable
    replica.socket.receive.buffer.bytes
    request.timeout.ms
    reserved.broker.max.id
    sasl.client.callback.handler.class sasl.kerberos.kinit.cmd
    sasl.kerberos.min.time.before.relogin sasl.kerberos.principal.to.local.rules sasl.kerberos.service.name
    sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor sasl.login.callback.handler.class
    sasl.login.class sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds
    sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
    sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms sasl.mechanism.controller.protocol
    sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud
    sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.iss
    sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.assertion.claim.nbf.seconds
    sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file sasl.oauthbearer.assertion.private.key.file
    sasl.oauthbearer.assertion.private.key.passphrase sasl.oauthbearer.assertion.template.file
    sasl.oauthbearer.header.urlencode
    sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class
    sasl.server.callback.handler.class
    security.providers
    server.max.startup.time.ms
    share.coordinator.append.linger.ms share.coordinator.cached.buffer.max.bytes
    share.coordinator.cold.partition.snapshot.interval.ms share.coordinator.load.buffer.size
    share.coordinator.snapshot.update.records.per.snapshot share.coordinator.state.topic.compression.codec
    share.coordinator.state.topic.min.isr share.coordinator.state.topic.num.partitions
    share.coordinator.state.topic.prune.interval.ms share.coordinator.state.topic.replication.factor
    share.coordinator.state.topic.segment.bytes share.coordinator.threads share.coordinator.write.timeout.ms
    share.fetch.purgatory.purge.interval.requests
    socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms socket.listen.backlog.size
    ssl.engine.factory.class ssl.keymanager.algorithm
    ssl.protocol ssl.provider ssl.secure.random.implementation ssl.trustmanager.algorithm
    transaction.two.phase.commit.enable
    unclean.leader.election.interval.ms
    unstable.api.versions.enable unstable.feature.versions.enable
    zookeeper.metadata.migration.enable zookeeper.metadata.migration.min.batch.size
    zookeeper.ssl.crl.enable zookeeper.ssl.ocsp.enable zookeeper.sync.time.ms
    """.split()  # noqa: SIM905
)

_NOT_REVOKED = (
    "this broker does not ask whether a certificate of ZooKeeper was revoked; remove {} to trust all certificates that "
    "zookeeper.ssl.truststore.location signed"
)
_AS_HERE = {
    "principal.builder.class": "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
}
"""The values of settings in `REFUSED` that mean what this broker does."""
REFUSED = {
    "principal.builder.class": "this broker cannot load a class that names principals; remove principal.builder.class, "
    "and set ssl.principal.mapping.rules",
    "ssl.engine.factory.class": "this broker cannot load a class that makes TLS engines; remove "
    "ssl.engine.factory.class, and set ssl.keystore.location",
    "sasl.server.callback.handler.class": "this broker cannot load a class that checks passwords or tokens; remove "
    "sasl.server.callback.handler.class",
    "zookeeper.metadata.migration.enable": "this broker cannot migrate metadata from ZooKeeper; remove "
    "zookeeper.metadata.migration.enable",
    "zookeeper.ssl.crl.enable": _NOT_REVOKED.format("zookeeper.ssl.crl.enable"),
    "zookeeper.ssl.ocsp.enable": _NOT_REVOKED.format("zookeeper.ssl.ocsp.enable"),
}
"""Settings that end the start, unless they are empty or `false`, with the sentence that says why."""

_ONE_LOOP = "Kept for the tools that set it: one loop serves all connections here, whatever the number."
_ONE_FETCHER = "Kept for the tools that set it: one fetcher for each leader here, whatever the number."
KEPT = {
    setting.name: setting
    for setting in (
        Setting("background.threads", SettingType.INT, None, _ONE_LOOP, low=1),
        Setting("num.io.threads", SettingType.INT, None, _ONE_LOOP, low=1),
        Setting("num.network.threads", SettingType.INT, None, _ONE_LOOP, low=1),
        Setting("num.replica.fetchers", SettingType.INT, None, _ONE_FETCHER, low=1),
    )
}
"""Settings that Kafka can change while it runs and that mean nothing here: a change is accepted, kept and described,
and has no effect."""


def is_refused(name: str, text: str) -> bool:
    """Whether this setting with this value ends the start."""
    return name in REFUSED and text.strip().lower() not in ("", "false") and text.strip() != _AS_HERE.get(name)


def known(name: str) -> bool:
    """Whether this is a setting of Kafka's that this broker does not have."""
    return name in NAMES or name in KEPT or name.startswith(PREFIXES)
