"""Tests in forked workers: what is reported, what is shared out, and what is left of a worker that dies."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytest_plugins = ["pytester"]
CONFTEST = """
import os, pathlib, pytest

@pytest.fixture(scope="session", autouse=True)
def worker(tmp_path_factory):
    notes = pathlib.Path("workers")
    notes.joinpath(f"began-{os.getpid()}").write_text(str(tmp_path_factory.getbasetemp()))
    yield
    notes.joinpath(f"ended-{os.getpid()}").touch()

@pytest.fixture(scope="module")
def module():
    yield
    pathlib.Path("workers", f"module-{os.getpid()}").touch()
"""


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> "Run":
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeconftest(CONFTEST)
    pytester.mkdir("workers")
    return Run(pytester)


class Run:
    def __init__(self, pytester: pytest.Pytester):
        self._pytester = pytester

    def __call__(self, *options: str, **files: str) -> pytest.RunResult:
        self._pytester.makepyfile(**files)
        plugins = ("-p", "tools.forks", "-p", "no:cacheprovider")
        return self._pytester.runpytest_subprocess(*plugins, "--forks", "2", *options)

    def notes(self, kind: str) -> list[Path]:
        return sorted((self._pytester.path / "workers").glob(f"{kind}-*"))


def test_every_outcome_is_told_with_what_was_printed_and_its_reason(run: Run) -> None:
    done = run(
        test_a="""
            import pathlib, pytest, time
            def test_both_workers_begin():
                while len(list(pathlib.Path("workers").glob("began-*"))) < 2:
                    time.sleep(0.01)
            @pytest.mark.parametrize("n", range(3))
            def test_fine(n, module): pass
            def test_bad():
                print("said before")
                assert [1] == [2]
            def test_skipped(): pytest.importorskip("nothing_like_it")
            """,
        test_b="""
            import pytest, warnings
            @pytest.fixture
            def broken():
                yield
                raise ValueError("at its end")
            def test_broken(broken): pass
            def test_warns(): warnings.warn("it is old", UserWarning)
            def test_expected(): pytest.xfail("as it should")
            """,
    )
    done.assert_outcomes(passed=6, failed=1, errors=1, skipped=1, xfailed=1, warnings=1)
    done.stdout.fnmatch_lines(["*assert [[]1[]] == [[]2[]]*", "said before", "*UserWarning: it is old*"])
    assert done.ret == 1
    assert len(run.notes("began")) == len(run.notes("ended")) == 2 and len(run.notes("module")) == 1
    assert len({note.read_text() for note in run.notes("began")}) == 2, "each worker has its folder"


def test_a_worker_that_dies_fails_its_test_and_the_others_of_its_group_still_run(run: Run) -> None:
    done = run(
        test_a="""
            import os
            def test_before(): pass
            def test_dies(): os._exit(3)
            def test_after(): pass
            """,
        test_b="def test_other(): pass",
    )
    done.assert_outcomes(passed=3, failed=1)
    assert done.ret == 1
    done.stdout.fnmatch_lines(["*died while it ran test_a.py::test_dies*"])


def test_what_is_marked_goes_to_one_worker_and_the_end_of_a_session_may_fail(run: Run) -> None:
    together = """
        import os, pathlib, pytest, time
        @pytest.fixture(scope="session")
        def broken():
            yield
            raise ValueError("at the end")
        @pytest.mark.together("all")
        def test_one(broken):
            time.sleep(0.1)
            pathlib.Path("workers", f"ran-{os.getpid()}").touch()
        """
    done = run(**{f"test_{name}": together for name in "abcdef"})
    assert len(run.notes("ran")) == 1, "six files of one group"
    assert done.parseoutcomes()["passed"] == 6 and done.parseoutcomes()["errors"] == 1


def test_workers_take_groups_from_both_ends(run: Run, pytester: pytest.Pytester) -> None:
    notes = """
        import os, pathlib, time
        def test_notes_its_worker():
            time.sleep(0.3)
            pathlib.Path("workers", f"{os.environ['PYTEST_XDIST_WORKER']}-{__name__}").touch()
        """
    run(**{f"test_{name}": notes for name in "abcd"}).assert_outcomes(passed=4)
    assert {path.name for path in run.notes("gw0")} >= {"gw0-test_a"}
    assert {path.name for path in run.notes("gw1")} >= {"gw1-test_d"}


def test_groups_of_several_folders_follow_each_other(run: Run, pytester: pytest.Pytester) -> None:
    for number in range(4):
        pytester.mkpydir(f"folder{number}").joinpath("test_it.py").write_text("def test_fine(module): pass")
        pytester.path.joinpath(f"folder{number}", "test_other.py").write_text("def test_fine(module): pass")
    run(test_a="def test_fine(module): pass").assert_outcomes(passed=9)


def test_it_stops_after_as_many_failures_as_are_allowed(run: Run) -> None:
    files = {f"test_{number}": "def test_bad(): assert False" for number in range(20)}
    done = run("--maxfail", "1", **files)
    assert done.ret == 1 and 1 <= done.parseoutcomes()["failed"] <= 3


def test_a_file_that_cannot_be_collected_ends_the_run(run: Run) -> None:
    done = run(test_a="import nothing_like_it", test_b="def test_fine(): pass")
    assert done.ret == 2 and "passed" not in done.parseoutcomes()
