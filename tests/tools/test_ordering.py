"""In which order groups of tests go to workers."""

from tools.ordering import Expected, folder_by_folder, from_both_ends

GROUPS = {
    "log/short": Expected(1, 1),
    "log/long": Expected(4, 3),
    "net/waits": Expected(6, 0.5),
    "log/waits": Expected(2, 0.1),
    "net/busy": Expected(3, 3),
    "zoo/waits": Expected(0, 0),
}


def folder(name: str) -> str:
    return name.partition("/")[0]


def test_folders_are_done_one_after_the_other_and_what_takes_longest_first() -> None:
    order = folder_by_folder(GROUPS, folder)
    assert order == ["net/waits", "net/busy", "log/long", "log/waits", "log/short", "zoo/waits"]


def test_groups_that_wait_are_at_the_back_and_either_end_begins_with_the_folder_with_most_to_do() -> None:
    order = from_both_ends(GROUPS, folder)
    assert order == ["log/long", "log/short", "net/busy", "zoo/waits", "log/waits", "net/waits"]
    assert from_both_ends({}, folder) == []
