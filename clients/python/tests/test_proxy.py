"""A server behind a proxy: the environment's usual variables say how it is reached, as in Go."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from test_transport import OK, Server

from fantasia_hpo._proxy import proxy_of
from fantasia_hpo.transport import Transport


class Relay(ThreadingHTTPServer):
    """A small proxy that leads to one server, whatever host it is asked for, and keeps what it was asked."""

    def __init__(self, to: tuple[str, int]):
        super().__init__(("127.0.0.1", 0), _Asked)
        self.to = to
        self.asked: list[tuple[str, str, str | None]] = []
        self.url = f"http://user:pass%20word@127.0.0.1:{self.server_address[1]}"


class _Asked(BaseHTTPRequestHandler):
    server: Relay

    def do_CONNECT(self) -> None:
        self._note()
        self.send_response(200)
        self.end_headers()
        with socket.create_connection(self.server.to) as server:
            while True:
                for sock in select.select([self.connection, server], [], [], 5)[0]:
                    data = sock.recv(65536)
                    if not data:
                        return
                    (server if sock is self.connection else self.connection).sendall(data)

    def do_POST(self) -> None:
        self._note()
        body = self.rfile.read(int(self.headers["Content-Length"]))
        path = "/" + self.path.partition("://")[2].partition("/")[2]
        lines = [f"POST {path} HTTP/1.1", "Host: inside", "Connection: close", f"Content-Length: {len(body)}"]
        with socket.create_connection(self.server.to) as server:
            server.sendall("\r\n".join([*lines, "", ""]).encode() + body)
            while data := server.recv(65536):
                self.wfile.write(data)
        self.close_connection = True

    def _note(self) -> None:
        self.server.asked.append((self.command, self.path, self.headers["Proxy-Authorization"]))

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def relay(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Relay, Server]]:
    """Return a proxy and the server behind it, without the variables of who runs the tests."""
    for name in ("http_proxy", "https_proxy", "no_proxy", "REQUEST_METHOD"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    server = Server()
    proxy = Relay(("127.0.0.1", server.server_address[1]))
    threads = [threading.Thread(target=s.serve_forever, daemon=True) for s in (server, proxy)]
    for thread in threads:
        thread.start()
    yield proxy, server
    for s in (server, proxy):
        s.shutdown()
        s.server_close()


LOGIN = "Basic dXNlcjpwYXNzIHdvcmQ="  # user:pass word


@pytest.mark.parametrize("name", ["http_proxy", "HTTP_PROXY"])
def test_calls_go_through_the_proxy(
    name: str, relay: tuple[Relay, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy, server = relay
    monkeypatch.setenv(name, proxy.url)
    server.answers = [OK, OK]
    transport = Transport(lambda lost: "http://fantasia.test:8080/base", timeout=5)
    assert transport.call("Service/Method", {}) == {"fine": True}
    assert proxy.asked == [("POST", "http://fantasia.test:8080/base/fantasia.v1.Service/Method", LOGIN)]
    direct = Transport(lambda lost: server.url, timeout=5)  # this machine is never behind a proxy
    assert direct.call("Service/Method", {}) == {"fine": True}
    assert len(proxy.asked) == 1


def test_tls_goes_through_a_tunnel(relay: tuple[Relay, Server], monkeypatch: pytest.MonkeyPatch) -> None:
    proxy, _ = relay
    monkeypatch.setenv("HTTPS_PROXY", proxy.url)
    transport = Transport(lambda lost: "https://fantasia.test", timeout=0.5)
    with pytest.raises(Exception, match=r"through the proxy 127\.0\.0\.1"):
        transport.call("Service/Method", {})  # the server behind it has no TLS
    assert proxy.asked[0] == ("CONNECT", "fantasia.test:443", LOGIN)


@pytest.mark.parametrize(
    ("no_proxy", "url", "direct"),
    [
        ("", "http://a.example.com", False),
        ("*", "http://a.example.com", True),
        ("example.com", "http://a.example.com", True),
        ("example.com", "http://example.com:8080", True),
        ("example.com", "http://anexample.com", False),
        (".example.com", "http://example.com", False),
        ("x.test, *.example.com", "http://A.Example.com", True),
        ("example.com:8080", "http://example.com", False),
        ("example.com:80", "http://example.com", True),
        ("10.0.0.0/8", "http://10.1.2.3", True),
        ("10.0.0.0/8", "http://11.1.2.3", False),
        ("10.1.2.3", "http://10.1.2.3:99", True),
        ("fd00::/8", "http://[fd00::1]:80", True),
        ("", "http://localhost", True),
        ("", "http://127.1.2.3", True),
        ("", "http://[::1]:80", True),
        ("", "unix:///tmp/socket", True),
    ],
)
def test_no_proxy(no_proxy: str, url: str, direct: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The expectations are those of Go's documentation of httpproxy.Config.NoProxy."""
    for name in ("HTTP_PROXY", "NO_PROXY", "REQUEST_METHOD"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "proxy:3128")
    monkeypatch.setenv("no_proxy", no_proxy)
    assert (proxy_of(url) is None) == direct


def test_a_wrong_proxy_is_named(relay: tuple[Relay, Server], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "socks5://user:secret@proxy:1080")
    with pytest.raises(ValueError, match="HTTP_PROXY: 'proxy:1080' is not accepted") as e:
        proxy_of("http://fantasia.test")
    assert "secret" not in str(e.value)
