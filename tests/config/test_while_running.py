"""Settings of a broker that are only set while it runs."""

import pytest

from moldau.config import RATES, broker_config, with_changes


@pytest.mark.parametrize("name", RATES)
def test_a_rate_is_in_force_once_it_is_set_and_until_it_is_taken_back(name: str) -> None:
    config = broker_config({})[0]
    field = RATES[name].field
    assert getattr(config, field) is None
    assert getattr(with_changes(config, {name: "1000"}), field) == 1000
    assert with_changes(config, {}) == config


@pytest.mark.parametrize("name", RATES)
def test_a_rate_in_a_file_has_no_effect_and_a_warning_that_says_how_it_is_set(name: str) -> None:
    config, warnings = broker_config({name: "1000"})
    assert getattr(config, RATES[name].field) is None
    [warning] = [one for one in warnings if name in one]
    assert "moldau configs alter broker" in warning
