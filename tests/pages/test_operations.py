"""The pages for operators (`PAGES`, docs/doctor.md, docs/installation.md): their commands do what the pages say."""

import re
import shutil
from pathlib import Path

import pytest

from harness.zookeeper import ZooKeeper
from moldau.config import broker_config
from moldau.config.properties import parse_properties
from moldau.testing import Cluster
from tests.cli.conftest import Moldau
from tests.pages.blocks import Block, blocks_of, commands_in, words_of
from tests.pages.terminal import Terminal

PAGES = (
    "docs/run-a-broker.md",
    "docs/repair.md",
    "docs/start-a-cluster.md",
    "docs/zookeeper.md",
    "docs/replication.md",
    "docs/move-partitions.md",
)
ZOOKEEPER = "localhost:2181"


def blocks(kind: str, *words: str) -> list[Block]:
    """Those of the pages of that kind that have all of these words."""
    found = [block for page in PAGES for block in blocks_of(page)]
    return [block for block in found if block.kind == kind and all(word in block.code for word in words)]


def test_each_block_of_the_pages_is_one_that_is_run_here() -> None:
    kinds = [("console", "--set num"), ("console", "log repair"), ("properties", ""), ("sh", "start"), ("sh", "alter")]
    known = {block.place for kind, word in kinds for block in blocks(kind, word)}
    assert {block.place for page in PAGES for block in blocks_of(page)} == known


@pytest.mark.parametrize("block", blocks("properties"), ids=lambda block: block.place)
def test_the_settings_of_the_pages_are_accepted(block: Block) -> None:
    _, warnings = broker_config(parse_properties(block.code))
    assert warnings == []


def test_throttles_and_replicas_of_internal_topics_are_set(offline: Moldau, monkeypatch: pytest.MonkeyPatch) -> None:
    with Cluster(3) as cluster:
        monkeypatch.setenv("MOLDAU_BOOTSTRAP_SERVER", cluster.bootstrap_servers)
        for topic in ("events", "__consumer_offsets", "__transaction_state"):
            assert offline("topics", "create", topic, "--if-not-exists").code == 0
        for block in blocks("sh", " alter "):
            for command in commands_in(block.code):
                done = offline(*words_of(command)[1:])
                assert done.code == 0, (command, done)


@pytest.mark.check
def test_a_broker_starts_and_a_lost_folder_is_repaired(terminal: Terminal, offline: Moldau, tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text("log.dirs=data\n")
    started, repaired = blocks("console", "--set num")[0].code, blocks("console", "log repair")[0].code
    terminal.play(started)
    terminal.play("$ moldau topics create events --partitions 4\ncreated topic events\n")
    terminal.stop()
    shutil.rmtree(tmp_path / "data" / "events-3")
    refused, shown, executed = re.findall(r"^\$ (moldau .*)$", repaired, re.MULTILINE)
    said = terminal.refused(refused)
    assert " ".join(repaired.split("\n$ ")[0].splitlines()[1:]) in said
    assert offline(*words_of(shown)[1:]).out.strip() in repaired
    assert offline(*words_of(executed)[1:]).code == 0
    terminal.play(started)


@pytest.mark.check
def test_brokers_of_one_machine_share_a_file(terminal: Terminal) -> None:
    [block] = blocks("sh", "--embedded")
    terminal.play_sh(block.code)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_servers_of_zookeeper_and_brokers_on_them_start(terminal: Terminal, tmp_path: Path) -> None:
    for block in blocks("sh", "zookeeper start"):
        for line in block.code.splitlines():
            terminal.play_sh(line)
            terminal.stop()
    [cluster] = [block for block in blocks("sh", "cluster start") if "--embedded" not in block.code]
    terminal.play_sh(cluster.code)
    terminal.stop()
    terminal.play("$ moldau server start --data-dir data\n")
    terminal.stop()
    for number, word in enumerate(("cluster adopt", "moldau-3")):
        with ZooKeeper(tmp_path / f"servers-{number}", 1) as zookeeper:
            [block] = blocks("sh", word)
            terminal.play_sh(block.code.replace(ZOOKEEPER, zookeeper.connect))
            terminal.stop()


@pytest.mark.check
def test_the_doctor_looks_and_makes_its_bundle(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text(terminal.here("listeners=PLAINTEXT://localhost:9092\nlog.dirs=data\n"))
    terminal.play("$ moldau server start server.properties\n")
    (tmp_path / "broker.log").write_text(terminal.log())
    for block in blocks_of("docs/doctor.md"):
        if block.kind == "sh":
            terminal.play_sh(block.code.replace("kafka1.example", "localhost"))
    assert (tmp_path / "report.tar.gz").stat().st_size > 1000


def test_the_version_says_what_is_compiled(terminal: Terminal) -> None:
    [block] = [block for block in blocks_of("docs/installation.md") if block.kind == "console"]
    terminal.play(block.code)
