"""The audit log: each denial once, in order, off the loop, and never more than it may hold."""

import asyncio
import json
import logging
import os
import stat
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from moldau.cluster.state.image import Image
from moldau.errors import ConfigError
from moldau.notices import Notices
from moldau.protocol.apis import METADATA
from moldau.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from moldau.requests.access import Operation, ResourceType, Right
from moldau.runtime import Runtime
from moldau.security import audit
from moldau.security.audit import Audit, audit_writer
from moldau.security.authorizer import AclAuthorizer
from tests.handlers.living import Living, run
from tests.security.asking import called
from tests.security.test_rules import acls

READ = Right(ResourceType.TOPIC, Operation.READ)
STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def written(scenario: Callable[[Audit], Awaitable[None]]) -> list[dict[str, Any]]:
    """The lines of a scenario."""
    lines: list[str] = []

    async def live() -> None:
        one = Audit(Runtime(), lines.extend)
        await scenario(one)
        await one.close()

    asyncio.run(live())
    return [json.loads(line) for line in lines]


def test_a_line_says_who_was_denied_what_and_by_which_rule() -> None:
    async def scenario(one: Audit) -> None:
        by = AclAuthorizer(Image("c", acls=acls("deny ann read or...", "allow ann read *")), (), False, one.denied)
        by.allows(called("User:ann"), READ, "orders", True)
        by.allows(called("User:ann"), READ, "orders", False)
        by.allows(called("User:bob"), READ, "t", True)

    first, second = written(scenario)
    assert first.pop("time").endswith("Z")
    assert first == {
        "decision": "denied", "principal": "User:ann", "host": "10.0.0.7", "operation": "Read", "resource": "Topic",
        "name": "orders", "api": "Metadata", "listener": "PLAINTEXT", "client_id": "asker", "rule": "Acl",
        "acl": {"pattern": "prefixed", "name": "or", "principal": "User:ann", "host": "*", "operation": "Read",
                "permission": "deny"},
    }  # fmt: skip
    assert (second["principal"], second["rule"], "acl" in second) == ("User:bob", "DefaultDeny", False)


def test_hostile_names_are_cut_and_stay_in_their_line() -> None:
    async def scenario(one: Audit) -> None:
        AclAuthorizer(Image("c"), (), False, one.denied).allows(called("User:x\n{"), READ, "\n" + "x" * 30_000, True)

    [line] = written(scenario)
    assert line["principal"] == "User:x\n{" and len(line["name"]) == audit.NAME_MAX


def test_lines_that_do_not_fit_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "WAITING_MAX", 10)
    monkeypatch.setattr(audit, "TOGETHER", 4)

    async def scenario(one: Audit) -> None:
        by = AclAuthorizer(Image("c"), (), False, one.denied)
        for number in range(25):
            by.allows(called("User:ann"), READ, f"t{number}", True)
        assert one.dropped == 15

    lines = written(scenario)
    assert [line["name"] for line in lines if "name" in line] == [f"t{number}" for number in range(10)]
    assert sum(line.get("dropped", 0) for line in lines) == 15


def test_a_writer_that_is_slow_holds_nobody_up() -> None:
    import threading

    let, threads = threading.Event(), set[int]()

    def write(lines: Sequence[str]) -> None:
        threads.add(threading.get_ident())
        let.wait(60)

    async def live() -> None:
        one = Audit(Runtime(), write)
        by = AclAuthorizer(Image("c"), (), False, one.denied)
        for _ in range(3):
            by.allows(called("User:ann"), READ, "t", True)
            await asyncio.sleep(0)
        let.set()
        await one.close()
        assert threading.get_ident() not in threads

    asyncio.run(live())


