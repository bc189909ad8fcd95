"""What a doctor concludes from facts: a table for each part of the examination."""

from typing import Any

import pytest

from moldau.cli.doctor.checks.addresses import AddressFacts, ConnectionAttempt, of_addresses
from moldau.cli.doctor.checks.configuration import of_brokers, of_settings
from moldau.cli.doctor.checks.diagnosis import Diagnosis, Severity, has_errors, some_of, sorted_by_severity
from moldau.cli.doctor.checks.disks import DiskFacts, of_disks, size_text
from moldau.cli.doctor.checks.log_folders import ServedFolder, StoppedFolder, of_served, of_stopped
from moldau.cli.doctor.checks.machines import ClockFacts, DescriptorFacts, of_clocks, of_descriptors
from moldau.cli.doctor.checks.replicas import of_replicas
from moldau.cli.doctor.checks.zookeeper import ServerFacts, ZooKeeperFacts, of_zookeeper

ERROR, WARNING, NOTE = Severity
GB = 1 << 30
NOW_MS = 1_800_000_000_000


def brief(found: list[Diagnosis]) -> list[tuple[Severity, str]]:
    return [(one.severity, one.problem) for one in found]


def told(found: list[Diagnosis], severity: Severity, *words: str) -> None:
    """Exactly one diagnosis, of this severity, whose sentences have these words."""
    assert [one.severity for one in found] == [severity], found
    for word in words:
        assert word in f"{found[0].problem} {found[0].advice}", found
    assert found[0].problem.endswith((".", "?")) and found[0].advice.endswith(".")


LISTENS = {"listeners": "PLAINTEXT://localhost:9092"}


@pytest.mark.parametrize(
    ("settings", "severity", "words"),
    [
        ({"num.partitons": "3"}, ERROR, ("There is no setting 'num.partitons'; did you mean num.partitions?",)),
        ({"num.partitions": "many"}, ERROR, ("must be a whole number, not 'many'",)),
        ({"log.dirs": "/a,/a"}, ERROR, ("would not start: log.dirs names a folder twice",)),
        ({"node.id": "1", "broker.id": "2"}, ERROR, ("node.id is 1 and broker.id is 2",)),
        ({"zookeeper.connect": "z:2181"}, ERROR, ("a broker of a cluster needs an id",)),
        ({"min.insync.replicas": "2"}, ERROR, ("only 1 replicas", "Set default.replication.factor to 3")),
        (
            {"min.insync.replicas": "2", "default.replication.factor": "2"},
            WARNING,
            ("stop when one broker is away", "Set default.replication.factor to 3"),
        ),
        ({"unclean.leader.election.enable": "true"}, WARNING, ("they are lost", "--unclean")),
        ({"log.dirs": "/tmp/moldau"}, WARNING, ("/tmp/moldau is in a place that systems empty",)),
        ({"remote.log.storage.system.enable": "false"}, NOTE, ("have no effect here",)),
        (
            {"listeners": "PLAINTEXT://:9092", "advertised.listeners": "PLAINTEXT://localhost:9092"},
            WARNING,
            ("accepts connections from everywhere, but tells clients to connect to localhost",),
        ),
        ({"listeners": "PLAINTEXT://10.0.0.1:9092"}, NOTE, ("may read, write and delete everything",)),
    ],
)
def test_settings(settings: dict[str, str], severity: Severity, words: tuple[str, ...]) -> None:
    found = of_settings({**LISTENS, **settings})
    alike = [one for one in found if one.severity is severity][:1]
    told(alike, severity, *words)


def test_settings_that_are_sound_have_no_diagnosis_and_all_wrong_lines_are_named() -> None:
    assert of_settings(LISTENS) == []
    found = of_settings({"num.partitons": "3", "num.partitions": "x", "log.retention.hours": "y"})
    assert len(found) == 3 and has_errors(found)


def test_a_broker_that_is_told_what_differs_from_the_others() -> None:
    assert of_brokers({1: {"num.partitions": "1"}, 2: {"num.partitions": "1", "other": None}}) == []
    told(of_brokers({1: {"num.partitions": "1"}, 2: {"num.partitions": "3"}}), WARNING, "1 on broker 1, 3 on broker 2")
    same: dict[str, str | None] = {"min.insync.replicas": "3", "default.replication.factor": "3"}
    told(of_brokers({1: same, 2: same}), WARNING, "both 3")


