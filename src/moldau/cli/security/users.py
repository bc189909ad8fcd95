"""`moldau users`: add, remove, list those that log in by SCRAM."""

from typing import Annotated

from moldau.cli.command_line import Argument, Group, Option
from moldau.cli.options import BOOTSTRAP, BootstrapServer, Json, reachable
from moldau.cli.output import print_json, print_table
from moldau.cli.security.passwords import password_in, typed_password
from moldau.client.administration.admin import Admin
from moldau.client.administration.asking import only
from moldau.client.administration.scram import ITERATIONS, MECHANISMS, ScramDeletion, ScramUpsertion
from moldau.errors import ConfigError

app = Group("users")
User = Annotated[str, Argument("NAME", help="The user.")]
Mechanism = Annotated[
    list[str] | None,
    Option("--mechanism", metavar="NAME", help="SCRAM-SHA-256 or SCRAM-SHA-512; repeatable. Both by default."),
]


@app.command()
def add(
    user: User,
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    password_file: Annotated[
        str | None,
        Option("--password-file", metavar="FILE", help="Read the password from this file; - is the input."),
    ] = None,
    mechanism: Mechanism = None,
    iterations: Annotated[
        int, Option(min=4096, max=16384, help="SCRAM iterations: more make guessing a password slower.")
    ] = ITERATIONS,
    as_json: Json = False,
) -> None:
    """
    Add a user, or change a user's password. The command asks for the password at the terminal, or reads it from a file.
    It sends keys that are derived from the password: the brokers never see the password.

    Examples:

      moldau users add alice

      moldau users add alice --password-file alice.txt --mechanism SCRAM-SHA-512
    """
    mechanisms = _mechanisms(mechanism)
    brokers = reachable(bootstrap_server)
    password = password_in(password_file) if password_file is not None else typed_password(user)
    with Admin(brokers) as admin:
        for name in mechanisms:  # a request may alter a user once
            made = ScramUpsertion(user, password, name, iterations)  # type: ignore[arg-type]
            only(admin.alter_user_scram_credentials([made]))
    if as_json:
        print_json([{"user": user, "mechanism": name, "iterations": iterations} for name in mechanisms])
    else:
        print(f"{user} logs in by {' and '.join(mechanisms)}")


@app.command()
def remove(
    user: User, bootstrap_server: BootstrapServer = BOOTSTRAP, mechanism: Mechanism = None, as_json: Json = False
) -> None:
    """
    Remove a user's credentials. Its connections stay open; it cannot log in again.

    Examples:

      moldau users remove alice
    """
    with Admin(reachable(bootstrap_server)) as admin:
        known = [str(one.mechanism) for one in admin.describe_user_scram_credentials([user])[user]]
        removed = _mechanisms(mechanism) if mechanism else known
        for name in removed:
            only(admin.alter_user_scram_credentials([ScramDeletion(user, name)]))  # type: ignore[arg-type]
    if as_json:
        print_json([{"user": user, "mechanism": name} for name in removed])
    else:
        print(f"{user} is removed" if not mechanism else f"{user} no longer logs in by {' and '.join(mechanism)}")


@app.command("list")
def list_users(bootstrap_server: BootstrapServer = BOOTSTRAP, as_json: Json = False) -> None:
    """
    List the users that log in by SCRAM, their mechanisms, and how many iterations each has.

    Examples:

      moldau users list --json
    """
    with Admin(reachable(bootstrap_server)) as admin:
        users = admin.describe_user_scram_credentials()
    rows = [(user, one.mechanism, one.iterations) for user, kept in sorted(users.items()) for one in kept]
    if as_json:
        print_json([{"user": user, "mechanism": name, "iterations": count} for user, name, count in rows])
    else:
        print_table(["USER", "MECHANISM", "ITERATIONS"], rows)


def _mechanisms(named: list[str] | None) -> list[str]:
    """Raises `ConfigError`."""
    for name in named or ():
        if name not in MECHANISMS.values():
            raise ConfigError(f"--mechanism is one of {', '.join(MECHANISMS.values())}, not {name!r}")
    return list(dict.fromkeys(named or MECHANISMS.values()))
