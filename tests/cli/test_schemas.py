"""`moldau schemas` and the registry beside a broker: what the commands print, with their exit codes."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.patience import stretched
from moldau.testing import Broker, RunningRegistry
from tests.cli.conftest import Moldau
from tests.cli.test_main import started

ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
LONGER = {**ORDER, "fields": [*ORDER["fields"], {"name": "note", "type": "string", "default": ""}]}
BROKEN = {**ORDER, "fields": [*ORDER["fields"], {"name": "note", "type": "string"}]}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with Broker() as broker, RunningRegistry(broker) as registry:
        yield registry.url


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, tree in (("order", ORDER), ("longer", LONGER), ("broken", BROKEN)):
        (tmp_path / f"{name}.avsc").write_text(json.dumps(tree))
    (tmp_path / "river.proto").write_text('syntax = "proto3"; message River { string name = 1; }')
    (tmp_path / "gauge.proto").write_text('syntax = "proto3"; import "river.proto"; message Gauge { River river = 1; }')
    return tmp_path


def test_schemas_are_registered_listed_shown_checked_and_compared(offline: Moldau, url: str, files: Path) -> None:
    at = ("--schema-registry", url)
    assert offline("schemas", "register", "orders-value", f"{files}/order.avsc", *at).out == "1\n"
    assert offline("schemas", "check", "orders-value", f"{files}/longer.avsc", *at).code == 0
    checked = offline("schemas", "check", "orders-value", f"{files}/broken.avsc", *at)
    assert checked.code == 1 and "READER_FIELD_MISSING_DEFAULT_VALUE" in checked.out
    refused = offline("schemas", "register", "orders-value", f"{files}/broken.avsc", *at).error
    assert "40901" in refused
    compared = offline("schemas", "diff", "orders-value", f"{files}/longer.avsc", *at)
    assert compared.code == 1 and '+      "name": "note",' in compared.out
    assert offline("schemas", "register", "orders-value", f"{files}/longer.avsc", *at).out == "2\n"
    assert offline("schemas", "diff", "orders-value", *at).out.startswith(
        "--- orders-value version 1\n+++ orders-value"
    )
    assert offline("schemas", "diff", "orders-value", "--from", "2", *at).code == 0
    three = offline("schemas", "diff", "orders-value", f"{files}/longer.avsc", "--from", "1", "--to", "1", *at)
    assert three.code == 2 and three.error.startswith("FILE is compared with one version: leave out --from or --to")
    assert json.loads(offline("schemas", "get", "orders-value", *at).out) == LONGER
    shown = offline("schemas", "get", "orders-value", "--version", "1", "--json", *at).json
    assert shown["id"] == 1 and shown["type"] == "AVRO" and json.loads(shown["schema"]) == ORDER
    assert offline("schemas", "list", *at).lines == [
        "SUBJECT       VERSIONS  LATEST ID  TYPE",
        "orders-value  1,2               2  AVRO",
    ]
    assert offline("schemas", "list", "none", "--json", *at).json == []


def test_references_are_named_on_the_command_line(offline: Moldau, url: str, files: Path) -> None:
    at = ("--schema-registry", url)
    offline("schemas", "register", "river", f"{files}/river.proto", *at)
    gauge = ("schemas", "register", "gauge", f"{files}/gauge.proto", *at)
    assert "42201" in offline(*gauge).error
    assert offline(*gauge, "--reference", "river.proto=river:1").code == 0
    assert offline("schemas", "get", "gauge", *at).out.startswith('syntax = "proto3";')
    assert "--reference" in offline(*gauge, "--reference", "river").error


def test_what_is_wrong_is_one_sentence(offline: Moldau, url: str, files: Path) -> None:
    assert "40401" in offline("schemas", "get", "nowhere", "--schema-registry", url).error
    assert "version" in offline("schemas", "get", "s", "--version", "0", "--schema-registry", url).error
    assert offline("schemas", "list", "--schema-registry", "http://127.0.0.1:1").error
    (files / "latin.avsc").write_bytes('{"doc": "caf\u00e9"}'.encode("latin-1"))
    refused = offline("schemas", "register", "s", f"{files}/latin.avsc", "--schema-registry", url).error
    assert refused == f"{files}/latin.avsc is not UTF-8 text"
    assert "none.avsc" in offline("schemas", "register", "s", f"{files}/none.avsc", "--schema-registry", url).error


def test_a_broker_runs_a_registry_beside_itself(offline: Moldau, tmp_path: Path, files: Path) -> None:
    command = ("server", "start", "--port", "0", "--registry-port", "0", "--data-dir", str(tmp_path / "data"))
    with started(*command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert str(process.stdout.readline()).startswith("listening on localhost:")
            line = str(process.stdout.readline())
            assert line.startswith("schema registry listening on http://localhost:")
            at = ("--schema-registry", line.split()[-1])
            assert offline("schemas", "register", "orders-value", f"{files}/order.avsc", *at).out == "1\n"
        finally:
            process.terminate()
        assert process.wait(stretched(30)) == 0


def test_a_registry_beside_a_broker_whose_port_is_taken_is_one_sentence(
    offline: Moldau, tmp_path: Path, url: str
) -> None:
    port = url.rpartition(":")[2]
    command = ("server", "start", "--host", "127.0.0.1", "--port", "0", "--registry-port", port)
    with started(
        *command, "--data-dir", str(tmp_path / "data"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        _, errors = process.communicate(timeout=stretched(30))
    assert process.returncode == 1 and f"cannot listen on 127.0.0.1:{port}" in errors.decode()
