# SPDX-License-Identifier: BSD-3-Clause
"""Both ends of a remote shell between hosts of one machine, in place of sshd and ssh.

    shell.py serve SOCKET [--lifeline]       the first process of a host
    shell.py call DIRECTORY HOST COMMAND...  what a launcher calls in place of ssh

`serve` starts the programs that it is asked to start, and adopts orphans. `call` joins the words and
gives them to a shell on that host.

A request is a JSON object with three descriptors: the program's standard streams. The answer is the
program's exit status. Bytes after a request are signals for the program's process group. When the
connection closes, the group is ended, unless the request says that it may stay. Sockets are in the
file system, so that no byte goes over the hosts' network.

A bare interpreter runs this script, so it needs the standard library only.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

LENGTH, STATUS = struct.Struct("!I"), struct.Struct("!i")
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


# ---- asking --------------------------------------------------------------------------------------


def socket_of(directory: Path, host: str) -> Path:
    return directory / f"{host}.sock"


def connect(directory: Path, host: str) -> socket.socket:
    """Connects to a host's daemon. Raises OSError if there is no such host, or if it is dead."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(str(socket_of(directory, host)))
    except OSError:
        connection.close()
        raise
    return connection


def first_process(directory: Path, host: str) -> int:
    """The process that listens on a host's socket, which is the first process of the host."""
    with connect(directory, host) as connection:
        size = struct.calcsize("iII")
        return struct.unpack("iII", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))[0]


def start(
    directory: Path,
    host: str,
    argv: Sequence[str],
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    streams: Sequence[int] = (0, 1, 2),
    stay: bool = False,
) -> socket.socket:
    """Starts a program. `env` None: the environment after a login. `wait` awaits its end; closing
    the connection ends it, unless it may stay."""
    request = json.dumps(
        {"argv": list(argv), "env": None if env is None else dict(env), "cwd": cwd, "stay": stay}
    ).encode()
    connection = connect(directory, host)
    socket.send_fds(connection, [LENGTH.pack(len(request))], list(streams))
    connection.sendall(request)
    return connection


def send_signal(connection: socket.socket, number: int) -> None:
    connection.send(bytes([number]))


def wait(connection: socket.socket) -> int:
    """The status as subprocess has it: a negative number is a signal. A host that died counts as
    SIGKILL."""
    try:
        status = connection.recv(STATUS.size)
    except ConnectionError:
        status = b""
    return STATUS.unpack(status)[0] if len(status) == STATUS.size else -signal.SIGKILL


def call(directory: Path, host: str, words: Sequence[str]) -> int:
    try:
        connection = start(directory, host, ["/bin/sh", "-c", " ".join(words)], cwd=os.environ.get("HOME"))
    except OSError as error:
        print(f"{host}: cannot be reached: {error.strerror}", file=sys.stderr)
        return 255
    for number in FORWARDED:
        signal.signal(number, lambda number, _: send_signal(connection, number))
    status = wait(connection)
    return status if status >= 0 else 128 - status


# ---- serving -------------------------------------------------------------------------------------


def receive_request(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    head, descriptors, _, _ = socket.recv_fds(connection, LENGTH.size, 3)
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    missing, parts = LENGTH.unpack(head)[0], []
    while missing:
        part = connection.recv(missing)
        if not part:
            raise EOFError("half a request")
        parts.append(part)
        missing -= len(part)
    return json.loads(b"".join(parts)), descriptors


def become(request: dict[str, Any], descriptors: list[int]) -> NoReturn:
    """Runs the program in a forked child. Never returns."""
    status = 127
    try:
        os.setsid()
        for target, descriptor in enumerate(descriptors):
            os.dup2(descriptor, target)
        for name in (signal.SIGCHLD, signal.SIGPIPE):  # undo what the interpreter has set
            signal.signal(name, signal.SIG_DFL)
        with contextlib.suppress(OSError):
            os.chdir(request.get("cwd") or "/")
        environment = os.environ if request["env"] is None else request["env"]
        os.execvpe(request["argv"][0], request["argv"], environment)
    except OSError as error:
        os.write(2, f"{os.uname().nodename}: {request['argv'][0]}: {error.strerror}\n".encode())
    finally:
        os._exit(status)


class Daemon:
    """The first process of a host."""

    def __init__(self, path: str) -> None:
        self.events = selectors.DefaultSelector()
        self.children: dict[int, socket.socket | None] = {}
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(64)
        self.watch(self.listener, self.accept)
        woken, waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        self.watch(woken, lambda: self.reap(woken))

    def watch(self, source: Any, action: Callable[[], None]) -> None:
        self.events.register(source, selectors.EVENT_READ, action)

    def serve(self) -> NoReturn:
        while True:
            for key, _ in self.events.select():
                key.data()

    def accept(self) -> None:
        connection, _ = self.listener.accept()
        connection.settimeout(5)  # one client must not block the others
        descriptors: list[int] = []
        try:
            request, descriptors = receive_request(connection)
        except (OSError, EOFError, ValueError, struct.error):
            connection.close()
            return
        child = os.fork()
        if child == 0:
            become(request, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        self.children[child] = connection
        self.watch(connection, lambda: self.instruct(child, connection, request.get("stay", False)))

    def instruct(self, child: int, connection: socket.socket, stay: bool) -> None:
        """Passes signals on to a child. If the connection has ended, asks the child to end."""
        try:
            signals = connection.recv(64)
        except OSError:
            signals = b""
        if not signals:
            self.drop(child)
            connection.close()
        with contextlib.suppress(ProcessLookupError):
            for number in signals or ([] if stay else [signal.SIGTERM]):
                os.killpg(child, number)

    def drop(self, child: int) -> socket.socket | None:
        """Forgets the connection of a child and returns it."""
        connection = self.children.get(child)
        if connection:
            self.events.unregister(connection)
            self.children[child] = None
        return connection

    def reap(self, woken: int) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(woken, 4096)
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                connection = self.drop(ended[0])
                self.children.pop(ended[0], None)
                if connection:
                    with contextlib.suppress(OSError):
                        connection.send(STATUS.pack(os.waitstatus_to_exitcode(ended[1])))
                    connection.close()


def hold(lifeline: int, daemon: Daemon) -> None:
    """Ends this process when the lifeline ends, until the lifeline has said "keep"."""
    if os.read(lifeline, 16) != b"keep":
        os._exit(1)  # all processes of a PID namespace end with its first one
    daemon.events.unregister(lifeline)
    os.close(lifeline)


def serve(path: str, lifeline: int | None) -> NoReturn:
    daemon = Daemon(path)
    if lifeline is not None:
        daemon.watch(lifeline, lambda: hold(lifeline, daemon))
    os.write(1, b"ready\n")
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nothing, stream)
    daemon.serve()


def main(arguments: list[str]) -> int:
    if arguments[0] == "serve":
        serve(arguments[1], os.dup(0) if "--lifeline" in arguments else None)
    return call(Path(arguments[1]), arguments[2], arguments[3:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
