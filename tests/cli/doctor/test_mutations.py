"""Bugs of the doctor put in on purpose: the tables of its checks, and what a bundle must not have, find them."""

from collections.abc import Callable
from typing import Any

import pytest

from moldau.cli.doctor.checks.addresses import AddressFacts
from tests.cli.doctor import test_bundle as bundle
from tests.cli.doctor import test_checks as checks
from tests.replacing import Instead, assert_found, returns

CHECKS = "moldau.cli.doctor.checks"
REDACTING = "moldau.cli.doctor.redacting"
Do = Callable[..., Any]
ERROR, WARNING = checks.ERROR, checks.WARNING


def _learns_the_setting_alone(learn_settings: Do, self: Any, properties: Any) -> None:
    for name, value in properties.items():
        if bundle.is_secret(name):
            self.learn(value)


def _believes_the_bootstrap(of_brokers: Do, facts: AddressFacts) -> Any:
    return of_brokers(facts._replace(bootstrap=()))


def full_disk() -> None:
    disk = checks.DiskFacts("/d", True, "", 100 * checks.GB, 10 << 20)
    checks.test_disks(disk, ERROR, ("is full: 10.0 MB are left",))


def own_address() -> None:
    broker = checks.ConnectionAttempt("localhost", 9092, ("127.0.0.1",))
    checks.test_addresses(checks.GOOD, (broker,), ERROR, ("which is laptop itself there",))


BUGS: dict[str, tuple[Instead, Callable[[], None]]] = {
    "a full disk is not told": (Instead(f"{CHECKS}.disks:_space", returns(())), full_disk),
    "a broker that tells clients to connect to themselves is not told": (
        Instead(f"{CHECKS}.addresses:_of_brokers", _believes_the_bootstrap),
        own_address,
    ),
    "brokers that run are to be started": (
        Instead(
            f"{CHECKS}.replicas:_start", lambda start, partitions, status: start(partitions, {**status, "brokers": []})
        ),
        lambda: checks.test_replicas(
            {"unhealthy": [checks.SICK]}, WARNING, ("Start broker 3; wait until broker 2 has",)
        ),
    ),
    "a wrong setting is not told": (
        Instead(f"{CHECKS}.configuration:of_settings", returns([])),
        checks.test_settings_that_are_sound_have_no_diagnosis_and_all_wrong_lines_are_named,
    ),
    "the folder of another broker is not told": (
        Instead(f"{CHECKS}.log_folders:of_stopped", lambda of, folders, _=None: of(folders)),
        lambda: checks.test_folders_of_stopped_brokers(checks.OWN._replace(owner="2"), ERROR, ("belongs to broker 2",)),
    ),
    "warnings end a command as errors do": (
        Instead(f"{CHECKS}.diagnosis:has_errors", lambda _, found: bool(found)),
        checks.test_the_worst_comes_first_and_each_once,
    ),
    "a secret is hidden as it is written alone": (
        Instead(f"{REDACTING}:_forms", lambda _, secret: [secret]),
        bundle.test_a_secret_is_hidden_in_every_form,
    ),
    "the password in a login module's options is not a secret": (
        Instead(f"{REDACTING}:Redactor.learn_settings", _learns_the_setting_alone),
        bundle.test_a_secret_is_hidden_in_every_form,
    ),
    "a setting of another program is not a secret": (
        Instead(f"{REDACTING}:is_secret", returns(False)),
        lambda: bundle.test_settings_that_are_secrets("some.unknown.token", True),
    ),
}


@pytest.mark.bug
@pytest.mark.parametrize("name", BUGS)
def test_a_bug_put_in_on_purpose_is_found(name: str) -> None:
    assert_found(*BUGS[name])
