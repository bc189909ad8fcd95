"""The page of settings says every setting; `make lint` compares the page in the tree with what would be written."""

from dataclasses import replace

from moldau.config import CLIENT_METRICS_SETTINGS, GROUP_SETTINGS, RATES, SETTINGS, TOPIC_SETTINGS
from tools import settings_page


def test_every_setting_is_on_the_page_with_its_sentence() -> None:
    lines = settings_page.page(SETTINGS, TOPIC_SETTINGS, GROUP_SETTINGS).splitlines()
    tables = SETTINGS, TOPIC_SETTINGS, GROUP_SETTINGS, RATES, CLIENT_METRICS_SETTINGS
    for setting in [setting for table in tables for setting in table.values()]:
        assert setting.sentence.endswith(".")
        start = f"| `{setting.name}` |"
        assert any(line.startswith(start) and setting.sentence in line for line in lines), setting.name


def test_a_changed_setting_changes_the_page() -> None:
    name, setting = next(iter(SETTINGS.items()))
    changed = {**SETTINGS, name: replace(setting, sentence="Something else.")}
    assert settings_page.page(changed, TOPIC_SETTINGS, GROUP_SETTINGS) != settings_page.page(
        SETTINGS, TOPIC_SETTINGS, GROUP_SETTINGS
    )
