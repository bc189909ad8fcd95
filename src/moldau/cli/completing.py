"""`moldau completion`: scripts that complete commands, options and the values of options in a shell.

A script holds all of them as data, so that a shell completes without starting Python. They are read from a file, which
`tools/completion_words.py` makes of the commands: to import all of these costs each new shell a third of a second.

    topics list <tab> --json <tab> <tab> Print JSON.               an option without a value
    topics create <tab> --config <tab> = <tab> A setting ...       one with any value
    consume <tab> --value-type <tab> =text int <tab> How ...       one with few values
"""

import enum
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, NamedTuple

from moldau.cli.command_line import Argument

WORDS = Path(__file__).with_name("completion_words.tsv")


class Shell(enum.Enum):
    """A shell that we write a script for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


class Offered(NamedTuple):
    """What may follow a path of commands such as `topics create`: each word with a line about it, and for each option
    that takes a value, the values to choose from, none if it takes any."""

    words: dict[str, str]
    values: dict[str, list[str]]


def completion(shell: Annotated[Shell, Argument("bash|zsh|fish", help="The shell.")]) -> None:
    """
    Print a script that completes commands and options. bash: `source <(moldau completion bash)` in ~/.bashrc. zsh:
    `source <(moldau completion zsh)` in ~/.zshrc, after `compinit`. fish: `moldau completion fish >
    ~/.config/fish/completions/moldau.fish`.

    Examples:

      source <(moldau completion bash)

      moldau completion fish > ~/.config/fish/completions/moldau.fish
    """
    print(script_of(shell, offered()), end="")


def script_of(shell: Shell, offered: Mapping[str, Offered]) -> str:
    """The script, by the path of commands."""
    if shell is Shell.FISH:
        return _fish(offered)
    cases = "\n".join(case for path, one in offered.items() for case in _cases(path, one))
    wake = "autoload -U +X bashcompinit && bashcompinit\n" if shell is Shell.ZSH else ""
    return _BASH.replace("@wake@", wake).replace("@cases@", cases)


_BASH = """@wake@_moldau() {
  local current="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" path='' words='' word
  for word in "${COMP_WORDS[@]:1:$((COMP_CWORD - 1))}"; do
    case "$word" in -*) ;; *) _moldau_words "${path:+$path }$word" && path="${path:+$path }$word" ;; esac
  done
  _moldau_words "$path"
  case "$before" in -*) _moldau_words "$path $before" ;; esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
_moldau_words() {
  case "$1" in
@cases@
    *) return 1 ;;
  esac
}
complete -o default -F _moldau moldau
"""


def _cases(path: str, offered: Offered) -> Iterator[str]:
    """What follows the path, and what follows each option that takes a value: with any value the names of files, which
    the shell offers if there are no words."""
    yield f"    '{path}') words='{' '.join(offered.words)}' ;;"
    by_values: dict[str, list[str]] = {}
    for option, values in offered.values.items():
        by_values.setdefault(" ".join(values), []).append(f"'{path} {option}'")
    for values_text, places in by_values.items():
        yield f"    {'|'.join(places)}) words='{values_text}' ;;"


def _fish(offered: Mapping[str, Offered]) -> str:
    lines = ["complete -c moldau -f"]
    for path, (words, values) in offered.items():
        seen = [f"__fish_seen_subcommand_from {name}" for name in path.split()]
        commands = [word for word in words if not word.startswith("-")]
        none_yet = f"not __fish_seen_subcommand_from {' '.join(commands)}" if commands else ""
        condition = "; and ".join([*seen, none_yet] if none_yet else seen)
        for word, about in words.items():
            what = f"-a {word}"
            if word.startswith("-"):
                what = f"-l {word.removeprefix('--')}" if word.startswith("--") else f"-s {word.removeprefix('-')}"
                if word in values:
                    what += f" -x -a '{' '.join(values[word])}'" if values[word] else " -r -F"
            lines.append(f"complete -c moldau -n '{condition}' {what} -d '{_quoted(about)}'")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")


def offered() -> dict[str, Offered]:
    """By the path of commands."""
    found: dict[str, Offered] = {}
    for line in WORDS.read_text(encoding="utf-8").splitlines():
        path, word, values, about = line.split("\t")
        if path not in found:
            found[path] = Offered({}, {})
        found[path].words[word] = about
        if values:
            found[path].values[word] = values.removeprefix("=").split()
    return found
