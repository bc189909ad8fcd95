"""The harness itself: what it covers, that it repeats itself; and in the long mode, fresh seeds for long."""

from harness.tiers import seed_or, sized
from tests.crash_points import coverage
from tests.crash_points.driver import replay, run_many, run_script
from tests.crash_points.story import Script

LONG_POINTS = 200_000


def test_a_point_is_the_same_each_time_it_is_looked_at() -> None:
    first, second = run_script(3, enough=300), run_script(3, enough=300)
    assert (first.points, first.calls, first.covered) == (second.points, second.calls, second.covered)
    assert replay(3, first.calls - 1).points == 1
    assert replay(3, 40, error=True).errors == 1


def test_points_are_counted_and_dealt_out() -> None:
    report = run_many(5, 500, jobs=2)
    assert (report.points, report.failures) == (500, [])
    assert report.scripts >= 2


def test_what_is_not_covered_is_told() -> None:
    covered = coverage.expected() | set(coverage.EXPECTED_ERRORS)
    assert coverage.missing(covered) == []
    assert coverage.missing(covered - {("flush", "fsync")}) == [("flush", "fsync")]


def test_a_story_lives_through_deaths_and_restarts() -> None:
    lives = []
    for seed in range(10):
        script = Script(seed)
        script.run()
        lives.append(script.machine.lives)
        script.machine.dispose()
    assert max(lives) >= 4


def test_fresh_seeds_hold_in_the_long_mode() -> None:
    report = run_many(seed_or(77), sized(300, 300, LONG_POINTS))
    assert not report.failures, report.failures[0]
