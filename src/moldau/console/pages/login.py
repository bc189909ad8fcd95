"""Login and logout: the users are the broker's own, and the broker checks their passwords."""

import asyncio
import math
from urllib.parse import urlencode

from moldau.console.asking.cluster_admin import ClusterAdmin
from moldau.console.context import ConsoleContext
from moldau.console.web.answers import Answer, PageAnswer, redirection
from moldau.console.web.paths import own_path, path_of
from moldau.console.web.requests import PageRequest
from moldau.errors import AuthenticationFailed, MoldauError
from moldau.monotonic import monotonic_s

UNAUTHORIZED, TOO_MANY, BAD_GATEWAY = 401, 429, 502
FAILED_S = 1.0
"""A failed login is answered this late."""
CHARACTERS_MAX = 1_000


async def login_page(console: ConsoleContext, request: PageRequest) -> Answer:
    if not console.has_logins:
        return redirection("/")
    return console.page(request, "login.html", wrong="", given="", to=own_path(request.text("to")))


async def log_in(console: ConsoleContext, request: PageRequest) -> Answer:
    user, password = request.field("user")[:CHARACTERS_MAX], request.field("password")[:CHARACTERS_MAX]
    to = own_path(request.field("to"))
    if not console.has_logins:
        return redirection("/")
    console.logins.refuse_when_full()
    with console.logins.taken():
        async with console.checked_at_once:
            wait_s = console.attempts.wait_s(request.address, user, monotonic_s())
            if wait_s > 0:
                sentence = f"Too many logins of this user have failed: wait {math.ceil(wait_s)} s, then try again."
                return console.page(request, "login.html", TOO_MANY, wrong=sentence, given=user, to=to)
            try:
                admin = await _logged_in(console, user, password)
            except MoldauError as failure:
                is_denied = isinstance(failure, AuthenticationFailed)
                if is_denied:
                    console.attempts.failed(request.address, user, monotonic_s())
                    await asyncio.sleep(FAILED_S)
                sentence = "The broker does not know this user with this password." if is_denied else str(failure)
                status = UNAUTHORIZED if is_denied else BAD_GATEWAY
                return console.page(request, "login.html", status, wrong=sentence, given=user, to=to)
    console.attempts.succeeded(request.address, user)
    session = await console.sessions.log_in(user, admin)
    answer = redirection(to)
    answer.cookies.append(console.sessions.cookie(session))
    return answer


async def _logged_in(console: ConsoleContext, user: str, password: str) -> ClusterAdmin:
    """The clients of this user. Raises `AuthenticationFailed` and other `MoldauError`s."""
    admin = ClusterAdmin({**console.settings.client, "sasl.username": user, "sasl.password": password})
    try:
        await admin.log_in()
    except BaseException:
        await admin.close()
        raise
    return admin


async def log_out(console: ConsoleContext, request: PageRequest) -> Answer:
    await console.sessions.log_out(request.session)
    return redirection("/login" if console.has_logins else "/")


def to_login(request: PageRequest) -> PageAnswer:
    """The way to the login, for a request that needs one, and from there back to its page; htmx follows it with the
    whole page."""
    target = request.target
    if request.is_fragment:
        target = path_of(request.headers.get("referer", ""))
    to = own_path(target) if request.method == "GET" else "/"
    path = "/login" if to == "/" else f"/login?{urlencode({'to': to})}"
    answer = redirection(path)
    if request.is_fragment:
        answer.status = UNAUTHORIZED
        answer.headers.append((b"hx-redirect", path.encode("ascii")))
    return answer
