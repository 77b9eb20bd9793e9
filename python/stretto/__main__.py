# SPDX-License-Identifier: BSD-3-Clause
"""Where the tool begins. What it needs takes half a second to load: Ctrl-C ends it quietly in that time, too."""

import os
import signal


def main() -> None:
    raises = signal.getsignal(signal.SIGINT) == signal.default_int_handler  # not where a shell has us ignore it
    if raises:
        signal.signal(
            signal.SIGINT, lambda *_: os._exit(130)
        )  # nothing was begun; an exception could come out of any import
    from stretto import cli

    if raises:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        cli.main()
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # somebody may press it twice, and Python takes its time to end


if __name__ == "__main__":
    main()
