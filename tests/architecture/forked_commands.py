"""`sluice` out of a process that has loaded it once: a start takes most of a short command's time.

    python -m tests.architecture.forked_commands SOCKET     forks a process for each command
    python -IS forked_commands.py SOCKET [ARGUMENT ...]     is the command: it has that run there

What is forked has the command's arguments, folder, environment and open files, and does from there
on what the installed command does. tests/app/test_cli*.py are about that one.
"""

from __future__ import annotations

import json
import os
import socket
import sys

_LENGTH = 8


def ask(place: str, words: list[str]) -> int:
    """Have a command run where this socket leads, and return its exit code."""
    question = json.dumps([words, os.getcwd(), dict(os.environ)]).encode()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(place)
        socket.send_fds(connection, [len(question).to_bytes(_LENGTH, "big")], [0, 1, 2])
        connection.sendall(question)
        return int(connection.recv(_LENGTH) or b"70")


def serve(place: str) -> None:
    """Fork for each connection, until this process is ended."""
    import gc
    import importlib

    for name in ("commands", "fit"):
        importlib.import_module(f"app.console.{name}")
    for name in ("audit", "compare", "export", "fit", "optimize", "profiles", "simulate", "table"):
        importlib.import_module(f"app.verbs.{name}.command")
    for name in ("app.cli", "app.operations.work", "app.execution.local", "models.session"):
        importlib.import_module(name)
    gc.freeze()  # a collection would copy what is shared
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(place)
        listener.listen()
        while True:
            connection, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                _run(connection)
            connection.close()
            _reap()


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def _run(connection: socket.socket) -> None:
    import atexit
    import threading
    import traceback

    code = 70
    try:
        length, files, _, _ = socket.recv_fds(connection, _LENGTH, 3)
        question = b""
        while len(question) < int.from_bytes(length, "big"):
            question += connection.recv(2**16)
        words, folder, environment = json.loads(question)
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        _open_streams()
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = ["sluice", *words]
        code = _command(words)
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
    finally:
        connection.sendall(str(code).encode())
        os._exit(code)


def _open_streams() -> None:
    """Those of a process that has just been started, on what is now open."""
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(  # noqa: SIM115
        2, "w", buffering=1, errors="backslashreplace", closefd=False
    )


def _command(words: list[str]) -> int:
    from app.cli import main

    try:
        return main(words)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1


if __name__ == "__main__":
    if sys.flags.isolated:
        sys.exit(ask(sys.argv[1], sys.argv[2:]))
    serve(sys.argv[1])
