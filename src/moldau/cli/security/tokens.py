"""`moldau tokens`: create, renew, expire, list delegation tokens, as Kafka's `kafka-delegation-tokens`."""

from typing import Annotated, Any

from moldau.cli.command_line import Argument, Group, Option
from moldau.cli.options import BOOTSTRAP, BootstrapServer, Json, reachable
from moldau.cli.output import print_json, print_table, time_text
from moldau.cli.security.passwords import password_in
from moldau.client.administration.admin import Admin
from moldau.client.administration.tokens import TokenDescription
from moldau.errors import ConfigError
from moldau.transport.sasl.exchange import SaslFailed, from_base64, to_base64

app = Group("tokens")
Secret = Annotated[
    str,
    Argument("HMAC", help="The token's secret, as create prints it; @FILE reads it from a file, @- from the input."),
]


@app.command()
def create(
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    owner: Annotated[
        str | None, Option("--owner", metavar="NAME", help="The owner, if not the user that is logged in.")
    ] = None,
    renewer: Annotated[
        list[str] | None, Option("--renewer", metavar="NAME", help="A user that may renew it; repeatable.")
    ] = None,
    max_lifetime: Annotated[
        int | None, Option("--max-lifetime", min=1, metavar="MS", help="The longest life of the token.")
    ] = None,
    as_json: Json = False,
) -> None:
    """
    Create a delegation token of the user that the command logs in as. A client with its secret can log in as that user:
    by SCRAM, with the id as the user, the HMAC as the password, and tokenauth="true" in the login module.

    Examples:

      moldau tokens create --command-config alice.properties --renewer scheduler --json
    """
    with Admin(reachable(bootstrap_server)) as admin:
        token = admin.create_delegation_token(owner=owner, renewers=renewer or [], max_lifetime_ms=max_lifetime)
    _show([token], as_json, with_secret=True)


@app.command()
def renew(
    secret: Secret,
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    period: Annotated[int | None, Option("--period", min=1, metavar="MS", help="For how long.")] = None,
    as_json: Json = False,
) -> None:
    """
    Renew a delegation token.

    Examples:

      moldau tokens renew @token.hmac --command-config alice.properties
    """
    brokers = reachable(bootstrap_server)
    hmac = _hmac(secret)
    with Admin(brokers) as admin:
        until_ms = admin.renew_delegation_token(hmac, period)
    if as_json:
        print_json({"expires": time_text(until_ms)})
    else:
        print(f"expires at {time_text(until_ms)}")


@app.command()
def expire(
    secret: Secret,
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    period: Annotated[
        int | None, Option("--period", min=0, metavar="MS", help="The time until it ends; by default it ends at once.")
    ] = None,
    as_json: Json = False,
) -> None:
    """
    End a delegation token at once, or after --period.

    Examples:

      moldau tokens expire @token.hmac --command-config alice.properties
    """
    brokers = reachable(bootstrap_server)
    hmac = _hmac(secret)
    with Admin(brokers) as admin:
        until_ms = admin.expire_delegation_token(hmac, -1 if period is None else period)
    if as_json:
        print_json({"expires": time_text(until_ms)})
    else:
        print("ended" if period is None else f"expires at {time_text(until_ms)}")


@app.command("list")
def list_tokens(
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    owner: Annotated[
        list[str] | None, Option("--owner", metavar="NAME", help="Only tokens of this user; repeatable.")
    ] = None,
    as_json: Json = False,
) -> None:
    """
    List the delegation tokens that the user may see; with --json also their secrets.

    Examples:

      moldau tokens list --command-config alice.properties
    """
    with Admin(reachable(bootstrap_server)) as admin:
        tokens = admin.describe_delegation_tokens(owner)
    _show(sorted(tokens, key=lambda one: (one.owner, one.issued_ms)), as_json, with_secret=as_json)


def _show(tokens: list[TokenDescription], as_json: bool, with_secret: bool) -> None:
    if as_json:
        print_json([_fields(one) for one in tokens])
        return
    secret = ["HMAC"] if with_secret else []
    rows = [
        [one.token_id, *([to_base64(one.hmac)] if with_secret else []), one.owner, one.renewers or None,
         time_text(one.expires_ms), time_text(one.max_ms)]
        for one in tokens
    ]  # fmt: skip
    print_table(["TOKEN", *secret, "OWNER", "RENEWERS", "EXPIRES", "LAST RENEWAL"], rows)


def _fields(one: TokenDescription) -> dict[str, Any]:
    return {
        "token_id": one.token_id,
        "hmac": to_base64(one.hmac),
        "owner": one.owner,
        "requester": one.requester,
        "renewers": list(one.renewers),
        "issued": time_text(one.issued_ms),
        "expires": time_text(one.expires_ms),
        "last_renewal": time_text(one.max_ms),
    }


def _hmac(text: str) -> bytes:
    """Raises `ConfigError`."""
    secret = password_in(text[1:]) if text.startswith("@") else text
    try:
        return from_base64(secret.strip())
    except SaslFailed:
        raise ConfigError(
            "HMAC is not the secret of a token: it is base64, as moldau tokens create prints it"
        ) from None