@pytest.mark.parametrize(
    ("disk", "severity", "words"),
    [
        (DiskFacts("/d", False), NOTE, ("does not exist yet",)),
        (DiskFacts("/d", True, "Permission denied"), ERROR, ("cannot be used: Permission denied",)),
        (DiskFacts("/d", True, read_only=True), ERROR, ("read-only",)),
        (DiskFacts("/d", True, "", 100 * GB, 10 << 20), ERROR, ("is full: 10.0 MB are left",)),
        (DiskFacts("/d", True, "", 100 * GB, 2 * GB), WARNING, ("nearly full: 2.0 GB of 100.0 GB",)),
        (DiskFacts("/d", True, "", 100 * GB, 50 * GB, 10), WARNING, ("room for only 10 more files",)),
        (DiskFacts("/d", True, file_system="nfs4"), WARNING, ("network file system (nfs4)",)),
        (DiskFacts("/d", True, file_system="tmpfs"), WARNING, ("in memory (tmpfs)",)),
        (DiskFacts("/d", True, file_system="overlay"), WARNING, ("container", "Mount a volume")),
        (DiskFacts("/d", True, flush_ms=[1, 30, 40]), WARNING, ("takes 30 ms, and up to 40 ms",)),
        (DiskFacts("/d", True, flush_ms=[1, 2, 300]), WARNING, ("takes 2 ms, and up to 300 ms",)),
        (DiskFacts("/d", True, flush_ms=[250, 300, 300]), ERROR, ("takes 300 ms",)),
    ],
)
def test_disks(disk: DiskFacts, severity: Severity, words: tuple[str, ...]) -> None:
    told(of_disks([disk]), severity, *words)


def test_folders_on_one_disk_fail_together_and_a_sound_one_is_not_mentioned() -> None:
    sound = DiskFacts("/a", True, "", 100 * GB, 50 * GB, 10**6, "ext4", 7, flush_ms=[1, 2, 3])
    assert of_disks([sound, sound._replace(path="/b", device=8)]) == []
    told(of_disks([sound, sound._replace(path="/b")]), NOTE, "/a and /b are on one disk")
    assert [size_text(size) for size in (3, 2048, 5 * GB)] == ["3 bytes", "2.0 KB", "5.0 GB"]


@pytest.mark.parametrize(
    ("clock", "severity", "words"),
    [
        (ClockFacts(0), ERROR, ("years behind",)),
        (ClockFacts(NOW_MS, -900), WARNING, ("was set by -900 ms",)),
        (ClockFacts(NOW_MS, 0, {1: -10, 2: 3000, 3: 100}), WARNING, ("broker 2 was 3.0 s before that of broker 1",)),
        (ClockFacts(NOW_MS, 0, {1: 0, 2: 70_000}), ERROR, ("70.0 s",)),
    ],
)
def test_clocks(clock: ClockFacts, severity: Severity, words: tuple[str, ...]) -> None:
    told(of_clocks(clock), severity, *words)
    assert of_clocks(ClockFacts(NOW_MS, 3, {1: 0, 2: 400})) == []


@pytest.mark.parametrize(
    ("facts", "severity", "words"),
    [
        (DescriptorFacts(1024, 150), WARNING, ("may open 1024", "at most 150 connections", "LimitNOFILE")),
        (DescriptorFacts(64, 0), ERROR, ("at most 0 connections",)),
        (DescriptorFacts(-1, 2**31, 1000, 900), WARNING, ("has 900 of at most 1000",)),
    ],
)
def test_descriptors(facts: DescriptorFacts, severity: Severity, words: tuple[str, ...]) -> None:
    told(of_descriptors(facts), severity, *words)
    assert of_descriptors(DescriptorFacts(100_000, 20_000, 100_000, 50)) == []


GOOD = ConnectionAttempt("kafka.example", 9092, ("10.0.0.1",), cluster_id="c")
REFUSED = "Connection refused"


def seen(first: ConnectionAttempt, *brokers: ConnectionAttempt) -> list[Diagnosis]:
    return of_addresses(AddressFacts("laptop", [first], dict(enumerate(brokers, 1)), "c"))


