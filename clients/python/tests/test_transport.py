"""Faults of a server and of the network, which a real coordinator cannot be made to have in order."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from fantasia_hpo import NotFoundError, ServerError, StudyFileError, UnavailableError
from fantasia_hpo.transport import Transport

Answer = Callable[[BaseHTTPRequestHandler], None]


def answer(status: int, body: Any) -> Answer:
    """Return what sends a body of JSON, or of text."""

    def send(handler: BaseHTTPRequestHandler) -> None:
        content = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    return send


def hang_up(handler: BaseHTTPRequestHandler) -> None:
    """Close the connection without an answer."""
    handler.close_connection = True


OK = answer(200, {"fine": True})
UNTOUCHED = answer(
    503,
    {
        "code": "unavailable",
        "message": "no leader; try again",
        "details": [{"type": "google.rpc.RetryInfo", "value": "", "debug": {"retryDelay": "0.5s"}}],
    },
)
UNAVAILABLE = answer(503, {"code": "unavailable", "message": "etcd does not answer"})


class Server(ThreadingHTTPServer):
    """Gives prepared answers in their order, and keeps the requests."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: list[Answer] = []
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append((self.path, dict(self.headers), body))
        self.server.answers.pop(0)(self)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def call(server: Server, *answers: Answer, idempotent: bool = False, timeout: float = 10) -> Any:
    server.answers = list(answers)
    transport = Transport(lambda _: server.url, token="secret", timeout=timeout)
    try:
        return transport.call("StudyService/GetStudy", {"name": "studies/a"}, idempotent=idempotent)
    finally:
        transport.close()


def test_call_is_connects_json(server: Server) -> None:
    assert call(server, OK) == {"fine": True}
    path, headers, body = server.requests[0]
    assert path == "/fantasia.v1.StudyService/GetStudy"
    assert body == {"name": "studies/a"}
    assert headers["Content-Type"] == "application/json"
    assert headers["Authorization"] == "Bearer secret"
    assert headers["Connect-Protocol-Version"] == "1"
    assert 0 < int(headers["Connect-Timeout-Ms"]) <= 10_000


def test_token_of_a_file_is_read_for_each_request(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "token"
    transport = Transport(lambda _: server.url, token_file=str(file))
    for text in ("first\n", "renewed"):
        file.write_text(text)
        server.answers = [OK]
        transport.call("StudyService/GetStudy", {})
    assert [headers["Authorization"] for _, headers, _ in server.requests] == [
        "Bearer first",
        "Bearer renewed",
    ]
    file.write_text("two words")
    with pytest.raises(ValueError, match="expected a token alone, got 2 words"):
        transport.call("StudyService/GetStudy", {})
    file.unlink()
    with pytest.raises(ValueError, match=r"token: expected a token, got .*No such file"):
        transport.call("StudyService/GetStudy", {}, idempotent=True)
    transport.close()


def test_untouched_request_is_repeated(server: Server) -> None:
    assert call(server, UNTOUCHED, UNTOUCHED, OK) == {"fine": True}
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    "canceled", [answer(499, {"code": "canceled", "message": "reset"}), answer(499, "reset")]
)
def test_canceled_counts_as_unavailable(server: Server, canceled: Answer) -> None:
    assert call(server, canceled, OK, idempotent=True) == {"fine": True}
    with pytest.raises(UnavailableError, match="reset") as e:
        call(server, canceled, OK)
    assert e.value.code == "canceled"


def test_request_that_may_have_had_an_effect_is_not_repeated(server: Server) -> None:
    with pytest.raises(UnavailableError, match="etcd does not answer"):
        call(server, UNAVAILABLE, OK)
    with pytest.raises(UnavailableError, match="answer was lost"):
        call(server, hang_up, OK)
    assert len(server.requests) == 2


def test_idempotent_request_is_repeated(server: Server) -> None:
    assert call(server, UNAVAILABLE, hang_up, answer(502, "<html>"), OK, idempotent=True) == {"fine": True}


def test_deadline_ends_the_repetitions(server: Server) -> None:
    with pytest.raises(UnavailableError, match="no leader"):
        call(server, *[UNTOUCHED] * 100, timeout=0.3)
    assert 2 <= len(server.requests) < 100


def test_errors_have_types(server: Server) -> None:
    with pytest.raises(NotFoundError, match="study a: not found"):
        call(server, answer(404, {"code": "not_found", "message": "study a: not found"}))
    violations = [{"field": "spec.budget", "description": "spec.budget: is missing"}]
    bad = {"type": "google.rpc.BadRequest", "debug": {"fieldViolations": violations}}
    with pytest.raises(StudyFileError) as caught:
        call(server, answer(400, {"code": "invalid_argument", "message": "bad", "details": [bad]}))
    assert caught.value.problems == ("spec.budget: is missing",)
    with pytest.raises(ServerError, match="HTTP 403") as refused:
        call(server, answer(403, "a proxy says no"))
    assert refused.value.code == "permission_denied"


def test_connection_is_kept_and_replaced(server: Server) -> None:
    ports = []

    def note(handler: BaseHTTPRequestHandler) -> None:
        ports.append(handler.client_address[1])
        OK(handler)

    def note_and_close(handler: BaseHTTPRequestHandler) -> None:
        note(handler)
        handler.close_connection = True  # without telling the client

    server.answers = [note, note_and_close, note]
    transport = Transport(lambda _: server.url)
    for _ in range(3):
        if len(ports) == 2:  # wait until the server's end has arrived
            assert transport._idle[0][1].sock.recv(1, socket.MSG_PEEK) == b""
        transport.call("StudyService/GetStudy", {})
    transport.close()
    assert ports[0] == ports[1] != ports[2]


def test_server_that_is_gone_is_located_again(server: Server) -> None:
    server.answers = [OK]
    asked = []

    def locate(lost: bool) -> str:
        asked.append(lost)
        return server.url if lost else "http://127.0.0.1:1"

    transport = Transport(locate)
    assert transport.call("StudyService/GetStudy", {}) == {"fine": True}
    transport.close()
    assert asked == [False, True]


def test_what_lasts_is_an_error_at_once(server: Server, tmp_path: Path) -> None:
    """Waiting cannot mend a wrong scheme, a wrong file of certificates, or a token that is none."""

    def fails(url: str, match: str, kind: type[Exception], **options: str) -> None:
        transport = Transport(lambda _: url, timeout=60, **options)
        began = time.monotonic()
        with pytest.raises(kind, match=match):
            transport.call("StudyService/GetStudy", {}, idempotent=True)
        assert time.monotonic() - began < 20

    secure = server.url.replace("http://", "https://")
    fails(secure, "want http://", ServerError)
    fails(secure, "ca: .*nowhere.*expected certificates", ValueError, ca=str(tmp_path / "nowhere"))
    fails(server.url, "control character", ValueError, token="my\nsecret")

    def alert(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"\x15\x03\x01\x00\x02\x02\x46")  # of a server that speaks TLS alone
        handler.close_connection = True

    server.answers = [alert]
    fails(server.url, "want https://", ServerError)


def test_line_end_after_a_token_is_left_out(server: Server) -> None:
    server.answers = [OK]
    transport = Transport(lambda _: server.url, token="secret\r\n")
    transport.call("StudyService/GetStudy", {})
    transport.close()
    assert server.requests[0][1]["Authorization"] == "Bearer secret"
