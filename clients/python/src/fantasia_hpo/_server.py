"""Finds the server of a study: at a URL, or a program `fantasia serve` beside this process."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import shutil
import subprocess
import sysconfig
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from . import errors
from ._fork import renew_after_fork
from .transport import Transport

_START_TIMEOUT = 90.0  # seconds until a program must have said where it serves
_END_TIMEOUT = 20.0
_HELD = 4  # the program's exit code if another one serves the directory
_STATE = "_server"  # the state directory in a storage directory, as the program has it by default


def connect(storage: str | os.PathLike[str] | None, token: str | None, ca: str | None) -> Transport:
    """Return a transport to the server of a storage."""
    if storage is None:
        storage = os.environ.get("FANTASIA_SERVER") or ".fantasia"
    where = os.fspath(storage)
    token = token or os.environ.get("FANTASIA_TOKEN")
    ca = ca or os.environ.get("FANTASIA_CA")
    if where.startswith(("http://", "https://")):
        return Transport(
            lambda _: where,
            token=token,
            token_file=os.environ.get("FANTASIA_TOKEN_FILE"),
            ca=ca,
            storage=where,
        )
    if "://" in where:
        raise errors.SpaceError(f"storage: expected a directory, http://… or https://…, got {where!r}")
    path = Path(where).resolve()
    return Transport(_server_of(path).locate, storage=os.fspath(path))


def find_program() -> str:
    """Return the path of `fantasia`: of FANTASIA_PROGRAM, beside this Python, or on the PATH."""
    if given := os.environ.get("FANTASIA_PROGRAM"):
        return given
    places = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)])
    found = shutil.which("fantasia", path=places)
    if found is None:
        raise errors.ProgramError(
            "the program fantasia was not found: install a wheel of fantasia-hpo for this platform, put "
            "fantasia on the PATH, name it in FANTASIA_PROGRAM, or pass the URL of a server as storage"
        )
    return found


class _Server:
    """The server of one directory. All studies of this process that are kept there share it."""

    def __init__(self, state: Path):
        self._state = state
        self._url: str | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._renew()
        renew_after_fork(self)

    def _renew(self) -> None:
        """Leave the program to the parent that has started it: it must end with the parent."""
        self._lock = threading.Lock()
        if self._process is not None:
            _close(self._process)
            self._process.returncode = 0  # it is no child of this process, so there is nothing to wait for
            self._process = None

    def locate(self, lost: bool) -> str:
        """Return the server's URL; start the program if nobody serves the directory."""
        with self._lock:
            if self._url is None or (lost and not self._alive()):
                self._url = self._start()
            return self._url

    def close(self) -> None:
        """End the program, if this process has started it, and wait for it."""
        with self._lock:
            process, self._process, self._url = self._process, None, None
            if process is None:
                return
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(_END_TIMEOUT)
            except subprocess.TimeoutExpired:
                process.kill()  # what it has confirmed is on the disk
                process.wait()

    def _alive(self) -> bool:
        """Whether the program runs that this process has started."""
        return self._process is not None and self._process.poll() is None

    def _start(self) -> str:
        program = find_program()
        self._keep_out_of_git()
        deadline = time.monotonic() + _START_TIMEOUT
        pause = 0.05
        while True:
            url = self._try(program, deadline)
            if url is not None:
                return url
            if time.monotonic() + pause > deadline:
                raise errors.ProgramError(
                    f"another process has {self._state} open, but serves nothing there: end it, "
                    "or choose another storage"
                )
            time.sleep(pause)
            pause = min(1.0, 2 * pause)

    def _keep_out_of_git(self) -> None:
        """Have git ignore a new storage directory, however its repository is set up."""
        storage = self._state.parent
        try:
            if not storage.exists():
                storage.mkdir(parents=True, exist_ok=True)
                (storage / ".gitignore").write_text("*\n", encoding="utf-8")
        except OSError as e:
            said = f"the storage {storage} cannot be made: {e}; choose another storage"
            raise errors.ProgramError(said) from e

    def _try(self, program: str, deadline: float) -> str | None:
        """Start the program, or find who serves the directory; None if its server is starting or ending."""
        with tempfile.TemporaryFile() as said:
            try:
                process = subprocess.Popen(
                    [program, "serve", "--state", os.fspath(self._state), "--exit-with-parent"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=said,
                    start_new_session=True,  # Ctrl-C is for this process, which still hands trials back
                )
            except OSError as e:
                raise errors.ProgramError(f"the program {program} did not start: {e}") from None
            line = _first_line(process, deadline)
            if line:
                self._process = process
                return str(json.loads(line)["url"])
            process.kill()
            code = process.wait()
            _close(process)
            if code == _HELD:
                return self._served()
            said.seek(0)
            text = said.read()[-2000:].decode(errors="replace").strip()
            raise errors.ProgramError(f"{program} serve --state {self._state} ended with {code}: {text}")

    def _served(self) -> str | None:
        """Return the URL of the server that another process has started; None if it is not known."""
        try:
            url = str(json.loads((self._state / "server.json").read_bytes())["url"])
            Transport(lambda _: url).call("StudyService/ListStudies", {"pageSize": 1}, timeout=1)
        except (OSError, ValueError, KeyError, errors.UnavailableError):
            return None
        return url


def _first_line(process: subprocess.Popen[bytes], deadline: float) -> bytes:
    """Return the first line of a program's output, or nothing if it ends or is too slow."""
    assert process.stdout is not None
    descriptor, read = process.stdout.fileno(), b""
    while not read.endswith(b"\n"):
        ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
        part = os.read(descriptor, 4096) if ready else b""
        if not part:
            if ready:  # the output is closed, so the program is ending: its exit code says why
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_END_TIMEOUT)
            return b""
        read += part
    return read


def _close(process: subprocess.Popen[bytes]) -> None:
    for stream in (process.stdin, process.stdout):
        assert stream is not None
        stream.close()


_servers: dict[Path, _Server] = {}
_servers_lock = threading.Lock()


def _server_of(storage: Path) -> _Server:
    state = (storage / _STATE).resolve()
    with _servers_lock:
        return _servers.setdefault(state, _Server(state))


_last_calls: list[Callable[[], None]] = []


def before_close(call: Callable[[], None]) -> None:
    """Have something called before the programs end."""
    _last_calls.append(call)


@atexit.register
def _at_exit() -> None:
    """Close the servers. Ctrl-C leaves them alone: they end when this process has ended."""
    with contextlib.suppress(KeyboardInterrupt):
        close_servers()


def close_servers() -> None:
    """End the programs that this process has started. They start again when they are needed."""
    for call in _last_calls:
        call()
    with _servers_lock:
        servers = list(_servers.values())
    for server in servers:
        server.close()


def _renew_lock() -> None:
    global _servers_lock
    _servers_lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)
