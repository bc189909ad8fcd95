"""The scripts of `moldau completion`, run by the shells that this machine has."""

import shutil
import subprocess

from tests.cli.conftest import Moldau


def completed(script: str, shell: str, *words: str) -> list[str]:
    """What a shell offers behind these words."""
    line = " ".join(f"'{word}'" for word in words)
    asked = f"COMP_WORDS=(moldau {line}); COMP_CWORD={len(words)}; _moldau; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    ran = subprocess.run([shell, "-c", f"{script}\n{asked}"], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stderr == ""
    return ran.stdout.split()


def test_bash_completes_commands_and_options(offline: Moldau) -> None:
    bash = shutil.which("bash") or "bash"
    script = offline("completion", "bash").out
    assert sorted(completed(script, bash, "topics", "del")) == ["delete", "delete-records"]
    assert sorted(completed(script, bash, "con")) == ["configs", "console", "consume"]
    assert completed(script, bash, "topics", "delete-records", "events", "--be") == ["--before"]
    assert completed(script, bash, "consume", "--from-b") == ["--from-beginning"]
    assert completed(script, bash, "completion", "z") == ["zsh"]
    assert completed(script, bash, "consume", "orders", "--value-type", "do") == ["double"]
    assert completed(script, bash, "consume", "--bootstrap-server", "--") == [], "any value may follow"
    assert "--json" in completed(script, bash, "consume", "orders", "--from-beginning", "--")


def test_zsh_and_fish_have_scripts_of_their_own(offline: Moldau) -> None:
    zsh, fish = offline("completion", "zsh").out, offline("completion", "fish").out
    assert zsh.startswith("autoload -U +X bashcompinit && bashcompinit\n")
    assert "__fish_seen_subcommand_from topics; and not __fish_seen_subcommand_from list create" in fish
    assert "-l before -r -F -d 'Delete the records below this offset" in fish
    assert "-l value-type -x -a 'text short int long float double boolean hex base64'" in fish
    for name in ("zsh", "fish"):
        if (shell := shutil.which(name)) is not None:
            checked = subprocess.run([shell, "-n"], input=zsh if name == "zsh" else fish, text=True, timeout=60)
            assert checked.returncode == 0


def test_another_shell_is_refused(offline: Moldau) -> None:
    assert "'tcsh' is not one of bash, zsh, fish" in offline("completion", "tcsh").error