@pytest.mark.parametrize(
    ("first", "brokers", "severity", "words"),
    [
        (GOOD._replace(unresolved="unknown"), (), ERROR, ("laptop cannot resolve kafka.example",)),
        (GOOD._replace(unreached=REFUSED), (), ERROR, ("kafka.example:9092 (10.0.0.1)", "a broker runs there")),
        (GOOD._replace(unreached="no answer"), (), ERROR, ("Look for a firewall",)),
        (GOOD._replace(unanswered="closed"), (), ERROR, ("does not answer as a broker", "security.protocol=SSL")),
        (
            GOOD,
            (ConnectionAttempt("kafka", 9092, unresolved="Name or service not known"),),
            ERROR,
            ("Broker 1 tells clients to connect to kafka:9092, and laptop cannot resolve kafka",
             "advertised.listeners of broker 1 to NAME://kafka.example:9092", "container"),
        ),
        (
            GOOD,
            (ConnectionAttempt("localhost", 9092, ("127.0.0.1",)),),
            ERROR,
            ("localhost:9092, which is laptop itself there, though it was found at kafka.example:9092",),
        ),
        (GOOD, (ConnectionAttempt("0.0.0.0", 9092),), ERROR, ("no address of a machine",)),
        (
            GOOD,
            (ConnectionAttempt("172.17.0.2", 9092, ("172.17.0.2",), unreached="no answer within 5 s"),),
            ERROR,
            ("no connection from laptop to 172.17.0.2:9092 comes about: no answer", "firewall"),
        ),
        (GOOD, (ConnectionAttempt("kafka.example", 9093, unanswered="closed"),), ERROR, ("no broker answers laptop",)),
        (GOOD, (ConnectionAttempt("other", 9092, cluster_id="d"),), ERROR, ("another cluster answers (d, not c)",)),
        (GOOD, (GOOD, GOOD), ERROR, ("Brokers 1 and 2 both tell clients to connect to kafka.example:9092",)),
    ],
)  # fmt: skip
def test_addresses(
    first: ConnectionAttempt, brokers: tuple[ConnectionAttempt, ...], severity: Severity, words: tuple[str, ...]
) -> None:
    told(seen(first, *brokers), severity, *words)


def test_addresses_that_work_and_loopback_on_one_machine_are_not_mentioned() -> None:
    local = ConnectionAttempt("127.0.0.1", 9092, cluster_id="c")
    assert seen(GOOD, GOOD) == [] == seen(local, ConnectionAttempt("localhost", 9093, cluster_id="c"))
    half = of_addresses(AddressFacts("laptop", [GOOD, GOOD._replace(host="gone", unreached=REFUSED)]))
    told(half, WARNING, "gone:9092")


SERVER = ServerFacts("z1:2181", "", "3.9.3", "leader", 0.5)
FINE = ZooKeeperFacts("z1:2181", [SERVER], "", [1.0, 2.0], 18.0, 18.0)


@pytest.mark.parametrize(
    ("facts", "severity", "words"),
    [
        (FINE._replace(error="no answer"), ERROR, ("no session in ZooKeeper at z1:2181: no answer",)),
        (FINE._replace(servers=[SERVER, SERVER]), NOTE, ("2 servers", "odd number")),
        (
            FINE._replace(servers=[SERVER, SERVER, ServerFacts("z3:2181", REFUSED)]),
            WARNING,
            ("z3:2181 cannot be reached: Connection refused; 1 of 3 may be away",),
        ),
        (FINE._replace(servers=[SERVER._replace(version="3.4.14")]), WARNING, ("version 3.4.14",)),
        (FINE._replace(servers=[SERVER, SERVER._replace(version="3.8.4"), SERVER]), NOTE, ("3.8.4, 3.9.3",)),
        (FINE._replace(answers_ms=[200.0, 300.0, 400.0]), WARNING, ("needs 300 ms",)),
        (FINE._replace(granted_timeout_s=6.0), WARNING, ("grants a session time-out of 6 s", "maxSessionTimeout")),
    ],
)
def test_zookeeper(facts: ZooKeeperFacts, severity: Severity, words: tuple[str, ...]) -> None:
    assert of_zookeeper(FINE) == []
    told(of_zookeeper(facts), severity, *words)


