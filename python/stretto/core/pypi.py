# SPDX-License-Identifier: BSD-3-Clause
"""Why pip has failed, in a line."""

from __future__ import annotations

import re

# What pip says of a machine that does not reach PyPI. It tries each package that is asked for, and
# all are there.
UNREACHABLE = (
    r"NewConnectionError|NameResolutionError|ConnectTimeout|ProxyError|ConnectionResetError|"
    r"Failed to establish|\(from versions: none\)"
)


def why_failed(said: str) -> str:
    if re.search(UNREACHABLE, said):
        return "PyPI cannot be reached from here"
    lines = said.strip().splitlines() or ["pip failed without a word"]
    errors = [line for line in lines if line.lower().startswith("error: ")] or lines[-1:]
    return errors[0].partition(": ")[2] or errors[0]
