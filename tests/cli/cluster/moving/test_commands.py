"""The commands that move replicas, on four brokers: what they show, keep in a file and carry out, while a producer
writes; and a plan that was left half done."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.patience import wait_until
from moldau import Admin, Producer, TopicPartition
from moldau.cli import main
from moldau.cli.cluster.moving import carrying_out, commands
from moldau.cli.cluster.moving.log_dirs import HEADERS
from moldau.testing import Broker, Cluster
from tests.testing.test_cluster import read

TOPIC, PARTITIONS, VALUE = "events", 6, b"x" * 1000


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(brokers=4, data_dir=tmp_path_factory.mktemp("cluster"), min_insync_replicas=1) as one:
        yield one


@pytest.fixture
def admin(cluster: Cluster) -> Iterator[Admin]:
    """Of a cluster with one topic, on brokers 1, 2 and 3."""
    with Admin(cluster.address) as one, Producer(cluster.address, acks="all") as producer:
        one.create_topic(TOPIC, assignment={n: [n % 3 + 1, (n + 1) % 3 + 1] for n in range(PARTITIONS)})
        for number in range(60):
            producer.send(TOPIC, VALUE, partition=number % PARTITIONS)
        producer.flush()
        yield one
        one.delete_topic(TOPIC)
        assert wait_until(lambda: TOPIC not in one.list_topics())


class Runner:
    def __init__(self, capsys: pytest.CaptureFixture[str], cluster: Cluster | Broker):
        self._capsys = capsys
        self._cluster = cluster

    def __call__(self, *words: str, code: int = 0) -> tuple[str, str]:
        self._capsys.readouterr()
        assert main.run(["cluster", *words, "-b", self._cluster.address]) == code
        said = self._capsys.readouterr()
        return said.out, said.err

    def json(self, *words: str, code: int = 0) -> Any:
        return json.loads(self(*words, "--json", code=code)[0])


@pytest.fixture
def run(
    capsys: pytest.CaptureFixture[str], cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Runner:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(carrying_out, "PAUSE_S", 0.02)
    return Runner(capsys, cluster)


def replicas(admin: Admin) -> dict[int, tuple[int, ...]]:
    return {n: part.replicas for n, part in sorted(admin.describe_topics([TOPIC])[TOPIC].partitions.items())}


def held(admin: Admin) -> set[int]:
    return {one for who in replicas(admin).values() for one in who}


def test_a_broker_is_drained_as_the_plan_says_which_is_kept(cluster: Cluster, admin: Admin, run: Runner) -> None:
    before = replicas(admin)
    shown = run.json("drain-broker", "3", "--dry-run")
    assert replicas(admin) == before, "a dry run moves nothing"
    assert shown["partitions_moved"] == 4 and 40_000 < shown["bytes_copied"] < 80_000
    plan = Path("plan.json").read_bytes()

    out, err = run("drain-broker", "3")
    assert "4 partitions move, " in out and "4 of 4 partitions" in err
    assert err.endswith("no replica is left on broker 3: it can be stopped for good\n")
    assert held(admin) == {1, 2, 4}
    assert Path("plan.json").read_bytes() == plan, "the same plan is the same bytes"
    assert replicas(admin) == {
        **before,
        **{int(one["partition"]): tuple(one["replicas_after"]) for one in shown["plan"]},
    }
    assert admin.list_reassignments() == {}
    assert run("drain-broker", "3")[0] == "nothing has to move\n"
    assert read(cluster.address, TOPIC, PARTITIONS, 60) == [VALUE] * 60


def test_a_new_broker_gets_its_share_and_another_one_takes_its_place(admin: Admin, run: Runner) -> None:
    run("add-broker", "4")
    assert held(admin) == {1, 2, 3, 4}
    shown = run.json("replace-broker", "4", "3")
    assert shown["left"] == [] and shown["moved"] >= 1
    assert held(admin) == {1, 2, 3}
    run("balance")
    counts = [sum(one in who for who in replicas(admin).values()) for one in (1, 2, 3, 4)]
    assert max(counts) - min(counts) <= 1, counts


def test_a_plan_goes_on_where_it_was_left(admin: Admin, run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:  # of this module alone: the brokers' threads sleep, too
        patched.setattr(carrying_out, "time", SimpleNamespace(monotonic=time.monotonic, sleep=interrupted))
        _, err = run("drain-broker", "1", "--at-a-time", "1", code=130)
    assert "`moldau cluster reassign plan.json` goes on with the rest" in err
    assert 1 in held(admin)
    assert run.json("reassign", "plan.json")["left"] == []
    assert held(admin) == {2, 3, 4}


def test_a_plan_goes_on_without_the_topics_that_were_deleted(admin: Admin, run: Runner) -> None:
    rows = [{"topic": name, "partition": 0, "replicas": [4]} for name in ("deleted", TOPIC)]
    Path("plan.json").write_text(json.dumps({"partitions": rows}))
    out, err = run("reassign", "plan.json", "--dry-run")
    assert "1 partition moves" in out and "deleted-0 was not moved: the cluster does not have it" in err
    shown = run.json("reassign", "plan.json", code=1)
    assert (shown["moved"], [one["topic"] for one in shown["left"]]) == (1, ["deleted"])
    assert replicas(admin)[0] == (4,)
    Path("plan.json").write_text(json.dumps({"partitions": rows[:1]}))
    assert (
        "the cluster has none of the partitions that the plan moves, such as deleted-0"
        in run("reassign", "plan.json", code=1)[1]
    )


def test_what_is_created_while_a_broker_is_drained_leaves_it_too(
    admin: Admin, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    carried_out = commands.carried_out

    def slowly(*arguments: Any) -> Any:
        course = carried_out(*arguments)
        if "later" not in admin.list_topics():
            admin.create_topic("later", assignment={0: [3, 1], 1: [1, 2]})
        return course

    monkeypatch.setattr(commands, "carried_out", slowly)
    try:
        _, err = run("drain-broker", "3")
        later = admin.describe_topics(["later"])["later"].partitions
        assert 3 not in held(admin) and all(3 not in part.replicas for part in later.values())
        assert "1 partition of new topics to move, too" in err and "no replica is left on broker 3" in err
    finally:
        admin.delete_topic("later")


def test_a_drain_that_new_topics_outrun_does_not_say_that_the_broker_is_empty(
    admin: Admin, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "ROUNDS_MAX", 1)
    carried_out = commands.carried_out

    def slowly(*arguments: Any) -> Any:
        course = carried_out(*arguments)
        admin.create_topic("later", assignment={0: [3, 1]})
        return course

    monkeypatch.setattr(commands, "carried_out", slowly)
    try:
        shown = run.json("drain-broker", "3", code=1)
        assert [one["topic"] for one in shown["left"]] == ["later"] and shown["moved"] == 4
    finally:
        admin.delete_topic("later")


def test_what_waits_for_a_broker_that_is_away_is_cancelled(cluster: Cluster, admin: Admin, run: Runner) -> None:
    plan = {"partitions": [{"topic": TOPIC, "partition": 0, "replicas": [3]}]}
    Path("plan.json").write_text(json.dumps(plan))
    tp = TopicPartition(TOPIC, 0)
    assert admin.alter_reassignments({tp: [1, 2, 3]}) == {tp: None}
    assert wait_until(lambda: replicas(admin)[0] == (1, 2, 3) and admin.list_reassignments() == {})
    cluster.brokers[2].kill()
    try:
        assert admin.alter_reassignments({tp: [3]}) == {tp: None}
        assert run("reassign", "plan.json", "--cancel")[0] == "cancelled the moves of 1 partition\n"
        assert {*replicas(admin)[0]} == {1, 2, 3}
        assert run.json("reassign", "plan.json", "--cancel") == {"cancelled": 0, "left": []}
    finally:
        cluster.brokers[2].start()


def test_a_replica_that_is_not_on_the_broker_yet_is_said_to_be_none(
    cluster: Cluster, admin: Admin, run: Runner
) -> None:
    folder = run.json("log-dirs", "4")[0]["path"]
    _, err = run("log-dirs", "4", "--move", f"{TOPIC}-0={folder}")
    assert err == f"{TOPIC}-0 has no replica on broker 4: if it gets one, that will be in {folder}\n"


def test_folders_and_disks_are_shown(admin: Admin, run: Runner) -> None:
    shown = run.json("log-dirs")
    assert [one["broker"] for one in shown] == [1, 2, 3, 4]
    assert sum(one["replicas"] for one in shown) >= 12
    assert all(0 < one["free_bytes"] <= one["disk_bytes"] for one in shown)
    table = run("log-dirs", "2")[0].splitlines()
    assert table[0].split() == " ".join(HEADERS).split() and len(table) == 2


def test_a_replica_moves_to_another_folder_of_its_broker(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    settings = {"log.dirs": f"{one},{other}"}
    monkeypatch.chdir(tmp_path)
    with Broker(settings=settings) as broker, Admin(broker.address) as admin:
        run = Runner(capsys, broker)
        admin.create_topic("t", partitions=1)
        where = ["one", "other"] if (one / "t-0").is_dir() else ["other", "one"]

        def place() -> str:
            [now] = [row["path"] for row in run.json("log-dirs") if row["replicas"] and not row["moving_here"]]
            return Path(now).name

        for number, target in enumerate((where[1], where[0])):
            path = str(tmp_path / target)
            if number:
                plan = {"partitions": [{"topic": "t", "partition": 0, "replicas": [1], "log_dirs": [path]}]}
                Path("plan.json").write_text(json.dumps(plan))
                run("reassign", "plan.json")
            else:
                _, err = run("log-dirs", "1", "--move", f"t-0={path}")
                assert "1 replica will be in the log folder that you named" in err
            assert wait_until(lambda target=target: place() == target)
        for absent in ("typo-0", "t-1"):
            _, err = run("log-dirs", "1", "--move", f"{absent}={one}", code=1)
            assert err == f"error: the cluster does not have {absent}\n"
        _, err = run("log-dirs", "1", "--move", f"t-0={tmp_path / 'nowhere'}", code=1)
        assert "t-0 on broker 1 does not move to" in err
        assert "--move needs one broker" in run("log-dirs", "--move", "t-0=/x", code=2)[1]
        assert "is not TOPIC-N=PATH" in run("log-dirs", "1", "--move", "t=/x", code=2)[1]
        run("reassign", "plan.json", "--cancel")


def test_a_broker_that_has_left_is_forgotten(admin: Admin, run: Runner, cluster: Cluster) -> None:
    assert "broker 4 is running: stop it first" in run("unregister", "4", code=1)[1]
    assert "Broker ID 9 is not currently registered" in run("unregister", "9", code=1)[1]
    cluster.brokers[3].kill()
    try:
        for other in cluster.brokers[:3]:
            other.until_known(3)
        out, err = run("unregister", "4")
        assert out == "broker 4 is forgotten\n" and err == ""
        assert "is not currently registered" in run("unregister", "4", code=1)[1]
    finally:
        cluster.brokers[3].start()
    assert wait_until(lambda: 4 in admin.describe_cluster().brokers)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["drain-broker", "9"], "broker 9 is not running: 1, 2, 3, 4 are"),
        (["add-broker", "9"], "broker 9 is not running"),
        (["replace-broker", "1", "9"], "broker 9 is not running"),
        (["drain-broker", "1", "2", "3"], "has 2 replicas, and too few brokers would be left for them"),
        (["reassign", "none.json"], "none.json cannot be read"),
    ],
)
def test_what_cannot_be_is_one_sentence(admin: Admin, run: Runner, words: list[str], sentence: str) -> None:
    out, err = run(*words, code=1)
    assert sentence in err and err.count("\n") == 1 and out == ""


def test_cancelling_takes_no_option_of_a_move(run: Runner) -> None:
    for option in (["--dry-run"], ["--throttle", "1000"]):
        out, err = run("reassign", "none.json", "--cancel", *option, code=2)
        assert f"--cancel takes no {option[0]}" in err and out == ""


def test_a_share_is_a_percentage(run: Runner) -> None:
    for text in ("0", "100%", "x", "-5%", "0.8"):
        assert "is not a percentage between 0 and 100" in run("balance", "--only-full", text, code=2)[1]


def test_a_throttled_plan_sets_the_rate_of_the_brokers_that_take_part_and_run(
    cluster: Cluster, admin: Admin, run: Runner
) -> None:
    plan = {"partitions": [{"topic": TOPIC, "partition": 0, "replicas": [2, 4]}]}
    Path("some.json").write_text(json.dumps(plan))
    _, err = run("reassign", "some.json", "--throttle", "50000000")
    assert "1 of 1 partition" in err and replicas(admin)[0] == (2, 4)
    for broker in "124":
        own = {one.name: one.value for one in admin.configs.describe("broker", broker) if one.source == "broker"}
        assert own["leader.reassignment.throttled.rate"] == own["follower.reassignment.throttled.rate"] == "50000000"
    assert all("reassignment" not in one.name for one in admin.configs.describe("broker", "3"))


def test_a_broker_that_is_down_is_drained_under_a_throttle(cluster: Cluster, admin: Admin, run: Runner) -> None:
    """Kafka's tool would wait for it to set its own rate (KAFKA-13392)."""
    three = cluster.brokers[2]
    three.kill()
    try:
        assert wait_until(lambda: 3 not in admin.describe_cluster().racks)
        _, err = run("drain-broker", "3", "--throttle", "50000000")
        assert "no replica is left on broker 3" in err and 3 not in held(admin)
    finally:
        three.start()