STATUS: dict[str, Any] = {
    "controller": 1,
    "brokers": [{"broker": 1}, {"broker": 2}],
    "away": [],
    "unhealthy": [],
    "too_few_replicas": [],
}
SICK = {
    "topic": "t", "partition": 0, "leader": 1, "replicas": [1, 2, 3], "in_sync": [1],
    "below_min_in_sync": False, "eligible": [],
}  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "severity", "words"),
    [
        ({"controller": None}, ERROR, ("no controller",)),
        (
            {"away": [{"broker": 3, "address": "c:9092", "needed_by": 0}]},
            WARNING,
            ("Broker 3, which was at c:9092, is away.", "unregister 3"),
        ),
        (
            {"away": [{"broker": 3, "address": "c:9092", "needed_by": 2}]},
            WARNING,
            ("is away, and 2 partitions without a leader need it.", "Start it"),
        ),
        (
            {"unhealthy": [SICK]},
            WARNING,
            ("1 partition has replicas", "Start broker 3; wait until broker 2 has"),
        ),
        ({"unhealthy": [SICK] * 5}, WARNING, ("5 partitions have", "and 2 more")),
        ({"unhealthy": [SICK | {"below_min_in_sync": True}]}, ERROR, ("cannot be written with acks=all",)),
        ({"unhealthy": [SICK | {"leader": None, "in_sync": [2]}]}, ERROR, ("without a leader: t-0", "Start broker 2")),
        (
            {"too_few_replicas": [{"topic": "__x", "replication_factor": 1, "wanted": 3, "command": "do it"}]},
            WARNING,
            ("__x has 1 replica, and should have 3", "`do it`"),
        ),
    ],
)
def test_replicas(changed: dict[str, Any], severity: Severity, words: tuple[str, ...]) -> None:
    assert of_replicas(STATUS) == []
    told(of_replicas({**STATUS, **changed}), severity, *words)


def test_topics_with_one_replica_count_where_there_are_several_brokers() -> None:
    told(of_replicas(STATUS, single=["b", "a"]), NOTE, "2 topics with one replica", "a, b")
    assert of_replicas({**STATUS, "brokers": [{"broker": 1}]}, single=["a"]) == []
    told(of_replicas(STATUS, 3), NOTE, "3 partitions under reassignment")


@pytest.mark.parametrize(
    ("folder", "severity", "words"),
    [
        (ServedFolder(2, "/d", "its disk has failed"), ERROR, ("/d of broker 2 is offline",)),
        (ServedFolder(2, "/d", "", 100 * GB, 10 * GB, 5, 80 * GB), WARNING, ("5 replicas take 80.0 GB",)),
        (ServedFolder(2, "/d", "", GB // 10, GB // 20, 5), WARNING, ("51.2 MB of 102.4 MB are left",)),
        (ServedFolder(2, "/d", arriving=2), NOTE, ("2 replicas on the way to /d",)),
    ],
)
def test_folders_of_running_brokers(folder: ServedFolder, severity: Severity, words: tuple[str, ...]) -> None:
    assert of_served([ServedFolder(2, "/d", "", 100 * GB, 50 * GB)]) == []
    told(of_served([folder]), severity, *words)


OWN = StoppedFolder("/d", owner="1", cluster_id="c", partitions=3)


@pytest.mark.parametrize(
    ("folder", "severity", "words"),
    [
        (OWN._replace(owner="2"), ERROR, ("belongs to broker 2, and the settings are those of 1",)),
        (OWN._replace(strange=["a", "b", "c", "d"]), WARNING, ("4 names that no broker has made: a, b, c and 1 more",)),
        (OWN._replace(lost=["t-0"]), ERROR, ("/d lacks the folders of 1 partition: t-0",)),
        (OWN._replace(was_clean=False), NOTE, ("a kill, or a power loss",)),
        (OWN._replace(leftovers=2), NOTE, ("2 folders left by deletions",)),
        (OWN._replace(error="recovery: damaged"), ERROR, ("moldau log verify",)),
    ],
)
def test_folders_of_stopped_brokers(folder: StoppedFolder, severity: Severity, words: tuple[str, ...]) -> None:
    assert of_stopped([OWN], 1) == [] == of_stopped([OWN._replace(owner="2")], None)
    told(of_stopped([folder], 1), severity, *words)
    assert of_stopped([OWN._replace(in_use=True, was_clean=False, leftovers=3)], 1) == []


def test_folders_of_two_clusters_are_noticed() -> None:
    told(of_stopped([OWN, OWN._replace(cluster_id="d")], 1), ERROR, "different clusters: c, d")


def test_the_worst_comes_first_and_each_once() -> None:
    note, error = Diagnosis(NOTE, "a", "n.", "n."), Diagnosis(ERROR, "a", "e.", "e.")
    assert sorted_by_severity([note, error, note]) == [error, note]
    assert has_errors([note, error]) and not has_errors([note])
    assert some_of(["a", "b"]) == "a, b"
