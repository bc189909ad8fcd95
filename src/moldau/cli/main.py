"""Where the command `moldau` begins and ends: which group it is, and how a failure looks.

`moldau server start` is dispatched before anything of the other commands is imported, because the time until a broker
listens counts. Whatever goes wrong is one sentence on standard error and an exit code that is not 0. It is 2 for a
wrong setting of a command that runs until it is stopped: a service manager need not start that again. Ctrl-C is 130,
SIGTERM 143; both say nothing, and let a command finish what it has begun: a consumer commits and leaves its group. A
reader that went away (`moldau consume ... | head`) ends the command without a word, too.
"""

import gc
import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from moldau.cli.terminated import Terminated, terminable
from moldau.errors import ConfigError, MoldauError

FAILURE, USAGE, INTERRUPTED, TERMINATED = 1, 2, 130, 143
SERVICES = ("server start", "cluster start", "zookeeper start", "registry start", "mirror start", "console")
"""The commands that run until they are stopped."""
COLLECTED_AFTER = 50_000
"""So many objects are made before the garbage collector looks for what is to go: imports make tens of thousands, which
stay. Looking through them at every 700 would be a tenth of a short command."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given[:2] != ["server", "start"]:  # a broker has rules of its own
        gc.set_threshold(COLLECTED_AFTER, 20, 20)
    code = run(given)
    if given[:1] == ["pipeline"]:
        # All is done and said: a second Ctrl-C or SIGTERM, sent to the work that has ended, changes no exit code.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run one command; returns the exit code."""
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except MoldauError as failure:
        is_service = not {*arguments[:1], " ".join(arguments[:2])}.isdisjoint(SERVICES)
        return _say(str(failure), USAGE if is_service and isinstance(failure, ConfigError) else FAILURE)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else FAILURE
    except Terminated:
        return TERMINATED
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILURE
    except UnicodeEncodeError:
        return _say("an argument is not UTF-8", USAGE)
    except UnicodeDecodeError:
        return _say("the input is not UTF-8 text")
    except OSError as failure:
        return _say(_sentence(failure))
    return code


def _run(arguments: list[str]) -> int:
    if arguments[:2] == ["server", "start"]:
        from moldau.cli.server.start import run_broker

        return run_broker(arguments[2:])
    if arguments in (["--version"], ["version"]):
        from moldau.cli.version import version

        print(version())
        return 0
    with terminable():
        from moldau.cli.app import run_app

        return run_app(arguments)


def _sentence(failure: OSError) -> str:
    """A sentence about a file that could not be used."""
    if not failure.filename:
        return str(failure.strerror or failure)
    path = os.fsdecode(failure.filename)
    if isinstance(failure, FileExistsError | NotADirectoryError) and not os.path.isdir(path):
        return f"{path} is not a folder"
    return f"{path}: {failure.strerror}"


def _say(sentence: str, code: int = FAILURE) -> int:
    print(f"error: {sentence}", file=sys.stderr)
    return code
