"""The proxy through which a server is reached, as the usual environment variables say.

The rule is that of Go, so that a study reaches its server in the same way from each language:
https://pkg.go.dev/golang.org/x/net/http/httpproxy.
"""

from __future__ import annotations

import base64
import ipaddress
import os
from dataclasses import dataclass, field
from urllib.parse import SplitResult, unquote, urlsplit


@dataclass(frozen=True)
class Proxy:
    """An HTTP proxy, and the headers that log in to it."""

    host: str
    port: int
    headers: dict[str, str] = field(default_factory=dict, repr=False)


def proxy_of(url: str) -> Proxy | None:
    """Return the proxy for a server's URL; None to connect directly."""
    parts = urlsplit(url)
    host = (parts.hostname or "").rstrip(".")
    if parts.scheme not in ("http", "https") or _bypassed(host, parts.port or _PORTS[parts.scheme]):
        return None
    name = f"{parts.scheme}_proxy"
    if parts.scheme == "http" and os.environ.get("REQUEST_METHOD"):
        return None  # a CGI program: the variable would be a header of the request
    value = _variable(name)
    return _parse(name, value) if value else None


_PORTS = {"http": 80, "https": 443}


def _variable(name: str) -> str:
    return (os.environ.get(name.upper()) or os.environ.get(name) or "").strip()


def _parse(name: str, value: str) -> Proxy:
    parts: SplitResult | None = None
    try:
        parts = urlsplit(value if "://" in value else f"http://{value}")
        host, port = parts.hostname, parts.port or 80
    except ValueError:
        host, port = None, 0
    if parts is None or not host or parts.scheme != "http":
        shown = value.rpartition("@")[2]  # without a login
        raise ValueError(f"{name.upper()}: {shown!r} is not accepted; want a URL such as http://proxy:3128")
    headers = {}
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Proxy-Authorization"] = "Basic " + base64.b64encode(login.encode()).decode()
    return Proxy(host, port, headers)


def _bypassed(host: str, port: int) -> bool:
    """Return whether a host is reached directly: this machine, and what NO_PROXY names."""
    if host == "localhost":
        return True
    address = _address(host)
    if address is not None and address.is_loopback:
        return True
    return any(_matches(entry, host, address, port) for entry in _variable("no_proxy").lower().split(","))


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        return None


def _matches(
    entry: str, host: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address | None, port: int
) -> bool:
    """Return whether an entry of NO_PROXY is of a host: `*`, an address or a range, or a domain."""
    entry = entry.strip()
    if not entry or entry == "*":
        return entry == "*"
    if "/" in entry:
        try:
            return address is not None and address in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    name, colon, number = entry.rpartition(":")
    if colon and number.isdigit() and (":" not in name or name.endswith("]")):
        if int(number) != port:
            return False
        entry = name
    named = _address(entry)
    if named is not None:
        return named == address
    if address is not None:
        return False
    entry = entry.removeprefix("*")
    return host.endswith(entry) if entry.startswith(".") else host == entry or host.endswith("." + entry)
