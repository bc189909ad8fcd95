"""`moldau completion`: scripts that complete commands, options and the values of options in a shell.

A script holds all of them as data, so that a shell completes without starting Python.
"""

import enum
import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

from moldau.cli.command_line import HELP, Argument, Group, Parameter, parameters_of
from moldau.cli.help import first_sentence
from moldau.cli.options import with_command_config


class Shell(enum.Enum):
    """A shell that we write a script for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


class Offered(NamedTuple):
    """What may follow a path of commands such as `topics create`: each word with a line about it, and for each option
    that takes a value, the values to choose from, none if it takes any."""

    words: Mapping[str, str]
    values: Mapping[str, Sequence[str]] = {}


def completion(shell: Annotated[Shell, Argument("bash|zsh|fish", help="The shell.")]) -> None:
    """
    Print a script that completes commands and options. bash: `source <(moldau completion bash)` in ~/.bashrc. zsh:
    `source <(moldau completion zsh)` in ~/.zshrc, after `compinit`. fish: `moldau completion fish >
    ~/.config/fish/completions/moldau.fish`.

    Examples:

      source <(moldau completion bash)

      moldau completion fish > ~/.config/fish/completions/moldau.fish
    """
    print(script_of(shell, dict(_offered())), end="")


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


def _offered() -> Iterator[tuple[str, Offered]]:
    from moldau.cli.app import PLACES

    helps = dict.fromkeys(HELP, "Show help and exit.")
    about = {name: place.summary for name, place in PLACES.items()}
    yield "", Offered({**about, "--version": "Print the version and end.", **helps})
    for name, place in PLACES.items():
        found: Group | Callable[..., Any] = getattr(importlib.import_module(place.module), place.name)
        if isinstance(found, Group):
            sentences = {one: first_sentence(function.__doc__ or "") for one, function in found.commands.items()}
            yield name, Offered({**sentences, **helps})
            for one, function in found.commands.items():
                yield f"{name} {one}", _following(with_command_config(parameters_of(function)), helps)
        else:
            yield name, _following(with_command_config(parameters_of(found)), helps)


def _following(parameters: list[Parameter], helps: Mapping[str, str]) -> Offered:
    words: dict[str, str] = {}
    values: dict[str, Sequence[str]] = {}
    for parameter in parameters:
        choices = [str(one.value) for one in parameter.kind] if issubclass(parameter.kind, enum.Enum) else []
        if isinstance(parameter.about, Argument):
            words |= dict.fromkeys(choices, parameter.about.help)
            continue
        words |= dict.fromkeys(parameter.names, parameter.about.help)
        if parameter.kind is not bool:
            values |= dict.fromkeys(parameter.names, choices)
    return Offered({**words, **helps}, values)
