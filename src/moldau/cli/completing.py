"""`moldau completion`: scripts that complete commands and options in a shell.

A script holds all commands and options as data, so that a shell completes without starting Python.
"""

import enum
import importlib
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any

from moldau.cli.command_line import HELP, Argument, Group, Parameter, parameters_of
from moldau.cli.options import with_command_config


class Shell(enum.Enum):
    """A shell that we write a script for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(shell: Annotated[Shell, Argument("bash|zsh|fish", help="The shell.")]) -> None:
    """
    Print a script that completes commands and options. bash: `source <(moldau completion bash)` in ~/.bashrc. zsh: the
    same in ~/.zshrc, behind `compinit`. fish: `moldau completion fish > ~/.config/fish/completions/moldau.fish`.

    Examples:

      source <(moldau completion bash)

      moldau completion fish > ~/.config/fish/completions/moldau.fish
    """
    words = dict(_words())
    print(script_of(shell, words), end="")


def script_of(shell: Shell, words: Mapping[str, list[str]]) -> str:
    """The script; `words` maps each path of commands, such as `topics create`, to what may follow."""
    if shell is Shell.FISH:
        return _fish(words)
    cases = "\n".join(f"    '{path}') words='{' '.join(following)}' ;;" for path, following in words.items())
    wake = "autoload -U +X bashcompinit && bashcompinit\n" if shell is Shell.ZSH else ""
    return _BASH.replace("@wake@", wake).replace("@cases@", cases)


_BASH = """@wake@_moldau() {
  local current="${COMP_WORDS[COMP_CWORD]}" path='' words='' word
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in -*) ;; *) _moldau_words "${path:+$path }$word" && path="${path:+$path }$word" ;; esac
  done
  _moldau_words "$path"
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


def _fish(words: Mapping[str, list[str]]) -> str:
    lines = ["complete -c moldau -f"]
    for path, following in words.items():
        seen = [f"__fish_seen_subcommand_from {name}" for name in path.split()]
        commands = [word for word in following if not word.startswith("-")]
        none_yet = f"not __fish_seen_subcommand_from {' '.join(commands)}" if commands else ""
        condition = "; and ".join([*seen, none_yet] if none_yet else seen)
        for word in commands:
            lines.append(f"complete -c moldau -n '{condition}' -a {word}")
        for word in following:
            if word.startswith("--"):
                lines.append(f"complete -c moldau -n '{condition}' -l {word.removeprefix('--')} -F")
    return "\n".join(lines) + "\n"


def _words() -> Iterator[tuple[str, list[str]]]:
    from moldau.cli.app import PLACES

    yield "", [*PLACES, "--version", *HELP]
    for name, place in PLACES.items():
        found: Group | Callable[..., Any] = getattr(importlib.import_module(place.module), place.name)
        if isinstance(found, Group):
            yield name, [*found.commands, *HELP]
            for one, function in found.commands.items():
                yield f"{name} {one}", _options(with_command_config(parameters_of(function)))
        else:
            yield name, _options(with_command_config(parameters_of(found)))


def _options(parameters: list[Parameter]) -> list[str]:
    choices = [
        str(one.value)
        for parameter in parameters
        if isinstance(parameter.about, Argument) and issubclass(parameter.kind, enum.Enum)
        for one in parameter.kind
    ]
    return [*choices, *(name for parameter in parameters for name in parameter.names), *HELP]
