# SPDX-License-Identifier: BSD-3-Clause
"""The tool's start and end.

Loading the tool takes half a second. Ctrl-C ends it quietly in that time, too.
"""

import errno
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

REQUESTS_TO_END = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def main() -> None:
    raises = signal.getsignal(signal.SIGINT) == signal.default_int_handler  # a shell may have the tool ignore it
    if raises:  # nothing has begun, and any import could raise an exception
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    from stretto import cli

    if raises:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        perform(cli.command_tree)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a user may press it twice while Python ends


def perform(command_tree: Callable[[], Any]) -> None:
    """Runs the command. Known errors become a message and an exit status."""
    from stretto.core.console import STDOUT, complain, flush_stdout, give_up_stdout, watch_stdout
    from stretto.core.paths import NoPlace
    from stretto.mpi import MpiNotFound
    from stretto.native.build import BuildError

    # A request to end also ends what the command has started, as Ctrl-C does.
    for number in REQUESTS_TO_END:
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, end)
    watch_stdout()
    try:
        try:
            command_tree()(prog_name="stretto")
        finally:
            flush_stdout()
    except (BuildError, MpiNotFound, NoPlace) as error:
        complain(str(error))
        sys.exit(2)
    except OSError as error:
        if error.filename != STDOUT:
            raise
        if error.errno != errno.EPIPE:  # the reader may have read enough
            complain(f"cannot write to stdout: {error.strerror}")
        give_up_stdout()
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


def end(number: int, _frame: object) -> None:
    for each in REQUESTS_TO_END:
        signal.signal(each, signal.SIG_IGN)  # a terminal that hangs up may send it twice
    sys.exit(128 + number)


if __name__ == "__main__":
    main()
