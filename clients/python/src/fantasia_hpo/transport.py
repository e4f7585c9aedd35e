"""Calls of a coordinator's API: Connect's JSON over HTTP, with retries and deadlines."""

from __future__ import annotations

import http.client
import json
import random
import selectors
import socket
import ssl
import threading
import time
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlencode, urlsplit

from . import errors
from ._fork import renew_after_fork
from ._proxy import proxy_of

Message: TypeAlias = "dict[str, Any]"

_ERRORS: Mapping[str, type[errors.ServerError]] = {
    "not_found": errors.NotFoundError,
    "already_exists": errors.AlreadyExistsError,
    "failed_precondition": errors.PreconditionError,
    "unavailable": errors.UnavailableError,
    "deadline_exceeded": errors.UnavailableError,
    # This client cancels nothing, so whoever answered has lost the connection to the leader.
    "canceled": errors.UnavailableError,
}
# Codes of HTTP that a proxy sends in place of an answer of Connect's, as its protocol maps them.
_HTTP_CODES = {
    400: "internal",
    401: "unauthenticated",
    403: "permission_denied",
    404: "unimplemented",
    429: "unavailable",
    499: "canceled",
    502: "unavailable",
    503: "unavailable",
    504: "unavailable",
}
_LONGEST_PAUSE = 2.0
_IDLE_CONNECTIONS = 16


class _UnixConnection(http.client.HTTPConnection):
    """A connection to a socket of this machine."""

    def __init__(self, path: str, timeout: float):
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class _NotSentError(Exception):
    """The connection could not be made, so the server has seen nothing of the request."""


