"""Bugs of access rights, their audit and quotas put in on purpose: the tests of each rule find them."""

from collections.abc import Callable
from typing import Any

import pytest

from moldau.cluster.state.acls import AclPermission
from moldau.security.quotas.buckets import TokenBucket
from moldau.security.rules import RightDecision, fits
from tests.replacing import Instead, assert_found, nothing, returns, with_patches
from tests.security import test_audit as audit
from tests.security import test_authorizer as authorizer
from tests.security import test_rules as rules
from tests.security import test_selecting as selecting
from tests.security.quotas import test_buckets as buckets
from tests.security.quotas import test_client_use as client_use
from tests.security.quotas import test_entities as entities

RULES = "moldau.security.rules"
QUOTAS = "moldau.security.quotas"
Do = Callable[..., Any]


def _first_entry_decides(decided: Do, matching: Any, who: Any, operation: int, *rest: Any) -> RightDecision:
    for pattern, entries in matching:
        for entry in entries:
            if fits(entry, who, operation):
                return RightDecision(entry.permission is AclPermission.ALLOW, "Acl", (pattern, entry))
    return decided((), who, operation, *rest)  # type: ignore[no-any-return]


def _denies_what_is_implied(fits: Do, entry: Any, *rest: Any) -> bool:
    return fits(entry._replace(permission=AclPermission.ALLOW), *rest)  # type: ignore[no-any-return]


def _looks_at_no_denial(allowed_somewhere: Do, acls: Any, *rest: Any) -> bool:
    without = [
        (pattern, [one for one in entries if one.permission is not AclPermission.DENY]) for pattern, entries in acls
    ]
    return allowed_somewhere(without, *rest)  # type: ignore[no-any-return]


def _waits_without_bound(denied: Do, self: Any, *denial: Any) -> None:
    self._note(*denial)
    self._begin()


def _all_users_together(limit: Do, *of: Any) -> Any:
    found = limit(*of)
    return found and found._replace(user=None)


def _forgives_debts(spend: Do, self: TokenBucket, *spent: Any) -> None:
    spend(self, *spent)
    self._tokens = max(self._tokens, 0)


BUGS: dict[str, tuple[Instead, Callable[[], None]]] = {
    "a permission that comes first wins over a denial": (
        Instead(f"{RULES}:decided", _first_entry_decides),
        rules.test_the_first_denial_that_fits_wins_over_every_permission,
    ),
    "a denied operation denies what it would imply": (
        Instead(f"{RULES}:fits", _denies_what_is_implied),
        rules.test_a_denied_operation_denies_no_operation_that_it_would_imply,
    ),
    "an address in another form is another host": (
        Instead(f"{RULES}:address", lambda _, host: host),
        rules.test_texts_of_one_address_are_the_same_host,
    ),
    "a denied topic counts as one that may be written": (
        Instead(f"{RULES}:allowed_somewhere", _looks_at_no_denial),
        lambda: rules.test_whether_any_topic_may_be_written(["allow ann write te...", "deny ann write t..."], False),
    ),
    "decisions are kept when ACLs change": (
        Instead("moldau.security.authorizer:AclAuthorizer._forget", nothing),
        authorizer.test_a_change_of_acls_is_decided_by_at_once,
    ),
    "a filter of ACLs selects those of any principal": (
        Instead("moldau.security.selecting:AclSelection.selects_entry", returns(True)),
        lambda: selecting.test_a_filter_selects_entries_that_are_equal_to_it({"principal": "User:bob"}, False),
    ),
    "denials wait for the audit log without a bound": (
        Instead("moldau.security.audit:Audit.denied", _waits_without_bound),
        with_patches(audit.test_lines_that_do_not_fit_are_counted),
    ),
    "users share the quota of the default user": (
        Instead(f"{QUOTAS}.entities:QuotaTable.limit", _all_users_together),
        lambda: entities.test_the_most_specific_quota_holds(5),
    ),
    "what was used beyond a quota is forgiven": (
        Instead(f"{QUOTAS}.buckets:TokenBucket.spend", _forgives_debts),
        buckets.test_a_burst_of_eleven_seconds_is_free_and_debts_are_waited_for,
    ),
    "each session has a quota of its own": (
        Instead(f"{QUOTAS}.sensors:Sensors.of", lambda _, self, *use: self._make()),
        client_use.test_all_sessions_of_a_client_share_its_quota_also_after_hours,
    ),
    "a throttled fetch counts with the records that it lacks": (
        Instead(
            "moldau.rates:SampledRate.record", lambda record, self, value, now_ms: record(self, max(value, 0), now_ms)
        ),
        client_use.test_a_fetch_of_a_client_that_takes_too_much_time_is_empty_and_its_bytes_do_not_count,
    ),
}


@pytest.mark.bug
@pytest.mark.parametrize("name", BUGS)
def test_a_bug_put_in_on_purpose_is_found(name: str) -> None:
    assert_found(*BUGS[name])