def test_denials_are_written_again_after_a_disk_failed_while_no_more_could_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import threading

    monkeypatch.setattr(audit, "WAITING_MAX", 10)
    monkeypatch.setattr(audit, "notices", Notices(logging.getLogger(__name__)))
    lines: list[str] = []
    failing, may_fail = [OSError(28, "No space left on device")], threading.Event()

    def write(some: Sequence[str]) -> None:
        may_fail.wait(60)
        if failing:
            raise failing.pop()
        lines.extend(some)

    async def live() -> None:
        one = Audit(Runtime(), write)
        by = AclAuthorizer(Image("c"), (), False, one.denied)
        by.allows(called("User:ann"), READ, "lost", True)
        await asyncio.sleep(0)  # it is being written
        for number in range(15):
            by.allows(called("User:ann"), READ, f"t{number}", True)
        assert one.dropped == 5
        may_fail.set()
        await one.close()
        assert one.dropped == 6 and not lines
        by.allows(called("User:ann"), READ, "one more", True)
        await one.close()
        by.allows(called("User:ann"), READ, "kept", True)
        await one.close()

    asyncio.run(live())
    told = [json.loads(line) for line in lines]
    assert [line["name"] for line in told if "name" in line] == [*(f"t{number}" for number in range(10)), "kept"]
    assert sum(line.get("dropped", 0) for line in told) == 7


def test_a_broker_writes_denials_into_a_file_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"

    async def scenario(alive: Living) -> None:
        wire = await alive.dial()
        named = MetadataRequest(topics=[MetadataRequestTopic(name="secret")], allow_auto_topic_creation=False)
        await wire.ask(METADATA, 12, named)
        await wire.ask(METADATA, 12, MetadataRequest(topics=None))

    run(scenario, tmp_path / "data", authorizer_class_name=STANDARD, audit_log_file=file)
    [line] = map(json.loads, file.read_text().splitlines())
    assert (line["api"], line["operation"], line["name"]) == ("Metadata", "Describe", "secret")
    assert line["principal"] == "User:ANONYMOUS"
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600


def test_without_a_file_the_lines_are_in_the_brokers_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(alive: Living) -> None:
        wire = await alive.dial()
        await wire.ask(METADATA, 12, MetadataRequest(topics=[MetadataRequestTopic(name="secret")]))

    with caplog.at_level(logging.INFO, audit.LOGGER):
        run(scenario, tmp_path, authorizer_class_name=STANDARD)
    assert [json.loads(one.message)["name"] for one in caplog.records if one.name == audit.LOGGER] == ["secret"]


def test_a_file_that_cannot_be_written_ends_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"audit.log.file .*nowhere/x cannot be written: No such file"):
        audit_writer(str(tmp_path / "nowhere" / "x"))


def test_a_file_that_was_moved_away_is_made_anew(tmp_path: Path) -> None:
    write, end = audit_writer(str(tmp_path / "audit"))
    write(["1", "2"])
    (tmp_path / "audit").rename(tmp_path / "old")
    write(["3"])
    end()
    assert stat.S_IMODE(os.stat(tmp_path / "audit").st_mode) == 0o600
    assert ((tmp_path / "old").read_text(), (tmp_path / "audit").read_text()) == ("1\n2\n", "3\n")


def test_lines_of_a_full_disk_are_counted_and_the_broker_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    lines: list[str] = []
    failing = [OSError(28, "No space left on device")]

    def write(some: Sequence[str]) -> None:
        if failing:
            raise failing.pop()
        lines.extend(some)

    async def live() -> None:
        one = Audit(Runtime(), write)
        by = AclAuthorizer(Image("c"), (), False, one.denied)
        by.allows(called("User:ann"), READ, "lost", True)
        await one.close()
        assert (lines, one.dropped) == ([], 1)
        by.allows(called("User:ann"), READ, "kept", True)
        await one.close()

    asyncio.run(live())
    kept, told = map(json.loads, lines)
    assert kept["name"] == "kept" and told["dropped"] == 1
    assert "denials cannot be written into the audit log: No space left on device" in caplog.text