class Transport:
    """A client of one server. It may be used from several threads at once.

    `locate` returns the server's URL. It is called again, with True, whenever no connection can
    be made, so that it can start a server that has died. `timeout` is how many seconds a call may
    take with all its retries. `storage` is what another process passes to `connect` for the same server.
    """

    def __init__(
        self,
        locate: Callable[[bool], str],
        *,
        token: str | None = None,
        token_file: str | None = None,
        ca: str | None = None,
        timeout: float = 60,
        storage: str = "",
    ):
        self._locate = locate
        self._token = token
        self._token_file = token_file
        self.ca = ca
        self.storage = storage
        self.timeout = timeout
        self._renew()
        renew_after_fork(self)

    def _renew(self) -> None:
        """Start without connections: those of a parent are the parent's to use."""
        self._lock = threading.Lock()
        self._idle: list[tuple[str, http.client.HTTPConnection]] = []

    def call(
        self, method: str, request: Message, *, idempotent: bool = False, timeout: float | None = None
    ) -> Message:
        """Call `Service/Method` and return its answer.

        A request that is not idempotent is only repeated if the server has done nothing with it.
        """
        headers = {"Content-Type": "application/json", "Connect-Protocol-Version": "1"}
        data = json.dumps(request).encode()
        body = self._repeat("POST", f"/fantasia.v1.{method}", data, headers, idempotent, timeout)
        answer: Message = json.loads(body)
        return answer

    def get(self, path: str, query: Mapping[str, str | Sequence[str]]) -> str:
        """Return the text at a path of the server."""
        return self._repeat("GET", f"{path}?{urlencode(query, doseq=True)}", None, {}, True, None).decode()

    def _repeat(
        self,
        verb: str,
        path: str,
        data: bytes | None,
        headers: dict[str, str],
        idempotent: bool,
        timeout: float | None,
    ) -> bytes:
        deadline = time.monotonic() + (self.timeout if timeout is None else timeout)
        pause = 0.05
        lost = False
        while True:
            try:
                return self._attempt(verb, path, data, headers, deadline, lost)
            except _NotSentError as e:
                failure: errors.FantasiaError = errors.UnavailableError(
                    "unavailable", f"cannot reach the server: {e}"
                )
                lost = again = True
            except (OSError, http.client.HTTPException) as e:
                # Nothing at all is a BadStatusLine, too.
                if isinstance(e, http.client.BadStatusLine) and not isinstance(e, ConnectionResetError):
                    said = f"{self.url} does not speak HTTP: {e}; want https:// if the server has TLS"
                    raise errors.ServerError("unimplemented", said) from None
                failure = errors.UnavailableError("unavailable", f"the server's answer was lost: {e!r}")
                lost, again = True, idempotent
            except _RefusedError as e:
                again = e.untouched or (idempotent and isinstance(e.error, errors.UnavailableError))
                if not again:
                    raise e.error from None
                failure = e.error
            left = deadline - time.monotonic()
            if not again or left <= pause:
                raise failure
            time.sleep(min(left, pause * random.uniform(0.5, 1)))
            pause = min(_LONGEST_PAUSE, 2 * pause)

    @property
    def url(self) -> str:
        """The server's URL."""
        return self._locate(False).rstrip("/")

    def close(self) -> None:
        """Close the idle connections. The transport can still be used."""
        with self._lock:
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()

    def _bearer(self) -> str | None:
        """Return the token. One in a file is read each time, as it may have been renewed."""
        if self._token or not self._token_file:
            token = (self._token or "").strip()  # a line end comes from a file or a command's output
            if any(unicodedata.category(c) == "Cc" for c in token):
                raise ValueError("token: expected a token alone, got one with a control character in it")
            return token or None
        try:
            words = Path(self._token_file).read_text(encoding="utf-8").split()
        except OSError as e:
            raise ValueError(f"{self._token_file}: expected a token, got {e}") from e
        if len(words) != 1:
            raise ValueError(f"{self._token_file}: expected a token alone, got {len(words)} words")
        return words[0]

    def _attempt(
        self, verb: str, path: str, data: bytes | None, headers: dict[str, str], deadline: float, lost: bool
    ) -> bytes:
        token = self._bearer()  # before there is a connection to be closed
        url = self._locate(lost)
        left = max(0.1, deadline - time.monotonic())
        connection = self._connection(url, left)
        headers = {"User-Agent": "fantasia-hpo", **headers}
        if data is not None:
            headers["Connect-Timeout-Ms"] = str(int(left * 1000))
        if token:
            headers["Authorization"] = f"Bearer {token}"
        try:
            parts = urlsplit(url)
            base = "" if parts.scheme == "unix" else parts.path.rstrip("/")
            proxy = proxy_of(url) if parts.scheme == "http" else None
            if proxy is not None:  # it is told the whole address
                base = f"http://{parts.netloc.rpartition('@')[2]}{base}"
                headers = {**headers, **proxy.headers}
            connection.request(verb, base + path, data, headers)
            response = connection.getresponse()
            body = response.read()
        except BaseException:
            connection.close()
            raise
        self._keep(url, connection, response)
        if response.status == 200:
            return body
        raise _refusal(response.status, response.reason, body)

    def _keep(
        self, url: str, connection: http.client.HTTPConnection, response: http.client.HTTPResponse
    ) -> None:
        with self._lock:
            if not response.will_close and len(self._idle) < _IDLE_CONNECTIONS:
                self._idle.append((url, connection))
                return
        connection.close()

    def _connection(self, url: str, timeout: float) -> http.client.HTTPConnection:
        """Return an open connection that the server has not closed."""
        while True:
            with self._lock:
                idle = self._idle.pop() if self._idle else None
            if idle is None:
                break
            kept, connection = idle
            if kept == url and connection.sock is not None and not _readable(connection.sock):
                connection.sock.settimeout(timeout)
                return connection
            connection.close()
        parts = urlsplit(url)
        host, port = parts.hostname or "localhost", parts.port
        proxy = proxy_of(url)
        through = "" if proxy is None else f" through the proxy {proxy.host}:{proxy.port}"
        if proxy is not None:
            host, port = proxy.host, proxy.port
        if parts.scheme == "unix":
            connection = _UnixConnection(parts.path, timeout)
        elif parts.scheme == "https":
            try:
                context = ssl.create_default_context(cafile=self.ca)
            except OSError as e:
                raise ValueError(f"ca: {self.ca!r}: expected certificates in PEM, got {e}") from None
            connection = http.client.HTTPSConnection(host, port, timeout=timeout, context=context)
            if proxy is not None:
                connection.set_tunnel(parts.hostname or "localhost", parts.port or 443, proxy.headers)
        else:
            connection = http.client.HTTPConnection(host, port, timeout=timeout)
        try:
            connection.connect()
        except ssl.SSLCertVerificationError as e:
            raise errors.ServerError(
                "unauthenticated", f"{url}{through}: {e.verify_message}; see the option ca"
            ) from None
        except ssl.SSLError as e:
            if isinstance(e, ssl.SSLEOFError | ssl.SSLZeroReturnError):  # a server that is ending
                raise _NotSentError(f"{url}{through}: {e}") from None
            # Waiting cannot mend a server that speaks no TLS, or another version of it.
            said = f"{url}{through}: {e}; want http:// if the server has no TLS"
            raise errors.ServerError("unimplemented", said) from None
        except OSError as e:
            raise _NotSentError(f"{url}{through}: {e}") from None
        return connection


class _RefusedError(Exception):
    """The server's error, and whether it has done nothing with the request."""

    def __init__(self, error: errors.FantasiaError, untouched: bool):
        super().__init__(error)
        self.error = error
        self.untouched = untouched


def _readable(sock: socket.socket) -> bool:
    """Return whether an idle connection can be read, which means that the server has closed it."""
    with selectors.DefaultSelector() as selector:
        selector.register(sock, selectors.EVENT_READ)
        return bool(selector.select(0))


def _refusal(status: int, reason: str, body: bytes) -> _RefusedError:
    try:
        content = json.loads(body)
        code, message = str(content["code"]), str(content.get("message", ""))
        details = content.get("details", [])
    except (ValueError, KeyError, TypeError, AttributeError):
        code = _HTTP_CODES.get(status, "unknown")
        message, details = f"HTTP {status} {reason}: {body[:200].decode(errors='replace')}", []
    problems: list[str] = []
    untouched = False
    for detail in details:
        kind, content = detail.get("type"), detail.get("debug") or {}
        untouched = untouched or kind == "google.rpc.RetryInfo"
        if kind == "google.rpc.BadRequest":
            problems += [v["description"] for v in content.get("fieldViolations", [])]
    if problems:
        return _RefusedError(errors.StudyFileError(problems), False)
    return _RefusedError(_ERRORS.get(code, errors.ServerError)(code, message), untouched)
