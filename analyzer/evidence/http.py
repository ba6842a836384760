"""HTTP with limits: every request has a time-out, a size limit and one clear sentence for each way to fail."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from analyzer.errors import UserError

TOKEN_VARIABLE = "KVAUTOPSY_TOKEN"  # noqa: S105 - the variable's name, not a secret
MAX_ANSWER = 8 << 20
_GRACE = 0.5
"""Seconds for which the library may say itself what went wrong in time."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server said: ``status`` 0 and ``error`` when nothing usable came."""

    url: str
    status: int
    text: str = ""
    error: str = ""
    seconds: float = 0.0

    def json(self) -> Any:
        """The body as JSON, or None."""
        import json

        try:
            return json.loads(self.text)
        except ValueError:
            return None


def headers() -> dict[str, str]:
    """The bearer token of ``$KVAUTOPSY_TOKEN``, if it is set."""
    token = os.environ.get(TOKEN_VARIABLE)
    return {"Authorization": f"Bearer {token}"} if token else {}


def address(url: str, example: str = "http://127.0.0.1:8000") -> str:
    """``url`` without its last slash. Raises ``UserError`` for what is no address, before anything is asked."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:  # a port that is no number or too large, half an IPv6 address
        good = False
    if not good:
        raise UserError(f"{url} is not an address: write it like {example}")
    return url.rstrip("/")


def within(seconds: float, function: Callable[[], T]) -> T:
    """What ``function`` returns or raises. Raises ``TimeoutError`` if it takes longer than ``seconds``.

    Time-outs of a library bound one step (a name that is looked up, a byte that comes), never the whole. It is then
    left to itself, in a thread that does not hold up the end of the program.
    """
    done: list[tuple[T | None, BaseException | None]] = []

    def call() -> None:
        try:
            done.append((function(), None))
        except BaseException as error:  # handed to the caller, whatever it is
            done.append((None, error))

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(seconds)
    if not done:
        raise TimeoutError
    value, error = done[0]
    if error is not None:
        raise error
    return cast("T", value)


def ask(url: str, *, timeout: float = 5.0, limit: int = MAX_ANSWER, json: Any = None, method: str = "GET") -> Answer:
    """One request. Never raises: a failure is a sentence in ``Answer.error``. At most ``timeout`` seconds in all."""
    try:
        return within(timeout + _GRACE, lambda: _ask(url, timeout, limit, json, method))
    except TimeoutError:
        return Answer(url, 0, "", f"no answer in {timeout:g} s", timeout)


def _ask(url: str, timeout: float, limit: int, json: Any, method: str) -> Answer:
    import httpx

    started = time.monotonic()
    deadline = started + timeout

    def passed() -> float:
        return time.monotonic() - started

    try:
        with (
            httpx.Client(timeout=timeout, follow_redirects=False, trust_env=False) as client,
            client.stream(method, url, headers=headers(), json=json) as response,
        ):
            parts, size = [], 0
            for part in response.iter_bytes():
                parts.append(part)
                size += len(part)
                if size > limit:
                    return Answer(url, response.status_code, "", f"the answer is larger than {limit:,} bytes", passed())
                if time.monotonic() > deadline:
                    return Answer(url, response.status_code, "", f"no end of the answer in {timeout:g} s", passed())
            text = b"".join(parts).decode("utf-8", "replace")
            return Answer(url, response.status_code, text, "", passed())
    except httpx.TimeoutException:
        return Answer(url, 0, "", f"no answer in {timeout:g} s", passed())
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, OSError) as error:
        return Answer(url, 0, "", reason(error), passed())


_REASONS = (
    (r"name or service not known|nodename nor servname|name resolution|no address associated|getaddrinfo",
     "no host has that name"),
    (r"certificate", "its certificate is not trusted"),
    (r"wrong version number|record layer|ssl|tls", "what answers there speaks no TLS: is it http:// and not https://?"),
    (r"no route to host|unreachable", "no way leads to that host"),
    (r"refused", "connection refused: nothing listens there"),
    (r"disconnected|connection aborted|reset by peer", "the connection was closed without an answer"),
    (r"illegal|malformed|badstatusline|protocolerror|invalid|unexpected", "what answers there speaks no HTTP"),
    (r"timed? ?out", "no answer in time"),
)  # fmt: skip


def reason(error: BaseException) -> str:
    """What a failed request met with, in words; ``error`` is of httpx or of requests."""
    import re

    text = f"{type(error).__name__}: {error}"
    return next((said for pattern, said in _REASONS if re.search(pattern, text, re.IGNORECASE)), text[:200])


def fetch_text(url: str, *, timeout: float = 5.0, limit: int = MAX_ANSWER) -> str:
    """The body of ``url``. Raises ``UserError`` (status 3) unless it answers 200."""
    answer = ask(url, timeout=timeout, limit=limit)
    if answer.error:
        raise UserError(f"{url}: {answer.error}", status=3)
    if answer.status in (401, 403):
        raise UserError(f"{url} answers {answer.status}: put the bearer token into ${TOKEN_VARIABLE}", status=3)
    if answer.status != 200:
        raise UserError(f"{url} answers {answer.status}: is this the server's address?", status=3)
    return answer.text
